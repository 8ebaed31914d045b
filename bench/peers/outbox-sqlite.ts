import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { print } from '../compare.ts'

/** Not among the dependencies: it is compiled for a minute, and only this comparison needs it. */
const PEER = 'better-sqlite3'
const PEER_VERSION = '12.11.1'

/** What node:sqlite and better-sqlite3 have in common. */
interface Sqlite {
  exec(sql: string): unknown
  prepare(sql: string): { run(...values: unknown[]): unknown; all(...values: unknown[]): unknown[]; get(): unknown }
  close(): void
}

/**
 * A queue in an SQLite table, with the same durability: write-ahead log, flushed at each commit (synchronous=FULL). undefined, and a line that
 * says why, where there is no SQLite and none can be installed.
 */
export async function openSqlite(
  directory: string,
  { entryOf, firstSeenOf }: { entryOf(number: number): Buffer; firstSeenOf(bytes: Buffer, at: number): number },
  options: { readonly install: boolean },
) {
  mkdirSync(directory)
  const opened = await open(join(directory, 'queue.sqlite'), options.install)
  if (opened === undefined) return undefined
  const { sqlite, name } = opened
  sqlite.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL')
  sqlite.exec('CREATE TABLE queue (sequence INTEGER PRIMARY KEY, entry BLOB NOT NULL)')
  const insert = sqlite.prepare('INSERT INTO queue (entry) VALUES (?)')
  const oldest = sqlite.prepare('SELECT sequence, entry FROM queue ORDER BY sequence LIMIT ?')
  const remove = sqlite.prepare('DELETE FROM queue WHERE sequence <= ?')
  return {
    name,
    write(from: number, count: number) {
      sqlite.exec('BEGIN')
      for (let at = from; at < from + count; at++) insert.run(entryOf(at))
      sqlite.exec('COMMIT')
    },
    take(countMax: number) {
      const rows = oldest.all(countMax) as { sequence: number; entry: Uint8Array }[]
      let checksum = 0
      for (const { entry } of rows) {
        checksum += firstSeenOf(Buffer.from(entry.buffer, entry.byteOffset, entry.byteLength), 0)
      }
      remove.run(rows.at(-1)?.sequence ?? 0)
      return { count: rows.length, checksum }
    },
    close: () => sqlite.close(),
  }
}

async function open(file: string, install: boolean): Promise<{ sqlite: Sqlite; name: string } | undefined> {
  const builtIn = 'node:sqlite'
  try {
    const { DatabaseSync } = (await import(builtIn)) as { DatabaseSync: new (file: string) => Sqlite }
    return { sqlite: new DatabaseSync(file), name: `node:sqlite of ${process.version}` }
  } catch {
    // Node 20 has none.
  }
  const folder = join(tmpdir(), `posture-bench-${PEER}-${PEER_VERSION}`)
  if (!existsSync(join(folder, 'node_modules', PEER)) && !(install && installInto(folder))) {
    print(`no SQLite here: Node 22 brings one, or ${PEER} ${PEER_VERSION} in ${folder}`)
    return undefined
  }
  const Database = createRequire(join(folder, 'package.json'))(PEER) as new (file: string) => Sqlite
  return { sqlite: new Database(file), name: `${PEER} ${PEER_VERSION}` }
}

function installInto(folder: string): boolean {
  print(`installing the peer ${PEER} ${PEER_VERSION}, which takes a minute`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, allowScripts: { [PEER]: true } }))
  const words = ['install', '--no-audit', '--no-fund', '--loglevel=error', `${PEER}@${PEER_VERSION}`]
  return spawnSync('npm', words, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] }).status === 0
}
