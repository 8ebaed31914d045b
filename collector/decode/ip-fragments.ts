import { Counter, countUp } from '../batch/counters.ts'
import {
  DATAGRAM_BYTES_MAX,
  DATAGRAM_LONG_BUFFERS,
  DATAGRAM_SECONDS,
  DATAGRAM_SHORT_BUFFERS,
  DATAGRAMS_MAX,
  LONG_BUFFER_BYTES,
  SHORT_BUFFER_BYTES,
  TUNNELS_MAX,
} from '../limits.ts'
import { ByteWindows, NO_BUFFER } from './byte-windows.ts'
import type { IpHeader } from './ip.ts'
import { NO_SLOT, SlotList, SlotTable } from './slot-table.ts'

/**
 * Reassembles IP datagrams (RFC 791 §3.2, RFC 8200 §4.5). In overlapping IPv4 fragments, the first
 * copy of a byte wins. IPv6 fragments must not overlap: such a datagram is discarded with its later
 * fragments (RFC 5722 §4). An exact repetition is not an overlap.
 */

const UNKNOWN = -1

export class IpFragments {
  /** The memory of the reassembled datagrams. */
  readonly view: DataView
  readonly bytes: Uint8Array
  /** The datagram that add() completed: bytes [start, end) of `view`. */
  start = 0
  end = 0
  readonly #counters: Uint32Array
  readonly #table: SlotTable
  readonly #windows: ByteWindows
  readonly #buffer = new Int32Array(DATAGRAMS_MAX)
  /** Length of the whole payload, known from the last fragment. */
  readonly #length = new Int32Array(DATAGRAMS_MAX)
  /** 1 after overlapping fragments: no more bytes of the datagram are kept. */
  readonly #discarded = new Uint8Array(DATAGRAMS_MAX)
  /** For IPv6, the protocol of the first fragment (RFC 8200 §4.5). */
  readonly #protocol = new Int32Array(DATAGRAMS_MAX)
  /** Buffers with datagrams of the current packet. reclaim() releases them. */
  readonly #heldWindows = new Int32Array(TUNNELS_MAX)
  #heldWindowCount = 0

  constructor(counters: Uint32Array) {
    this.#counters = counters
    this.#table = new SlotTable(DATAGRAMS_MAX)
    this.#windows = new ByteWindows(
      SHORT_BUFFER_BYTES,
      DATAGRAM_SHORT_BUFFERS,
      LONG_BUFFER_BYTES,
      DATAGRAM_LONG_BUFFERS,
    )
    this.view = this.#windows.view
    this.bytes = this.#windows.bytes
  }

  /** Releases the buffers of the previous packet. */
  reclaim(): void {
    while (this.#heldWindowCount > 0) this.#windows.release(this.#heldWindows[--this.#heldWindowCount] ?? 0)
  }

  /** Discards datagrams that were not completed in time. */
  expire(seconds: number): void {
    for (;;) {
      const slot = this.#table.oldest(SlotList.idle)
      if (slot === NO_SLOT || ((seconds - this.#table.seconds(slot)) | 0) <= DATAGRAM_SECONDS) return
      this.#drop(slot)
      countUp(this.#counters, Counter.datagramsTimedOut)
    }
  }

  /**
   * Adds the fragment in bytes [from, ip.end) of `view`. Returns true if it completes its datagram.
   * The datagram is then in this.view until reclaim(), and ip.protocol is the protocol of the first
   * fragment.
   */
  add(view: DataView, from: number, ip: IpHeader, seconds: number, network: number): boolean {
    const bytes = ip.end - from
    const end = ip.fragmentOffset + bytes
    // A truncated fragment leaves a gap that is never filled. RFC 8200 §4.5: the length of every
    // fragment except the last is a multiple of 8 bytes.
    if (bytes <= 0 || ip.truncated === 1 || end > DATAGRAM_BYTES_MAX) return false
    if (ip.moreFragments === 1 && (bytes & 7) !== 0) return false
    const table = this.#table
    table.prepare(view, ip.source, ip.addressBytes, ip.identification, ip.version === 4 ? ip.protocol : 0, network)
    let slot = table.find()
    if (slot === NO_SLOT) {
      slot = this.#begin(seconds, end)
      if (slot === NO_SLOT) return false
    }
    if (this.#discarded[slot] === 1) return false
    if (!this.#ensureCapacity(slot, end)) return false
    const buffer = this.#buffer[slot] ?? 0
    const added = this.#windows.put(buffer, ip.fragmentOffset, view, from, ip.end)
    if (ip.version === 6 && added !== 0 && added !== bytes) return this.#discard(slot)
    if (ip.fragmentOffset === 0) this.#protocol[slot] = ip.protocol
    if (ip.moreFragments === 0 && this.#length[slot] === UNKNOWN) this.#length[slot] = end
    const length = this.#length[slot] ?? 0
    if (length === UNKNOWN || this.#windows.contiguous(buffer) < length) return false
    this.start = this.#windows.start(buffer)
    this.end = this.start + length
    if (ip.version === 6) ip.protocol = this.#protocol[slot] ?? 0
    table.remove(slot)
    this.#heldWindows[this.#heldWindowCount++] = buffer
    countUp(this.#counters, Counter.datagramsReassembled)
    return true
  }

  #begin(seconds: number, bytes: number): number {
    const table = this.#table
    const windows = this.#windows
    if (table.full) this.#evict()
    let buffer = windows.take(bytes)
    // Only for short datagrams: a flood of long ones must not evict ordinary datagrams.
    while (buffer === NO_BUFFER && bytes <= SHORT_BUFFER_BYTES && table.size > 0) {
      this.#evict()
      buffer = windows.take(bytes)
    }
    if (buffer === NO_BUFFER) {
      countUp(this.#counters, Counter.datagramsEvicted)
      return NO_SLOT
    }
    const slot = table.add(seconds)
    this.#buffer[slot] = buffer
    this.#length[slot] = UNKNOWN
    this.#discarded[slot] = 0
    this.#protocol[slot] = 0
    return slot
  }

  /** Moves the bytes to a long buffer if the short one is too small. */
  #ensureCapacity(slot: number, bytes: number): boolean {
    const windows = this.#windows
    const buffer = this.#buffer[slot] ?? 0
    if (bytes <= windows.capacity(buffer)) return true
    const longer = windows.take(bytes)
    if (longer === NO_BUFFER) {
      this.#drop(slot)
      countUp(this.#counters, Counter.datagramsEvicted)
      return false
    }
    windows.move(buffer, longer, 0)
    windows.release(buffer)
    this.#buffer[slot] = longer
    return true
  }

  #discard(slot: number): false {
    this.#windows.release(this.#buffer[slot] ?? 0)
    this.#buffer[slot] = NO_BUFFER
    this.#discarded[slot] = 1
    countUp(this.#counters, Counter.datagramsOverlapping)
    return false
  }

  /** Removes all datagrams. */
  clear(): void {
    while (this.#table.size > 0) this.#drop(this.#table.first)
  }

  #evict(): void {
    this.#drop(this.#table.victim)
    countUp(this.#counters, Counter.datagramsEvicted)
  }

  #drop(slot: number): void {
    const buffer = this.#buffer[slot] ?? 0
    if (buffer !== NO_BUFFER) this.#windows.release(buffer)
    this.#table.remove(slot)
  }
}
