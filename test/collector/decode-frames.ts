import { COUNTER_NAMES, type CounterName } from '../../collector/batch/counters.ts'
import { allocateBatch, BatchState, FrameBatch } from '../../collector/batch/frame-batch.ts'
import { PACKET_CLASS_NAMES, type PacketClassName } from '../../collector/batch/packet-class.ts'
import { BatchDecoder, type DecodeOptions } from '../../collector/decode/decode-batch.ts'
import { type ObservedName, readRow, rowBytes } from '../../collector/decode/name-rows.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../../collector/decode/ports.ts'
import { BATCH_FRAME_BYTES, BATCH_ROW_BYTES } from '../../collector/limits.ts'
import { RESOLVERS } from '../../collector/visibility.ts'
import { compileTrie } from '../../registry/compile-trie.ts'

/** Two rules suffice; the trie has its own tests. */
export const TRIE = compileTrie([
  { domain: 'chatgpt.com', match: 'suffix' },
  { domain: 'claude.ai', match: 'suffix' },
])

/**
 * A decoder without threads: takes frames, returns names and packet classes. All frames belong to
 * one capture, so streams continue across calls.
 */
export class FrameDecoder {
  readonly #batch = new FrameBatch(
    allocateBatch(1, { frameBytes: BATCH_FRAME_BYTES, rowBytes: BATCH_ROW_BYTES, listFrames: 8 }),
    0,
  )
  readonly #decoder: BatchDecoder
  readonly counters = Object.fromEntries(COUNTER_NAMES.map((name) => [name, 0])) as Record<CounterName, number>

  constructor(options: Partial<DecodeOptions> = {}) {
    this.#decoder = new BatchDecoder(0, {
      trie: TRIE,
      resolvers: compileTrie(RESOLVERS),
      everyName: true,
      dnsPorts: DNS_PORTS,
      tlsPorts: TLS_PORTS,
      proxyPorts: PROXY_PORTS,
      loadBalancers: [],
      ...options,
    })
  }

  decode(
    frames: readonly Buffer[],
    linkType = 1,
    options: { seconds?: number; last?: boolean } = {},
  ): { names: ObservedName[]; classes: PacketClassName[] } {
    const classes: PacketClassName[] = []
    const names: ObservedName[] = []
    for (const [index, frame] of frames.entries()) {
      const last = options.last === true && index === frames.length - 1
      const counted = this.#run([frame], linkType, options.seconds ?? 1_000, last, names)
      if (counted.length !== 1) throw new Error(`a frame ended in ${counted.length} classes`)
      classes.push(...counted)
    }
    return { names, classes }
  }

  /** Returns the names that come out when time has passed, or at the end. */
  pass(options: { seconds?: number; last?: boolean }): ObservedName[] {
    const names: ObservedName[] = []
    this.#run([], 1, options.seconds ?? 0, options.last === true, names)
    return names
  }

  #run(frames: readonly Buffer[], linkType: number, seconds: number, last: boolean, into: ObservedName[]) {
    const batch = this.#batch
    const section = batch.lane(0)
    batch.tryTake()
    batch.beginFilling(0)
    let offset = batch.framesStart
    for (const frame of frames) {
      batch.bytes.set(frame, offset)
      batch.list(0, offset, frame.length, seconds, 5_000_000, linkType)
      offset += frame.length
    }
    batch.clockSeconds = seconds
    if (last) batch.markLast()
    batch.pass(BatchState.filling, BatchState.ready)
    const counted: PacketClassName[] = []
    for (let done = false; !done; ) {
      done = this.#decoder.decode(batch)
      for (const [index, name] of PACKET_CLASS_NAMES.entries()) {
        for (let count = section.classes[index] ?? 0; count > 0; count--) counted.push(name)
      }
      for (const [index, name] of COUNTER_NAMES.entries()) this.counters[name] += section.counters[index] ?? 0
      const end = section.rowsStart + section.run.rowBytes
      for (let at = section.rowsStart; at < end; at += rowBytes(batch.view, at))
        into.push(readRow(batch.view, batch.bytes, at))
    }
    batch.pass(BatchState.ready, BatchState.free)
    return counted
  }

  /** Names and class of a single frame. */
  one(frame: Buffer, linkType = 1): { names: string[]; packetClass: PacketClassName | undefined } {
    const { names, classes } = this.decode([frame], linkType)
    return { names: names.map(({ name }) => name), packetClass: classes[0] }
  }
}
