/*
 * How many different clients were seen, in bounded memory.
 *
 * Few clients are kept exactly, as their 32-bit hashes; many become a HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007)
 * of 2,048 registers, whose standard error is 1.04 / sqrt(2048) = 2.3%. Two sketches merge into what one sketch of all
 * clients would be.
 *
 *   byte 0       form: 0 exact, 1 registers
 *   exact        hashes, u32 little-endian, ascending, no two the same
 *   registers    2,048 bytes, each the longest run of leading zeros (plus one) seen behind its index
 */
const EXACT = 0
const REGISTERS = 1
export const EXACT_CLIENTS_MAX = 256
const INDEX_BITS = 11
const REGISTER_COUNT = 1 << INDEX_BITS
/** HyperLogLog's bias constant for 128 registers and more. */
const ALPHA = 0.7213 / (1 + 1.079 / REGISTER_COUNT)
/** One standard deviation, as a share of the estimate; 0 while the sketch is exact. */
export const ESTIMATE_ERROR = 1.04 / Math.sqrt(REGISTER_COUNT)

export class DistinctClients {
  #hashes: Set<number> | undefined = new Set()
  #registers: Uint8Array | undefined

  static fromBytes(bytes: Uint8Array): DistinctClients {
    const sketch = new DistinctClients()
    if (bytes[0] === REGISTERS) {
      sketch.#hashes = undefined
      sketch.#registers = Uint8Array.from(bytes.subarray(1))
      return sketch
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 1; at + 4 <= bytes.byteLength; at += 4) sketch.#hashes?.add(view.getUint32(at, true))
    return sketch
  }

  toBytes(): Uint8Array {
    if (this.#registers !== undefined) {
      const bytes = new Uint8Array(1 + REGISTER_COUNT)
      bytes[0] = REGISTERS
      bytes.set(this.#registers, 1)
      return bytes
    }
    const hashes = [...(this.#hashes ?? [])].sort((a, b) => a - b)
    const bytes = new Uint8Array(1 + hashes.length * 4)
    bytes[0] = EXACT
    const view = new DataView(bytes.buffer)
    for (const [index, hash] of hashes.entries()) view.setUint32(1 + index * 4, hash, true)
    return bytes
  }

  add(client: string): void {
    this.#addHash(hashOf(client))
  }

  merge(other: DistinctClients): void {
    if (other.#registers === undefined) {
      for (const hash of other.#hashes ?? []) this.#addHash(hash)
      return
    }
    const registers = this.#becomeRegisters()
    for (const [index, run] of other.#registers.entries()) {
      if (run > (registers[index] ?? 0)) registers[index] = run
    }
  }

  get exact(): boolean {
    return this.#registers === undefined
  }

  /** The number of clients: exact up to EXACT_CLIENTS_MAX, an estimate beyond. */
  get estimate(): number {
    if (this.#registers === undefined) return this.#hashes?.size ?? 0
    let sum = 0
    let empty = 0
    for (const run of this.#registers) {
      sum += 2 ** -run
      if (run === 0) empty++
    }
    const raw = (ALPHA * REGISTER_COUNT * REGISTER_COUNT) / sum
    // Linear counting is closer while many registers are empty.
    if (raw <= 2.5 * REGISTER_COUNT && empty > 0) return Math.round(REGISTER_COUNT * Math.log(REGISTER_COUNT / empty))
    return Math.round(raw)
  }

  #addHash(hash: number): void {
    if (this.#hashes !== undefined) {
      this.#hashes.add(hash)
      if (this.#hashes.size > EXACT_CLIENTS_MAX) this.#becomeRegisters()
      return
    }
    if (this.#registers !== undefined) register(this.#registers, hash)
  }

  #becomeRegisters(): Uint8Array {
    if (this.#registers === undefined) {
      this.#registers = new Uint8Array(REGISTER_COUNT)
      for (const hash of this.#hashes ?? []) register(this.#registers, hash)
      this.#hashes = undefined
    }
    return this.#registers
  }
}

function register(registers: Uint8Array, hash: number): void {
  const index = hash >>> (32 - INDEX_BITS)
  const run = Math.clz32((hash << INDEX_BITS) | (1 << (INDEX_BITS - 1))) + 1
  if (run > (registers[index] ?? 0)) registers[index] = run
}

/** FNV-1a over the UTF-16 code units, then MurmurHash3's finalizer, which spreads near addresses over all 32 bits. */
function hashOf(client: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < client.length; at++) hash = Math.imul(hash ^ client.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
