import { strict as assert } from 'node:assert'
import type { BatchPool } from '../batch/batch-pool.ts'
import { BatchState, type FrameBatch } from '../batch/frame-batch.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { DNS_PORT } from '../decode/dns.ts'
import { IpProtocol } from '../decode/ip.ts'
import { Layers, Transport } from '../decode/layers.ts'
import { LIVE_POOL_WAIT_MS } from '../limits.ts'

/**
 * A round is the passage of one batch through all lanes. Rounds are delivered in order, and each in
 * the order of its frames. So the delivered frames are always an exact prefix of the source,
 * whatever the number of lanes, and reading can resume at its end.
 */
export interface Round {
  /**
   * Index of the round's first frame in the source. Frame indexes within the round count from here.
   */
  readonly firstFrame: number
  readonly frames: number
  readonly batch: number
  /** Bytes of the source read so far; 0 for an interface. */
  readonly bytesRead: number
  /** No round follows this one. */
  readonly last: boolean
}

export interface RoundOptions {
  /**
   * What to do when no batch is free. A file can wait; an interface waits only LIVE_POOL_WAIT_MS.
   */
  readonly whenExhausted: 'wait' | 'drop'
  /**
   * Sends a round only when the next one has a frame, so that the last round with frames is already
   * marked as last when it is sent. For sources that are resumed: a name that a lane emits at the
   * end belongs to the position of the last frame.
   */
  readonly holdBack: boolean
  /** Knows the ports of the tunnels. */
  readonly layers?: Layers
}

export class RoundFiller {
  readonly #pool: BatchPool
  readonly #options: RoundOptions
  readonly #send: (round: Round) => void
  readonly #lanes: number
  #batch: FrameBatch | undefined
  #used = 0
  #exhausted = false
  #sequence = 0
  #firstFrame = 0
  #held: { batch: FrameBatch; round: Round } | undefined

  constructor(pool: BatchPool, options: RoundOptions, send: (round: Round) => void) {
    assert(!options.holdBack || pool.batches.length >= 2, 'one batch is held back while the next is filled')
    this.#pool = pool
    this.#options = options
    this.#send = send
    this.#lanes = pool.lanes
  }

  /** Frames of the round so far. */
  get frames(): number {
    return this.#batch?.frames ?? 0
  }

  /**
   * Returns the batch being filled, its frames area from the start. Undefined if no batch is free
   * or a stop was requested.
   */
  begin(): FrameBatch | undefined {
    if (this.#batch !== undefined) return this.#batch
    const batch = this.#options.whenExhausted === 'wait' ? this.#pool.take() : this.#takeLive()
    if (batch === undefined) return undefined
    batch.beginFilling(this.#sequence)
    this.#sequence = (this.#sequence + 1) >>> 0
    this.#used = 0
    this.#batch = batch
    return batch
  }

  /**
   * Waits once, and again only after a batch was free. While batches are exhausted for long,
   * packets must be counted as dropped without further delay.
   */
  #takeLive(): FrameBatch | undefined {
    const batch = this.#exhausted ? this.#pool.tryTake() : this.#pool.takeWithin(LIVE_POOL_WAIT_MS)
    this.#exhausted = batch === undefined
    return batch
  }

  /**
   * Lists a frame whose bytes are in the batch returned by begin(). The batch must have a free
   * entry.
   */
  list(
    batch: FrameBatch,
    offset: number,
    captured: number,
    seconds: number,
    nanoseconds: number,
    linkType: number,
  ): void {
    const lanes = this.#lanes
    // With one lane there is no choice.
    const lane =
      lanes === 1 ? 0 : flowHash(batch.view, linkType, offset, offset + captured, this.#options.layers) % lanes
    batch.list(lane, offset, captured, seconds, nanoseconds, linkType)
    if (lanes > 1 && isDnsAnswer()) batch.listCopies(lane, offset, captured, seconds, linkType)
  }

  /**
   * Copies a frame from another buffer, given as bytes and as words. Returns false if no batch was
   * free and the frame is lost.
   */
  put(
    bytes: Uint8Array,
    words: Uint32Array,
    captured: number,
    seconds: number,
    nanoseconds: number,
    linkType: number,
  ): boolean {
    for (let tried = 0; tried < 2; tried++) {
      const batch = this.begin()
      if (batch === undefined) return false
      const offset = batch.framesStart + this.#used
      if (offset + captured <= batch.framesEnd && batch.freeEntries > 0) {
        batch.copyIn(offset, bytes, words, captured)
        this.list(batch, offset, captured, seconds, nanoseconds, linkType)
        // The next frame also starts at a word boundary.
        this.#used = (this.#used + captured + 3) & ~3
        return true
      }
      this.flush(0)
    }
    return false
  }

  /** Sends the round if it has a frame. */
  flush(bytesRead: number): void {
    if (this.frames > 0) this.#seal(bytesRead, false)
  }

  /** Sends the time to the lanes, in a round without frames. */
  tick(clockSeconds: number): void {
    const batch = this.begin()
    if (batch === undefined || batch.frames > 0) return
    batch.clockSeconds = clockSeconds
    this.#seal(0, false)
  }

  /** Ends the source: sends the last round. */
  finish(bytesRead: number): void {
    const held = this.#held
    if (this.frames === 0 && held !== undefined) {
      held.batch.markLast()
      this.#passOn(held.batch, { ...held.round, last: true })
      this.#held = undefined
      return
    }
    if (this.begin() !== undefined) this.#seal(bytesRead, true)
  }

  /** Stops in the middle of the source: sends the captured frames without marking an end. */
  abandon(): void {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#passOn(held.batch, held.round)
    this.flush(held?.round.bytesRead ?? 0)
  }

  #seal(bytesRead: number, last: boolean): void {
    const batch = this.#batch
    if (batch === undefined) return
    this.#batch = undefined
    const round = { firstFrame: this.#firstFrame, frames: batch.frames, batch: batch.number, bytesRead, last }
    this.#firstFrame += batch.frames
    const held = this.#held
    this.#held = undefined
    if (held !== undefined) this.#passOn(held.batch, held.round)
    if (last) batch.markLast()
    if (this.#options.holdBack && !last && !this.#pool.stopped) this.#held = { batch, round }
    else this.#passOn(batch, round)
  }

  #passOn(batch: FrameBatch, round: Round): void {
    batch.pass(BatchState.filling, BatchState.ready)
    this.#send(round)
  }
}

const defaultLayers = new Layers()
const nothing = new SharedArrayBuffer(8)
const nothingBytes = new Uint8Array(nothing)
const transport = new Transport(new DataView(nothing), nothingBytes)

let answers = false

/**
 * Hashes the innermost protocol, addresses and ports. Both directions have the same hash, so all
 * packets of a flow go to one lane. Returns 0 for packets that are not IP. A fragment is hashed by
 * its addresses only, since only the first fragment has ports.
 */
export function flowHash(
  view: DataView,
  linkType: number,
  offset: number,
  end: number,
  layers = defaultLayers,
): number {
  answers = false
  const outcome = layers.unwrap(view, nothingBytes, linkType, offset, end, 0, transport)
  const fragment = outcome === ~PacketClass.ipFragment
  if (outcome < 0 && !fragment) return 0
  let mixed = 0
  const { addressView, source, addressBytes } = transport
  // XOR of both endpoints: symmetric without a comparison.
  for (let at = source, stop = source + addressBytes; at < stop; at += 4) {
    mixed = Math.imul(mixed, 31) ^ addressView.getUint32(at) ^ addressView.getUint32(at + addressBytes)
  }
  if (!fragment && transport.start + 4 <= transport.end) {
    mixed ^= (transport.view.getUint16(transport.start) ^ transport.view.getUint16(transport.start + 2)) << 8
    mixed ^= transport.protocol
    answers = transport.protocol === IpProtocol.udp && transport.view.getUint16(transport.start) === DNS_PORT
  }
  // The finalizer of MurmurHash3. The lane comes from the low bits, and the differences are in the
  // high bits.
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}

/**
 * Whether the packet that was hashed last is a DNS answer. The connections to its addresses may be
 * in any lane. Answers from other ports than 53 are known only to the lane that decodes them.
 */
function isDnsAnswer(): boolean {
  return answers
}
