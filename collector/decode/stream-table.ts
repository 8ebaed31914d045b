import { strict as assert } from 'node:assert'
import { Counter, countUp } from '../batch/counters.ts'
import {
  FRAME_ROW_BYTES_MAX,
  LONG_BUFFER_BYTES,
  LONG_BUFFERS,
  SHORT_BUFFER_BYTES,
  SHORT_BUFFERS,
  STREAM_IDLE_SECONDS,
  STREAM_REMEMBERED_SECONDS,
  STREAMS_MAX,
} from '../limits.ts'
import { ByteWindows, NO_BUFFER } from './byte-windows.ts'
import { IpProtocol } from './ip.ts'
import type { Transport } from './layers.ts'
import { ROW_BYTES_MAX } from './name-rows.ts'
import { ProxiedStreams } from './proxied-streams.ts'
import { KEY_BYTES, KEY_PORTS, NO_SLOT, SlotList, SlotTable } from './slot-table.ts'
import type { HelloProgress } from './tls-record.ts'

/** State of a followed stream, which is one direction of a connection. */
export const StreamState = {
  /** TCP: a SYN was seen, but no payload. */
  synchronized: 0,
  /** The rest of a ClientHello is expected, from `base` on. */
  hello: 1,
  /** TCP: the start of the stream was not seen. A hello may precede the kept bytes. */
  orphan: 2,
  /** A hello was read. It ended at `base`. */
  helloRead: 3,
  /** TCP: the stream carries something else. */
  other: 4,
  /** TCP: DNS messages. The next one begins at `base`. */
  dns: 5,
  /** Counted but not read: QUIC of an unsupported version, or one of hidden.ts. */
  unread: 6,
  /** TCP: the handshake with a proxy goes on at `base`. */
  proxy: 7,
  /** TCP: DNS messages of which no start is known: one begins with a later segment. */
  dnsUnaligned: 8,
} as const
export type StreamState = (typeof StreamState)[keyof typeof StreamState]

/** RFC 7858 §3.1 and RFC 9250 §4.1.1: DNS over TLS and over QUIC. */
export const DOT_PORT = 853
/**
 * A stream without kept bytes is moved to the end of its list only after this many seconds, which
 * costs less than a move for each packet.
 */
const TOUCH_SECONDS = 16
/**
 * Names of this many streams leave space for those of the frame itself: 64 KiB of queries make rows
 * of at most 510 kB.
 */
const EXPIRED_MAX = 256
assert(EXPIRED_MAX * ROW_BYTES_MAX + 510_000 <= FRAME_ROW_BYTES_MAX)

/**
 * The followed streams of a lane and their kept bytes, all of fixed size. At a limit, a stream is
 * evicted by the rules of limits.ts: streams without kept bytes first (list `idle`), then those
 * with kept bytes (list `keeping`).
 */
export class StreamTable {
  readonly windows = new ByteWindows(SHORT_BUFFER_BYTES, SHORT_BUFFERS, LONG_BUFFER_BYTES, LONG_BUFFERS)
  readonly state = new Uint8Array(STREAMS_MAX)
  /** TCP: sequence number of the first kept byte. QUIC: its offset in the CRYPTO stream. */
  readonly base = new Uint32Array(STREAMS_MAX)
  readonly buffer = new Int32Array(STREAMS_MAX).fill(NO_BUFFER)
  /** DNS over TCP: when bytes after a gap arrived first; 0 without a gap. */
  readonly gapSeconds = new Uint32Array(STREAMS_MAX)
  /**
   * QUIC: random of the hello, which identifies the repeated hello after a Retry. 0 if no hello was
   * read.
   */
  readonly random = new Uint32Array(STREAMS_MAX)
  /** TCP: what a proxy's handshake said. */
  readonly proxied = new ProxiedStreams()
  readonly #recordAt = new Int32Array(STREAMS_MAX)
  readonly #gathered = new Int32Array(STREAMS_MAX)
  readonly #wanted = new Int32Array(STREAMS_MAX)
  readonly #nanoseconds = new Uint32Array(STREAMS_MAX)
  readonly #table: SlotTable
  readonly #counters: Uint32Array
  /** Called for a stream that ends before its hello, while its slot and buffer are still valid. */
  readonly #onUnfinished: (slot: number) => void
  /** Called to release the owner's resources of a slot. */
  readonly #onRelease: (slot: number) => void

  constructor(counters: Uint32Array, onUnfinished: (slot: number) => void, onRelease: (slot: number) => void) {
    this.#table = new SlotTable(STREAMS_MAX)
    this.#counters = counters
    this.#onUnfinished = onUnfinished
    this.#onRelease = onRelease
  }

  /**
   * Returns the slot of the stream from the packet's source to its destination, or NO_SLOT. A
   * following follow() refers to the same stream.
   */
  find(transport: Transport, ports: number): number {
    const { addressView, source, addressBytes, protocol, network } = transport
    this.#table.prepare(addressView, source, addressBytes, ports, protocol, network)
    return this.#table.size === 0 ? NO_SLOT : this.#table.find()
  }

  /** Starts to follow the stream that find() did not find. */
  follow(state: StreamState, base: number, destinationPort: number, seconds: number): number {
    if (this.#table.full) this.#evict(this.#table.victim)
    const slot = this.#table.add(seconds)
    this.state[slot] = state
    this.base[slot] = base
    this.buffer[slot] = NO_BUFFER
    this.random[slot] = 0
    this.proxied.clear(slot)
    this.resetProgress(slot)
    this.count(Counter.streamsFollowed)
    if (destinationPort === DOT_PORT) {
      this.count(Counter.dotSessions)
      if (!this.isTcp(slot)) this.count(Counter.doqSessions)
    }
    return slot
  }

  /** Records activity of a stream without kept bytes. */
  touch(slot: number, seconds: number): void {
    if (((seconds - this.#table.seconds(slot)) | 0) >= TOUCH_SECONDS) {
      this.#table.touch(slot, this.#table.list(slot), seconds)
    }
  }

  /**
   * Keeps bytes [from, to) of `source` at `offset` from the stream's base. Returns false if they
   * are too far ahead or if no buffer is free. The caller must then abandon the stream.
   */
  keep(
    slot: number,
    offset: number,
    source: DataView,
    from: number,
    to: number,
    seconds: number,
    nanoseconds: number,
  ): boolean {
    const end = offset + to - from
    if (end > LONG_BUFFER_BYTES || !this.#ensureCapacity(slot, end, 0)) {
      this.count(Counter.streamsOverLimit)
      return false
    }
    this.#nanoseconds[slot] = nanoseconds
    this.#table.touch(slot, SlotList.keeping, seconds)
    this.windows.put(this.buffer[slot] ?? 0, offset, source, from, to)
    return true
  }

  /** Moves the stream's base `shift` bytes back. Returns false if that is not possible. */
  beginBefore(slot: number, shift: number): boolean {
    const kept = this.windows.farthest(this.buffer[slot] ?? 0)
    if (shift + kept > LONG_BUFFER_BYTES || !this.#ensureCapacity(slot, shift + kept, shift)) return false
    this.base[slot] = (this.base[slot] ?? 0) - shift
    return true
  }

  /**
   * Ensures a buffer for `bytes` from the stream's base on. The kept bytes move with it, `shift`
   * bytes later.
   */
  #ensureCapacity(slot: number, bytes: number, shift: number): boolean {
    const windows = this.windows
    const kept = this.buffer[slot] ?? 0
    if (kept !== NO_BUFFER && shift === 0 && bytes <= windows.capacity(kept)) return true
    let wider = windows.take(bytes)
    while (wider === NO_BUFFER && bytes <= SHORT_BUFFER_BYTES) {
      const oldest = this.#table.oldest(SlotList.keeping)
      if (oldest === NO_SLOT || oldest === slot) return false
      this.#evict(oldest)
      wider = windows.take(bytes)
    }
    if (wider === NO_BUFFER) return false
    if (kept !== NO_BUFFER) {
      windows.move(kept, wider, shift)
      windows.release(kept)
    }
    this.buffer[slot] = wider
    return true
  }

  /** Drops the stream's kept bytes and sets another state. */
  settle(slot: number, state: StreamState, base: number, seconds: number): void {
    this.#releaseBuffer(slot)
    this.state[slot] = state
    this.base[slot] = base
    this.resetProgress(slot)
    this.#table.touch(slot, SlotList.idle, seconds)
  }

  #releaseBuffer(slot: number): void {
    const buffer = this.buffer[slot] ?? 0
    if (buffer === NO_BUFFER) return
    this.windows.release(buffer)
    this.buffer[slot] = NO_BUFFER
  }

  /** Reads the progress of walking the records of the stream's hello. */
  progress(slot: number, into: HelloProgress): HelloProgress {
    into.recordAt = this.#recordAt[slot] ?? 0
    into.gathered = this.#gathered[slot] ?? 0
    into.wanted = this.#wanted[slot] ?? 0
    return into
  }

  setProgress(slot: number, progress: HelloProgress): void {
    this.#recordAt[slot] = progress.recordAt
    this.#gathered[slot] = progress.gathered
    this.#wanted[slot] = progress.wanted
  }

  resetProgress(slot: number): void {
    this.gapSeconds[slot] = 0
    this.#recordAt[slot] = 0
    this.#gathered[slot] = 0
    this.#wanted[slot] = 0
  }

  /**
   * Drops streams that were idle too long, but at most EXPIRED_MAX of those with kept bytes,
   * because each may emit a name.
   */
  expire(seconds: number): void {
    for (let expired = 0; expired < EXPIRED_MAX; expired++) {
      const slot = this.#table.oldest(SlotList.keeping)
      if (slot === NO_SLOT || ((seconds - this.#table.seconds(slot)) | 0) <= STREAM_IDLE_SECONDS) break
      this.count(Counter.streamsTimedOut)
      this.#remove(slot)
    }
    for (;;) {
      const slot = this.#table.oldest(SlotList.idle)
      if (slot === NO_SLOT || ((seconds - this.#table.seconds(slot)) | 0) <= STREAM_REMEMBERED_SECONDS) return
      this.#remove(slot)
    }
  }

  /** Drops one stream with kept bytes, if there is one, because the source has ended. */
  expireOne(): boolean {
    const slot = this.#table.oldest(SlotList.keeping)
    if (slot === NO_SLOT) return false
    this.#remove(slot)
    return true
  }

  /** Removes all streams. */
  clear(): void {
    while (this.#table.size > 0) this.#remove(this.#table.first)
  }

  #evict(slot: number): void {
    this.count(Counter.streamsEvicted)
    this.#remove(slot)
  }

  #remove(slot: number): void {
    const state = this.state[slot]
    if (state === StreamState.hello || state === StreamState.dns) this.#onUnfinished(slot)
    this.#releaseBuffer(slot)
    this.#onRelease(slot)
    this.#table.remove(slot)
  }

  count(counter: Counter): void {
    countUp(this.#counters, counter)
  }

  /** The keys of all slots. keyAt() returns the offset of a slot's key. */
  get keys(): DataView {
    return this.#table.keys
  }
  keyAt(slot: number): number {
    return slot * KEY_BYTES
  }
  sourcePort(slot: number): number {
    return this.#ports(slot) >>> 16
  }
  destinationPort(slot: number): number {
    return this.#ports(slot) & 0xffff
  }
  isTcp(slot: number): boolean {
    return this.#table.protocol(slot) === IpProtocol.tcp
  }
  version(slot: number): number {
    return this.#table.version(slot)
  }
  /** When bytes of the stream were last kept. */
  seconds(slot: number): number {
    return this.#table.seconds(slot)
  }
  nanoseconds(slot: number): number {
    return this.#nanoseconds[slot] ?? 0
  }
  #ports(slot: number): number {
    return this.#table.word(slot, KEY_PORTS / 4)
  }
}
