import type { MessagePort } from 'node:worker_threads'
import { RING_WAITING_BYTES_MAX } from '../limits.ts'
import { ByteRing, RecordKind, RING_CHUNK_BYTES_MAX } from './byte-ring.ts'
import type { ConnectionReader, Peer } from './connection.ts'
import type { ConnectionLane } from './lane.ts'
import type { Listener } from './sources.ts'
import type { FromLaneToSockets, FromSocketsToLane } from './thread-protocol.ts'

const NOTHING = new Uint8Array(0)
/** Approximate overhead of a queued record. */
const RECORD_BYTES = 128
/** Connections are identified by a number, which is not reused while the connection exists. */
const CONNECTION_NUMBERS = 0x7fff_ffff

/** Describes a new connection, in its first record. */
export interface OpenedConnection {
  readonly listener: Listener
  readonly address: string
  readonly port: number
}

/** The socket thread's side of a lane thread. */
export class ThreadLane implements ConnectionLane {
  /** Datagrams dropped because the ring was full. */
  datagramsDropped = 0
  readonly #ring: ByteRing
  readonly #port: MessagePort
  readonly #readers = new Map<number, RemoteReader>()
  readonly #peers = new Map<number, Peer>()
  /** Readers with records that wait for space, in order of arrival. */
  readonly #waiting = new Set<RemoteReader>()
  #waitingBytes = 0
  /**
   * Too many bytes wait for space: all sockets of the lane are paused until the records are in the
   * ring.
   */
  #isBackpressured = false
  #lastNumber = 0
  #streams = 0

  readonly #waitingBytesMax: number

  constructor(memory: SharedArrayBuffer, port: MessagePort, waitingBytesMax = RING_WAITING_BYTES_MAX) {
    this.#waitingBytesMax = waitingBytesMax
    this.#ring = new ByteRing(memory)
    this.#port = port
    port.on('message', (message: FromLaneToSockets) => this.#onMessage(message))
  }

  /** Number of streams. Datagram peers are not counted, since their end is unknown. */
  get load(): number {
    return this.#streams
  }

  /** Whether all records are in the ring. */
  get idle(): boolean {
    return this.#waiting.size === 0
  }

  open(listener: Listener, address: string, port: number, peer: Peer): ConnectionReader {
    do this.#lastNumber = (this.#lastNumber % CONNECTION_NUMBERS) + 1
    while (this.#readers.has(this.#lastNumber))
    const reader = new RemoteReader(this, this.#lastNumber, peer, listener === 'udp')
    if (listener !== 'udp') this.#streams++
    this.#readers.set(reader.number, reader)
    this.#peers.set(reader.number, peer)
    const opened: OpenedConnection = { listener, address, port }
    reader.add(RecordKind.open, Buffer.from(JSON.stringify(opened)))
    if (this.#isBackpressured) peer.pause()
    return reader
  }

  /** Returns false if there is no space. */
  write(kind: RecordKind, connection: number, chunk: Uint8Array): boolean {
    if (!this.#ring.write(kind, connection, chunk)) return false
    if (this.#ring.takeSleeping()) this.#notify({ kind: 'bytes' })
    return true
  }

  get isBackpressured(): boolean {
    return this.#isBackpressured
  }

  /** Adds queued bytes; a negative number removes them. */
  countWaiting(bytes: number): void {
    this.#waitingBytes += bytes
    if (this.#isBackpressured || this.#waitingBytes <= this.#waitingBytesMax) return
    this.#isBackpressured = true
    for (const peer of this.#peers.values()) peer.pause()
  }

  wait(reader: RemoteReader): void {
    this.#waiting.add(reader)
    this.#ring.requestSpace()
    // The reader may have freed space before it could see the request.
    this.#notify({ kind: 'bytes' })
  }

  forget(number: number, isStream: boolean): void {
    if (isStream) this.#streams--
    this.#readers.delete(number)
    this.#peers.delete(number)
  }

  #onMessage(message: FromLaneToSockets): void {
    switch (message.kind) {
      case 'space': {
        const waiting = [...this.#waiting]
        this.#waiting.clear()
        for (const reader of waiting) reader.writeWaiting()
        if (!this.#isBackpressured || this.#waiting.size > 0) return
        this.#isBackpressured = false
        for (const reader of this.#readers.values()) reader.resumeReading()
        return
      }
      case 'pause':
        return this.#readers.get(message.connection)?.pausedByLane(true)
      case 'resume':
        return this.#readers.get(message.connection)?.pausedByLane(false)
      case 'close':
        return this.#peers.get(message.connection)?.close(message.why)
      case 'token':
        return this.#peers.get(message.connection)?.noteToken(message.tokenId)
      default:
        message satisfies never
    }
  }

  #notify(message: FromSocketsToLane): void {
    this.#port.postMessage(message)
  }
}

type WaitingRecord = readonly [kind: RecordKind, chunk: Uint8Array]

/**
 * Sends the bytes of one connection to its lane. Pauses the socket while records wait for space.
 */
class RemoteReader implements ConnectionReader {
  readonly number: number
  readonly #lane: ThreadLane
  readonly #peer: Peer
  readonly #isDatagrams: boolean
  #waiting: WaitingRecord[] = []
  #isPausedByLane = false

  constructor(lane: ThreadLane, number: number, peer: Peer, isDatagrams: boolean) {
    this.#lane = lane
    this.number = number
    this.#peer = peer
    this.#isDatagrams = isDatagrams
  }

  data(chunk: Uint8Array): void {
    if (this.#isDatagrams) {
      if (this.#waiting.length > 0 || !this.#lane.write(RecordKind.data, this.number, chunk))
        this.#lane.datagramsDropped++
      return
    }
    for (let at = 0; at < chunk.length; at += RING_CHUNK_BYTES_MAX) {
      const isWhole = at === 0 && chunk.length <= RING_CHUNK_BYTES_MAX
      this.add(RecordKind.data, isWhole ? chunk : chunk.subarray(at, at + RING_CHUNK_BYTES_MAX))
    }
  }

  end(): void {
    this.add(RecordKind.end, NOTHING)
  }

  close(): void {
    this.add(RecordKind.close, NOTHING)
  }

  add(kind: RecordKind, chunk: Uint8Array): void {
    if (this.#waiting.length === 0 && this.#lane.write(kind, this.number, chunk)) return this.#written(kind)
    this.#waiting.push([kind, Uint8Array.from(chunk)])
    this.#lane.countWaiting(chunk.length + RECORD_BYTES)
    if (this.#waiting.length > 1) return
    this.#peer.pause()
    this.#lane.wait(this)
  }

  writeWaiting(): void {
    let written = 0
    for (const [kind, chunk] of this.#waiting) {
      if (!this.#lane.write(kind, this.number, chunk)) break
      this.#lane.countWaiting(-chunk.length - RECORD_BYTES)
      this.#written(kind)
      written++
    }
    this.#waiting = this.#waiting.slice(written)
    if (this.#waiting.length > 0) this.#lane.wait(this)
    else this.resumeReading()
  }

  /** Resumes the socket unless the lane, the ring or the queue prevents it. */
  resumeReading(): void {
    if (!this.#isPausedByLane && this.#waiting.length === 0 && !this.#lane.isBackpressured) this.#peer.resume()
  }

  pausedByLane(isPaused: boolean): void {
    this.#isPausedByLane = isPaused
    if (isPaused) this.#peer.pause()
    else this.resumeReading()
  }

  #written(kind: RecordKind): void {
    if (kind === RecordKind.close) this.#lane.forget(this.number, !this.#isDatagrams)
  }
}
