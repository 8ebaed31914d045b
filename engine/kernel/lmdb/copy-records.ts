import { open, type RootDatabase } from 'lmdb'
import { READERS_MAX, TABLES_MAX } from './environment.ts'

type Tree = Pick<RootDatabase<Buffer, Buffer>, 'getRange' | 'putSync'>

/** Bytes written in one transaction, whose pages are in memory. */
const STEP_BYTES = 32 * 1024 * 1024
const BYTES = { keyEncoding: 'binary', encoding: 'binary' } as const

/**
 * Writes the records of an environment to a new one, whose pages are sound then. Run this in a
 * process of its own: LMDB trusts the pages that it reads, and ends the process on wrong ones.
 *
 * @param onBytes receives the size of the records so far
 * @throws Error for damage that LMDB does not notice
 */
export async function copyRecords(
  { from, to, bytesMax }: { readonly from: string; readonly to: string; readonly bytesMax: number },
  onBytes: (bytes: number) => void,
): Promise<void> {
  const options = { ...BYTES, noSubdir: false, maxDbs: TABLES_MAX, maxReaders: READERS_MAX }
  const source = open<Buffer, Buffer>({ ...options, path: from, readOnly: true })
  const target = open<Buffer, Buffer>({ ...options, path: to })
  let bytes = 0
  const copyTree = (tree: Tree, copy: Tree): void => {
    const records = tree.getRange({})[Symbol.iterator]()
    let last: Buffer | undefined
    for (let isDone = false; !isDone; onBytes(bytes)) {
      const stepEnd = bytes + STEP_BYTES
      target.transactionSync(() => {
        while (bytes < stepEnd) {
          const { done, value: record } = records.next()
          isDone = done === true
          if (isDone) return
          const { key, value } = record as { readonly key: Buffer; readonly value: Buffer }
          // Pages that lead back to themselves would never end.
          if (last !== undefined && Buffer.compare(last, key) >= 0) throw new Error('keys are not in order')
          bytes += key.length + value.length
          // The same value for many keys would fill the disk.
          if (bytes > bytesMax) throw new Error('its records are larger than the file')
          copy.putSync(key, value)
          last = Buffer.from(key)
        }
      })
    }
  }
  // The root has the names of the tables, and records. Opening a table ends the iteration.
  const entries: (readonly [key: Buffer, value: Buffer])[] = []
  let rootBytes = 0
  for (const { key, value } of source.getRange({})) {
    const [last] = entries.at(-1) ?? []
    if (last !== undefined && Buffer.compare(last, key) >= 0) throw new Error('keys are not in order')
    rootBytes += key.length + value.length
    if (rootBytes > bytesMax) throw new Error('its records are larger than the file')
    entries.push([Buffer.from(key), Buffer.from(value)])
  }
  for (const [key, value] of entries) {
    const name = key.toString('latin1')
    const table = source.openDB({ ...BYTES, name }) as Tree | undefined
    if (table === undefined) target.putSync(key, value)
    else copyTree(table, target.openDB({ ...BYTES, name }))
  }
  await source.close()
  await target.close()
}
