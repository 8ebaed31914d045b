import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from './sqlite.ts'

/** A queue in an SQLite table, with the same durability (sqlite.ts). Undefined without SQLite. */
export async function sqliteQueue(
  directory: string,
  { entryOf, firstSeenOf }: { entryOf(number: number): Buffer; firstSeenOf(bytes: Buffer, at: number): number },
  options: { readonly install: boolean },
) {
  mkdirSync(directory)
  const opened = await openSqlite(join(directory, 'queue.sqlite'), options)
  if (opened === undefined) return undefined
  const { sqlite, name } = opened
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
