import { createRequire } from 'node:module'
import { join } from 'node:path'
import { print } from '../harness.ts'
import { peerFolder } from './package.ts'

/** Not a dependency, because it compiles for a minute and only the comparisons need it. */
const PEER = 'better-sqlite3'
const PEER_VERSION = '12.11.1'

/** The common interface of node:sqlite and better-sqlite3. */
export interface Sqlite {
  exec(sql: string): unknown
  prepare(sql: string): { run(...values: unknown[]): unknown; all(...values: unknown[]): unknown[]; get(): unknown }
  close(): void
}

/**
 * Opens an SQLite database with the durability of our stores: write-ahead log, flushed at each
 * commit (synchronous=FULL). Returns undefined and prints the reason if there is no SQLite and none
 * can be installed.
 */
export async function openSqlite(
  file: string,
  options: { readonly install: boolean },
): Promise<{ readonly sqlite: Sqlite; readonly name: string } | undefined> {
  const opened = await open(file, options.install)
  opened?.sqlite.exec('PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL')
  return opened
}

async function open(file: string, install: boolean): Promise<{ sqlite: Sqlite; name: string } | undefined> {
  const builtIn = 'node:sqlite'
  try {
    const { DatabaseSync } = (await import(builtIn)) as { DatabaseSync: new (file: string) => Sqlite }
    return { sqlite: new DatabaseSync(file), name: `node:sqlite of ${process.version}` }
  } catch {
    // Node 20 has none.
  }
  const folder = peerFolder(PEER, PEER_VERSION, install)
  if (folder === undefined) {
    print(`no SQLite here: Node 22 brings one, or ${PEER} ${PEER_VERSION}`)
    return undefined
  }
  const Database = createRequire(join(folder, 'package.json'))(PEER) as new (file: string) => Sqlite
  return { sqlite: new Database(file), name: `${PEER} ${PEER_VERSION}` }
}
