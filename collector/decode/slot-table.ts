import { KeyedHash } from '../../registry/keyed-hash.ts'
import { BUCKET_MAX } from '../limits.ts'

/**
 * A table of fixed size that maps keys (addresses and ports) to slots. Its owner keeps its own
 * columns, indexed by slot. Nothing is allocated after construction. Each slot is in one of two
 * lists, ordered by last use: `keeping` for slots with kept bytes, `idle` for the others, which are
 * evicted first.
 *
 *     key, 48 bytes:  0  16  first address, as on the wire; IPv4 in the first 4, the rest zero
 *                    16  16  second address
 *                    32  u32 both ports, or an identification
 *                    36  u32 protocol, and 4 or 6 in the high byte
 *                    40  u32 the virtual network, 0 for none
 *                    44  4   zero
 */
export const KEY_BYTES = 48
export const KEY_FIRST = 0
export const KEY_SECOND = 16
export const KEY_PORTS = 32
const KEY_PROTOCOL = 36
const KEY_NETWORK = 40
const KEY_WORDS = KEY_BYTES / 4
const keyed = new KeyedHash(KEY_NETWORK + 4)

export const NO_SLOT = -1

export const SlotList = { idle: 0, keeping: 1 } as const
export type SlotList = (typeof SlotList)[keyof typeof SlotList]

export class SlotTable {
  /** The keys, in shared memory like all views of the packet path. */
  readonly keys: DataView
  readonly #words: Uint32Array
  /** The key for find() and add(), set by prepare(). */
  readonly #wanted = new Uint32Array(KEY_WORDS)
  #wantedHash = 0
  readonly #buckets: Int32Array
  readonly #mask: number
  readonly #hashes: Uint32Array
  readonly #nextInBucket: Int32Array
  readonly #older: Int32Array
  readonly #newer: Int32Array
  readonly #list: Uint8Array
  readonly #seconds: Uint32Array
  readonly #oldest = [NO_SLOT, NO_SLOT]
  readonly #newest = [NO_SLOT, NO_SLOT]
  #freed = NO_SLOT
  #unused = 0
  readonly #slots: number
  /** Entries of the bucket that find() searched without finding the prepared key; the last one. */
  passed = 0
  #lastPassed = NO_SLOT
  size = 0

  constructor(slots: number) {
    const memory = new SharedArrayBuffer(slots * KEY_BYTES)
    this.keys = new DataView(memory)
    this.#words = new Uint32Array(memory)
    const buckets = 2 ** Math.ceil(Math.log2(slots * 2))
    this.#buckets = new Int32Array(buckets).fill(NO_SLOT)
    this.#mask = buckets - 1
    this.#hashes = new Uint32Array(slots)
    this.#nextInBucket = new Int32Array(slots)
    this.#older = new Int32Array(slots)
    this.#newer = new Int32Array(slots)
    this.#list = new Uint8Array(slots)
    this.#seconds = new Uint32Array(slots)
    this.#slots = slots
  }

  /** Sets the key for the next find() or add(). The second address follows the first. */
  prepare(view: DataView, addresses: number, addressBytes: number, ports: number, protocol: number, network = 0): void {
    const wanted = this.#wanted
    const version = addressBytes === 4 ? 0x0400_0000 : 0x0600_0000
    // The version is in the key, so the zeros of IPv4 need not be hashed.
    let hash = keyed.word(protocol | version, KEY_PROTOCOL, keyed.word(ports, KEY_PORTS, 0))
    // All words are read in native byte order: keys are compared only with keys, and their bytes
    // are read back as bytes.
    if (addressBytes === 4) {
      const first = view.getUint32(addresses, LITTLE_ENDIAN)
      const second = view.getUint32(addresses + 4, LITTLE_ENDIAN)
      wanted[0] = first
      wanted[1] = 0
      wanted[2] = 0
      wanted[3] = 0
      wanted[4] = second
      wanted[5] = 0
      wanted[6] = 0
      wanted[7] = 0
      hash = keyed.word(second, KEY_SECOND, keyed.word(first, KEY_FIRST, hash))
    } else {
      for (let word = 0; word < 8; word++) {
        const value = view.getUint32(addresses + word * 4, LITTLE_ENDIAN)
        wanted[word] = value
        hash = keyed.word(value, word * 4, hash)
      }
    }
    if (network !== 0) hash = keyed.word(network, KEY_NETWORK, hash)
    wanted[KEY_NETWORK / 4] = network
    wanted[KEY_PORTS / 4] = ports
    wanted[KEY_PROTOCOL / 4] = protocol | version
    this.#wantedHash = hash >>> 0
    this.passed = 0
  }

  /** Returns the slot of the prepared key, or NO_SLOT. */
  find(): number {
    const hash = this.#wantedHash
    let slot = this.#buckets[hash & this.#mask] ?? 0
    let passed = 0
    while (slot !== NO_SLOT) {
      if (this.#hashes[slot] === hash && this.#same(slot)) return slot
      passed++
      this.#lastPassed = slot
      slot = this.#nextInBucket[slot] ?? 0
    }
    this.passed = passed
    return NO_SLOT
  }

  #same(slot: number): boolean {
    const words = this.#words
    const wanted = this.#wanted
    const at = slot * KEY_WORDS
    for (let word = 0; word <= KEY_NETWORK / 4; word++) if (words[at + word] !== wanted[word]) return false
    return true
  }

  /** Whether a slot must be evicted before the prepared key is added. */
  get full(): boolean {
    return (this.#freed === NO_SLOT && this.#unused === this.#slots) || this.passed >= BUCKET_MAX
  }

  /**
   * Adds the prepared key as the newest of the idle list and returns its slot. find() must not have
   * found the key, and the table must not be full.
   */
  add(seconds: number): number {
    let slot = this.#freed
    if (slot === NO_SLOT) slot = this.#unused++
    else this.#freed = this.#nextInBucket[slot] ?? 0
    this.#words.set(this.#wanted, slot * KEY_WORDS)
    const bucket = this.#wantedHash & this.#mask
    this.#hashes[slot] = this.#wantedHash
    this.#nextInBucket[slot] = this.#buckets[bucket] ?? 0
    this.#buckets[bucket] = slot
    this.#append(slot, SlotList.idle, seconds)
    this.size++
    return slot
  }

  remove(slot: number): void {
    this.#unlink(slot)
    const bucket = (this.#hashes[slot] ?? 0) & this.#mask
    let before = this.#buckets[bucket] ?? 0
    if (before === slot) this.#buckets[bucket] = this.#nextInBucket[slot] ?? 0
    else {
      while (this.#nextInBucket[before] !== slot) before = this.#nextInBucket[before] ?? 0
      this.#nextInBucket[before] = this.#nextInBucket[slot] ?? 0
    }
    this.#nextInBucket[slot] = this.#freed
    this.#freed = slot
    this.passed = 0
    this.size--
  }

  /** Makes the slot the newest of a list. */
  touch(slot: number, list: SlotList, seconds: number): void {
    if (this.#newest[list] === slot) {
      this.#seconds[slot] = seconds
      return
    }
    this.#unlink(slot)
    this.#append(slot, list, seconds)
  }

  /** The least recently used slot of a list, or NO_SLOT. */
  oldest(list: SlotList): number {
    return this.#oldest[list] ?? 0
  }

  /** The slot to evict if the table is full: the oldest of a full bucket, else first. */
  get victim(): number {
    return this.passed >= BUCKET_MAX ? this.#lastPassed : this.first
  }

  /** The slot that was used the longest ago, idle ones before those with kept bytes. */
  get first(): number {
    const idle = this.oldest(SlotList.idle)
    return idle === NO_SLOT ? this.oldest(SlotList.keeping) : idle
  }

  /** When the slot was last used, in seconds of capture time. */
  seconds(slot: number): number {
    return this.#seconds[slot] ?? 0
  }

  /** The hash of the slot's key. */
  hash(slot: number): number {
    return this.#hashes[slot] ?? 0
  }

  /** Returns a word of the key. */
  word(slot: number, index: number): number {
    return this.#words[slot * KEY_WORDS + index] ?? 0
  }
  protocol(slot: number): number {
    return this.word(slot, KEY_PROTOCOL / 4) & 0xff
  }
  version(slot: number): number {
    return this.word(slot, KEY_PROTOCOL / 4) >>> 24
  }

  list(slot: number): SlotList {
    return this.#list[slot] as SlotList
  }

  #append(slot: number, list: SlotList, seconds: number): void {
    const newest = this.#newest[list] ?? 0
    this.#older[slot] = newest
    this.#newer[slot] = NO_SLOT
    if (newest === NO_SLOT) this.#oldest[list] = slot
    else this.#newer[newest] = slot
    this.#newest[list] = slot
    this.#list[slot] = list
    this.#seconds[slot] = seconds
  }

  #unlink(slot: number): void {
    const list = this.#list[slot] ?? 0
    const older = this.#older[slot] ?? 0
    const newer = this.#newer[slot] ?? 0
    if (older === NO_SLOT) this.#oldest[list] = newer
    else this.#newer[older] = newer
    if (newer === NO_SLOT) this.#newest[list] = older
    else this.#older[newer] = older
  }
}

const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1
