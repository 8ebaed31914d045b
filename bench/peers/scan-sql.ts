import { createRequire } from 'node:module'
import { join } from 'node:path'
import { print } from '../harness.ts'
import { peerFolder } from './package.ts'
import { openSqlite } from './sqlite.ts'

/** Sums of a scanned buffer, over all organizations. */
export interface ScanSums {
  readonly matches: number
  /** Organizations x platforms x days, and those x names. */
  readonly days: number
  readonly names: number
}

/** An event as a peer stores it, including its platform, which ours must find. */
export type EventRow = readonly [
  organization: number,
  day: number,
  platform: number,
  name: string,
  client: string,
  method: number,
  firstSeenMs: number,
  lastSeenMs: number,
  count: number,
]

/**
 * A database that adds its table of buffered events to tables of evidence, and empties it, in
 * one durable transaction.
 */
export interface ScanPeer {
  readonly name: string
  fill(rows: Iterable<EventRow>): Promise<void> | void
  scan(): Promise<void> | void
  sums(): Promise<ScanSums> | ScanSums
  close(): Promise<void> | void
}

const COLUMNS = 'organization INTEGER, day INTEGER, platform INTEGER'
const TABLES = `
  CREATE TABLE buffer (${COLUMNS}, name TEXT, client TEXT, method INTEGER, first BIGINT, last BIGINT, count BIGINT);
  CREATE TABLE days (${COLUMNS}, first BIGINT, last BIGINT, matches BIGINT, dns BIGINT, tls BIGINT, quic BIGINT, log BIGINT,
    PRIMARY KEY (organization, day, platform));
  CREATE TABLE names (${COLUMNS}, name TEXT, matches BIGINT, PRIMARY KEY (organization, day, platform, name));
  CREATE TABLE clients (${COLUMNS}, client TEXT, PRIMARY KEY (organization, day, platform, client))`

/**
 * To add up distinct clients from scan to scan, each client needs a row: neither database stores a
 * mergeable sketch.
 */
const SCAN = [
  `INSERT INTO days SELECT organization, day, platform, min(first), max(last), sum(count),
     sum(CASE method WHEN 0 THEN count ELSE 0 END), sum(CASE method WHEN 1 THEN count ELSE 0 END),
     sum(CASE method WHEN 2 THEN count ELSE 0 END), sum(CASE method WHEN 3 THEN count ELSE 0 END)
   FROM buffer WHERE true GROUP BY organization, day, platform
   ON CONFLICT (organization, day, platform) DO UPDATE SET first = min(days.first, excluded.first),
     last = max(days.last, excluded.last), matches = days.matches + excluded.matches, dns = days.dns + excluded.dns,
     tls = days.tls + excluded.tls, quic = days.quic + excluded.quic, log = days.log + excluded.log`,
  `INSERT INTO names SELECT organization, day, platform, name, sum(count) FROM buffer WHERE true
   GROUP BY organization, day, platform, name
   ON CONFLICT (organization, day, platform, name) DO UPDATE SET matches = names.matches + excluded.matches`,
  `INSERT INTO clients SELECT DISTINCT organization, day, platform, client FROM buffer WHERE true
   ON CONFLICT (organization, day, platform, client) DO NOTHING`,
  'DELETE FROM buffer',
]
const SUMS = `SELECT (SELECT sum(matches) FROM days) AS matches, (SELECT count(*) FROM days) AS days, (SELECT count(*) FROM names) AS names`

export async function sqlitePeer(directory: string, install: boolean): Promise<ScanPeer | undefined> {
  const opened = await openSqlite(join(directory, 'scan.sqlite'), { install })
  if (opened === undefined) return undefined
  const { sqlite, name } = opened
  sqlite.exec(TABLES)
  const insert = sqlite.prepare('INSERT INTO buffer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)')
  return {
    name,
    fill(rows) {
      sqlite.exec('BEGIN')
      for (const row of rows) insert.run(...row)
      sqlite.exec('COMMIT')
    },
    scan() {
      sqlite.exec('BEGIN')
      for (const statement of SCAN) sqlite.exec(statement)
      sqlite.exec('COMMIT')
    },
    sums: () => sqlite.prepare(SUMS).get() as ScanSums,
    close: () => sqlite.close(),
  }
}

const DUCKDB = '@duckdb/node-api'
const DUCKDB_VERSION = '1.5.6-r.1'

/** The part of DuckDB's interface used here. */
interface DuckDb {
  readonly DuckDBInstance: { create(path: string): Promise<{ connect(): Promise<DuckConnection>; closeSync(): void }> }
}
interface DuckConnection {
  run(sql: string): Promise<unknown>
  runAndReadAll(sql: string): Promise<{ getRowObjects(): Record<string, unknown>[] }>
  createAppender(table: string): Promise<{
    appendInteger(value: number): void
    appendVarchar(value: string): void
    appendBigInt(value: bigint): void
    endRow(): void
    closeSync(): void
  }>
  closeSync(): void
}

export async function duckdbPeer(directory: string, install: boolean): Promise<ScanPeer | undefined> {
  const folder = peerFolder(DUCKDB, DUCKDB_VERSION, install)
  if (folder === undefined) {
    print(`no DuckDB here: ${DUCKDB} ${DUCKDB_VERSION} cannot be installed`)
    return undefined
  }
  const { DuckDBInstance } = createRequire(join(folder, 'package.json'))(DUCKDB) as DuckDb
  const instance = await DuckDBInstance.create(join(directory, 'scan.duckdb'))
  const connection = await instance.connect()
  // As many threads as a scan has.
  await connection.run('SET threads = 1')
  for (const statement of TABLES.split(';')) await connection.run(statement)
  return {
    name: `DuckDB ${DUCKDB_VERSION}, one thread`,
    async fill(rows) {
      const appender = await connection.createAppender('buffer')
      for (const [organization, day, platform, name, client, method, firstSeenMs, lastSeenMs, count] of rows) {
        for (const number of [organization, day, platform]) appender.appendInteger(number)
        appender.appendVarchar(name)
        appender.appendVarchar(client)
        appender.appendInteger(method)
        for (const number of [firstSeenMs, lastSeenMs, count]) appender.appendBigInt(BigInt(number))
        appender.endRow()
      }
      appender.closeSync()
    },
    async scan() {
      await connection.run('BEGIN')
      // In DuckDB, min and max are only aggregates; the smaller and larger of two values are least
      // and greatest.
      for (const statement of SCAN) {
        await connection.run(statement.replace('= min(', '= least(').replace('= max(', '= greatest('))
      }
      await connection.run('COMMIT')
    },
    async sums() {
      const [row] = (await connection.runAndReadAll(SUMS)).getRowObjects()
      return { matches: Number(row?.['matches']), days: Number(row?.['days']), names: Number(row?.['names']) }
    },
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
