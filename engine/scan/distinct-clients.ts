/*
 * Counts distinct clients in bounded memory.
 *
 * Few clients are stored exactly, as 32-bit hashes. Many become a HyperLogLog (Flajolet, Fusy,
 * Gandouet, Meunier 2007) of 2,048 registers with a standard error of 1.04 / sqrt(2048) = 2.3%.
 * Merging two sketches gives the sketch of all clients.
 *
 *   byte 0       form: 0 exact, 1 registers
 *   exact        distinct hashes, u32 little-endian, ascending
 *   registers    2,048 bytes: the longest run of leading zeros after the index, plus one
 */
const EXACT = 0
const REGISTERS = 1
export const EXACT_CLIENTS_MAX = 256
const INDEX_BITS = 11
const REGISTER_COUNT = 1 << INDEX_BITS
/** HyperLogLog's bias correction for at least 128 registers. */
const ALPHA = 0.7213 / (1 + 1.079 / REGISTER_COUNT)
/** Linear counting is used up to this number of clients. */
const LINEAR_MAX = 2.5 * REGISTER_COUNT
/** The relative standard error of an estimate. An exact count has none. */
export const ESTIMATE_ERROR = 1.04 / Math.sqrt(REGISTER_COUNT)

/** Initial slots of the exact form. They double when half full. A power of two. */
const SLOTS_MIN = 8
/** Up to this number, insertion sort is faster than TypedArray.sort(). */
const FEW = 32
/** The slots of a sketch without clients. */
const NO_SLOTS = new Uint32Array(0)
/** Scratch space of toBytes. */
const sorted = new Uint32Array(EXACT_CLIENTS_MAX)
/** Marks an empty slot. No hash is 0. */
const NO_HASH = 0
/** Knuth's multiplicative hashing: 2^32 / the golden ratio. */
const SPREAD = 0x9e3779b1

export class DistinctClients {
  /** While exact: an open-addressed hash table. */
  #slots = NO_SLOTS
  #count = 0
  #registers: Uint8Array | undefined

  static fromBytes(bytes: Uint8Array): DistinctClients {
    const sketch = new DistinctClients()
    sketch.mergeBytes(bytes)
    return sketch
  }

  /** A sketch of the same clients. */
  clone(): DistinctClients {
    const copy = new DistinctClients()
    copy.#slots = this.#slots === NO_SLOTS ? NO_SLOTS : this.#slots.slice()
    copy.#count = this.#count
    copy.#registers = this.#registers?.slice()
    return copy
  }

  /** Whether these are all clients of a sketch that has at least these. */
  isAllOf(all: DistinctClients): boolean {
    const [ours, theirs] = [this.#registers, all.#registers]
    if (ours === undefined || theirs === undefined) return ours === theirs && this.#count === all.#count
    return Buffer.compare(ours, theirs) === 0
  }

  toBytes(): Uint8Array {
    if (this.#registers !== undefined) {
      const bytes = new Uint8Array(1 + REGISTER_COUNT)
      bytes[0] = REGISTERS
      bytes.set(this.#registers, 1)
      return bytes
    }
    // With TypedArray.filter(), 20 clients take four times as long.
    let count = 0
    for (const hash of this.#slots) {
      if (hash === NO_HASH) continue
      let at = count++
      if (this.#count <= FEW) {
        for (; at > 0 && (sorted[at - 1] ?? 0) > hash; at--) sorted[at] = sorted[at - 1] ?? 0
      }
      sorted[at] = hash
    }
    if (count > FEW) sorted.subarray(0, count).sort()
    const bytes = new Uint8Array(1 + count * 4)
    bytes[0] = EXACT
    for (let index = 0, at = 1; index < count; index++) {
      const hash = sorted[index] ?? 0
      bytes[at++] = hash
      bytes[at++] = hash >>> 8
      bytes[at++] = hash >>> 16
      bytes[at++] = hash >>> 24
    }
    return bytes
  }

  /** Adds a client by its hash (hashClient). */
  add(hash: number): void {
    if (this.#registers !== undefined) {
      register(this.#registers, hash)
      return
    }
    if (this.#slots === NO_SLOTS) this.#slots = new Uint32Array(SLOTS_MIN)
    const mask = this.#slots.length - 1
    let slot = (Math.imul(hash, SPREAD) >>> 16) & mask
    for (let found = this.#slots[slot]; found !== NO_HASH; found = this.#slots[slot]) {
      if (found === hash) return
      slot = (slot + 1) & mask
    }
    this.#slots[slot] = hash
    this.#count++
    if (this.#count > EXACT_CLIENTS_MAX) this.#toRegisters()
    else if (this.#count * 2 > this.#slots.length) this.#resize(this.#slots.length * 2)
  }

  merge(other: DistinctClients): void {
    if (other.#registers === undefined) {
      this.#reserve(other.#count)
      for (const hash of other.#slots) if (hash !== NO_HASH) this.add(hash)
    } else this.#mergeRegisters(other.#registers)
  }

  /** Like merge, from the bytes of toBytes. */
  mergeBytes(bytes: Uint8Array): void {
    if (bytes[0] === REGISTERS) return this.#mergeRegisters(bytes.subarray(1))
    this.#reserve((bytes.length - 1) >> 2)
    for (let at = 1; at + 4 <= bytes.length; at += 4) {
      const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16)
      this.add((low | ((bytes[at + 3] ?? 0) << 24)) >>> 0 || 1)
    }
  }

  get exact(): boolean {
    return this.#registers === undefined
  }

  /** The number of clients: exact up to EXACT_CLIENTS_MAX, then an estimate. */
  get estimate(): number {
    if (this.#registers === undefined) return this.#count
    let sum = 0
    let empty = 0
    for (const run of this.#registers) {
      sum += POWERS[run] ?? 0
      if (run === 0) empty++
    }
    // Linear counting is more accurate while many registers are empty. Both estimates grow with
    // every client, and the switch between them never lowers the result.
    const linear = empty === 0 ? Number.POSITIVE_INFINITY : REGISTER_COUNT * Math.log(REGISTER_COUNT / empty)
    if (linear <= LINEAR_MAX) return Math.max(EXACT_CLIENTS_MAX + 1, Math.round(linear))
    return Math.round(Math.max(LINEAR_MAX, (ALPHA * REGISTER_COUNT * REGISTER_COUNT) / sum))
  }

  #mergeRegisters(others: Uint8Array): void {
    const registers = this.#toRegisters()
    for (let index = 0; index < REGISTER_COUNT; index++) {
      const run = others[index] ?? 0
      if (run > (registers[index] ?? 0)) registers[index] = run
    }
  }

  /** Grows once for `count` hashes. Repeated doubling would move each hash several times. */
  #reserve(count: number): void {
    if (this.#registers !== undefined) return
    let slots = Math.max(SLOTS_MIN, this.#slots.length)
    while (slots < count * 2) slots *= 2
    if (slots > this.#slots.length && count > 0) this.#resize(slots)
  }

  #resize(slots: number): void {
    const hashes = this.#slots
    this.#slots = new Uint32Array(slots)
    this.#count = 0
    for (const hash of hashes) if (hash !== NO_HASH) this.add(hash)
  }

  #toRegisters(): Uint8Array {
    if (this.#registers === undefined) {
      this.#registers = new Uint8Array(REGISTER_COUNT)
      for (const hash of this.#slots) if (hash !== NO_HASH) register(this.#registers, hash)
      this.#slots = NO_SLOTS
    }
    return this.#registers
  }
}

/**
 * Replaces the clients of sketches by others, so that no client can be recognized and the estimates
 * stay the same. Clients that two sketches have in common stay common.
 *
 * The register of a hash is replaced by another one, and the bits below its leading one by others,
 * so that a later change to registers gives the same result.
 */
export class HashReplacement {
  readonly #keyed: (number: number) => number
  readonly #registerOf: Uint16Array

  /** @param keyed a random function, which is forgotten afterwards */
  constructor(keyed: (number: number) => number) {
    this.#keyed = keyed
    const order = Array.from({ length: REGISTER_COUNT }, (_, index) => ({ index, at: keyed(-1 - index) }))
    order.sort((a, b) => a.at - b.at || a.index - b.index)
    this.#registerOf = Uint16Array.from(order, ({ index }) => index)
  }

  /** Returns a sketch of other clients. */
  apply(bytes: Uint8Array): Uint8Array {
    if (bytes[0] === REGISTERS) {
      const replaced = new Uint8Array(bytes.length)
      replaced[0] = REGISTERS
      for (const [index, register] of this.#registerOf.entries()) replaced[1 + register] = bytes[1 + index] ?? 0
      return replaced
    }
    const clients = new DistinctClients()
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 1; at + 4 <= bytes.byteLength; at += 4) {
      const hash = view.getUint32(at, true)
      // Two hashes that became equal would count as one client.
      const before = clients.estimate
      for (let attempt = 0; clients.estimate === before && attempt < 10; attempt++) {
        clients.add(this.#other(hash, attempt * 2 ** 32))
      }
    }
    return clients.toBytes()
  }

  #other(hash: number, attempt: number): number {
    const register = this.#registerOf[hash >>> (32 - INDEX_BITS)] ?? 0
    const rest = hash & (2 ** (32 - INDEX_BITS) - 1)
    const leading = rest === 0 ? 0 : 1 << (31 - Math.clz32(rest))
    const below = leading === 0 ? 0 : this.#keyed(hash + attempt) & (leading - 1)
    return ((register << (32 - INDEX_BITS)) | leading | below) >>> 0 || 1
  }
}

/** Whether toBytes could have written these bytes. */
export function isSketch(bytes: Uint8Array): boolean {
  if (bytes[0] === REGISTERS) {
    return bytes.length === 1 + REGISTER_COUNT && bytes.subarray(1).every((run) => run <= RUN_MAX)
  }
  const count = (bytes.length - 1) / 4
  if (bytes[0] !== EXACT || !Number.isInteger(count) || count > EXACT_CLIENTS_MAX) return false
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let before = NO_HASH
  for (let at = 1; at < bytes.length; at += 4) {
    const hash = view.getUint32(at, true)
    if (hash <= before) return false
    before = hash
  }
  return true
}

/** All bits after the index are zero. */
const RUN_MAX = 32 - INDEX_BITS + 1
/** 2^-run for each possible run of 32 bits. */
const POWERS = Float64Array.from({ length: 33 }, (_, run) => 2 ** -run)

function register(registers: Uint8Array, hash: number): void {
  const index = hash >>> (32 - INDEX_BITS)
  const run = Math.clz32((hash << INDEX_BITS) | (1 << (INDEX_BITS - 1))) + 1
  if (run > (registers[index] ?? 0)) registers[index] = run
}

/**
 * The hash of a client address, ASCII text in [start, end): FNV-1a, then MurmurHash3's finalizer,
 * which spreads similar addresses over all 32 bits.
 */
export function hashClient(view: DataView, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ view.getUint8(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0 || 1
}
