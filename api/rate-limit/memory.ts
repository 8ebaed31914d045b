import { randomUUID } from 'node:crypto'
import {
  type Collected,
  GRANT_BYTES,
  GRANT_MS,
  grantedOf,
  HASH_BYTES,
  type Question,
  RETRY_SECONDS,
  UNAVAILABLE,
  VERDICT_BYTES,
} from './protocol.ts'

const CHUNK_GRANTS_MIN = 64
const CHUNK_GRANTS_MAX = 16_384
/** About 100 MB, if each grant is of the last GRANT_MS: 69,000 requests/s of one node. */
const CHUNKS_MAX = 256
/** Homes within GRANT_MS whose grants a node witnesses. */
const HOMES_MAX = 8

interface Chunk {
  readonly number: number
  readonly hashes: Uint8Array
  readonly times: Float64Array
  length: number
}

/** Grants of the last GRANT_MS, in order of time. Bounded. */
export class Grants {
  readonly #chunks: Chunk[] = []
  #lastNumber = 0

  /** Adds a grant, whose hash is at an offset. Returns false if there are too many. */
  add(hashes: Uint8Array, offset: number, timeMs: number): boolean {
    let chunk = this.#chunks.at(-1)
    if (chunk === undefined || chunk.length === chunk.times.length) {
      this.#forget(timeMs)
      if (this.#chunks.length >= CHUNKS_MAX) return false
      const size = Math.min(CHUNK_GRANTS_MAX, CHUNK_GRANTS_MIN << Math.min(this.#chunks.length, 8))
      chunk = {
        number: ++this.#lastNumber,
        hashes: new Uint8Array(size * HASH_BYTES),
        times: new Float64Array(size),
        length: 0,
      }
      this.#chunks.push(chunk)
    }
    chunk.hashes.set(hashes.subarray(offset, offset + HASH_BYTES), chunk.length * HASH_BYTES)
    chunk.times[chunk.length++] = timeMs
    return true
  }

  isEmpty(nowMs: number): boolean {
    this.#forget(nowMs)
    return this.#chunks.length === 0
  }

  /** The part after part `after`, with ages. Part 0: there is none. */
  read(after: number, nowMs: number): { readonly part: number; readonly grants: Buffer } {
    this.#forget(nowMs)
    const chunk = this.#chunks.find(({ number }) => number > after)
    if (chunk === undefined) return { part: 0, grants: Buffer.alloc(0) }
    const grants = Buffer.alloc(chunk.length * GRANT_BYTES)
    let at = 0
    for (let index = 0; index < chunk.length; index++) {
      const ageMs = nowMs - (chunk.times[index] ?? 0)
      if (ageMs >= GRANT_MS) continue
      grants.set(chunk.hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES), at)
      // Rounded down, so that a grant counts slightly longer.
      grants.writeUInt16LE(Math.max(0, Math.floor(ageMs)), at + HASH_BYTES)
      at += GRANT_BYTES
    }
    return { part: chunk.number, grants: grants.subarray(0, at) }
  }

  /** All, as read() gives them. */
  all(nowMs: number): Buffer {
    const parts: Buffer[] = []
    for (let after = 0; ; ) {
      const { part, grants } = this.read(after, nowMs)
      if (part === 0) return Buffer.concat(parts)
      parts.push(grants)
      after = part
    }
  }

  #forget(nowMs: number): void {
    for (;;) {
      const [first] = this.#chunks
      if (first === undefined || nowMs - (first.times[first.length - 1] ?? 0) < GRANT_MS) return
      this.#chunks.shift()
    }
  }
}

/** What a node has to know after the death of the home: permits that it used, or witnessed. */
export class RateMemory {
  /** Permits that were not used because there were too many to remember. */
  notRemembered = 0
  readonly #nowMs: () => number
  /** Differs after each start of the node. */
  readonly instance = randomUUID()
  readonly #completeFromMs: number
  readonly #used = new Grants()
  /** By the home that used them. */
  readonly #witnessed = new Map<string, Grants>()
  #generation = 0

  /** @param completeFromMs when grants from before the start of the process have ended */
  constructor(nowMs: () => number, completeFromMs: number) {
    this.#nowMs = nowMs
    this.#completeFromMs = completeFromMs
  }

  get isComplete(): boolean {
    return this.#nowMs() >= this.#completeFromMs
  }

  /** The newest home that has collected. What earlier ones grant now, it does not know. */
  get generation(): number {
    return this.#generation
  }

  /** Remembers grants. Those beyond the limit become unavailable. */
  use(hashes: Uint8Array, verdicts: Uint8Array): void {
    const nowMs = this.#nowMs()
    for (const index of grantedOf(verdicts)) {
      if (this.#used.add(hashes, index * HASH_BYTES, nowMs)) continue
      this.notRemembered++
      verdicts[index * VERDICT_BYTES] = UNAVAILABLE
      verdicts[index * VERDICT_BYTES + 1] = RETRY_SECONDS
    }
  }

  /** Returns false if the home must not use the grants. */
  witness({ from, generation, hashes }: Extract<Question, { kind: 'witness' }>): boolean {
    if (generation < this.#generation) return false
    const nowMs = this.#nowMs()
    const grants = this.#witnessedOf(from, nowMs)
    if (grants === undefined) return false
    for (let offset = 0; offset < hashes.length; offset += HASH_BYTES) {
      if (!grants.add(hashes, offset, nowMs)) return false
    }
    return true
  }

  /** A part of what a node has used. Afterwards, earlier homes grant nothing here. */
  collect(own: string, { of, after, generation }: Extract<Question, { kind: 'collect' }>): Collected {
    this.#generation = Math.max(this.#generation, generation)
    const { isComplete } = this
    const grants = of === own ? this.#used : this.#witnessed.get(of)
    const none = { part: 0, grants: Buffer.alloc(0) }
    const read = isComplete ? (grants?.read(after, this.#nowMs()) ?? none) : none
    return { kind: 'collect', isComplete, instance: this.instance, ...read }
  }

  /** All grants by the node that used them, `own` for this one. */
  all(own: string): Map<string, Buffer> {
    const nowMs = this.#nowMs()
    const all = new Map([[own, this.#used.all(nowMs)]])
    for (const [home, grants] of this.#witnessed) all.set(home, grants.all(nowMs))
    return all
  }

  /** Adds grants that all() gave, `elapsedMs` ago. */
  resume(own: string, all: ReadonlyMap<string, Buffer>, elapsedMs: number): void {
    const nowMs = this.#nowMs()
    for (const [node, bytes] of all) {
      const grants = node === own ? this.#used : this.#witnessedOf(node, nowMs)
      for (let at = 0; at < bytes.length; at += GRANT_BYTES) {
        const ageMs = bytes.readUInt16LE(at + HASH_BYTES) + elapsedMs
        if (ageMs < GRANT_MS) grants?.add(bytes, at, nowMs - ageMs)
      }
    }
  }

  #witnessedOf(home: string, nowMs: number): Grants | undefined {
    const known = this.#witnessed.get(home)
    if (known !== undefined) return known
    for (const [each, grants] of this.#witnessed) if (grants.isEmpty(nowMs)) this.#witnessed.delete(each)
    if (this.#witnessed.size >= HOMES_MAX) return undefined
    const grants = new Grants()
    this.#witnessed.set(home, grants)
    return grants
  }
}
