import { isUpper } from './bytes.ts'

/** As many queries as a busy server has open at a time. A power of two. */
const QUERIES = 4096
/** After this time without a query, a server is assumed to log only answers. */
const QUERIES_MS = 3_600_000

/** A LogLine whose client was taken. */
type QueryLine = Readonly<Record<'clientStart' | 'clientEnd' | 'referenceMs', number>> & { readonly view: DataView }

/**
 * The latest queries of a source: a hash of client and name, in a slot of its own. A server's
 * answer repeats its query, but another server of the same source may log only answers.
 */
export class RecentQueries {
  /** Allocated with the first query. 0: free. */
  #hashes: Int32Array | undefined
  #lastMs = Number.NaN

  /** Notes the query for the name in [start, end) that `line` has. */
  add(line: QueryLine, start: number, end: number): void {
    this.#hashes ??= new Int32Array(QUERIES)
    const hash = hashOf(line, start, end)
    this.#hashes[hash & (QUERIES - 1)] = hash
    this.#lastMs = line.referenceMs
  }

  has(line: QueryLine, start: number, end: number): boolean {
    if (this.#hashes === undefined || !(Math.abs(line.referenceMs - this.#lastMs) <= QUERIES_MS)) return false
    const hash = hashOf(line, start, end)
    return this.#hashes[hash & (QUERIES - 1)] === hash
  }
}

/** FNV-1a, 32 bit, of both texts; names in lower case, because clients mix the case of letters. */
function hashOf({ view, clientStart, clientEnd }: QueryLine, nameStart: number, nameEnd: number): number {
  let hash = 0x811c9dc5
  for (let at = clientStart; at < clientEnd; at++) hash = Math.imul(hash ^ view.getUint8(at), 0x01000193)
  for (let at = nameStart; at < nameEnd; at++) {
    const byte = view.getUint8(at)
    hash = Math.imul(hash ^ (isUpper(byte) ? byte | 0x20 : byte), 0x01000193)
  }
  return (hash ^ (hash >>> 15)) | 1
}
