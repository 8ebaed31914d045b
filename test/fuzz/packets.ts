import { COUNTER_NAMES } from '../../collector/batch/counters.ts'
import { allocateBatch, BatchState, FrameBatch } from '../../collector/batch/frame-batch.ts'
import { PACKET_CLASS_NAMES } from '../../collector/batch/packet-class.ts'
import { BatchDecoder } from '../../collector/decode/decode-batch.ts'
import { NAME_TEXT_BYTES_MAX } from '../../collector/decode/name.ts'
import { readRow, rowBytes, rowIsRefusal } from '../../collector/decode/name-rows.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../../collector/decode/ports.ts'
import { BATCH_ROW_BYTES } from '../../collector/limits.ts'
import { RESOLVERS } from '../../collector/visibility.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { generatedCaptures } from '../captures/cases.ts'
import { golden } from '../captures/golden.ts'
import { LinkType } from '../support/packets-link.ts'
import { Random } from './random.ts'

/**
 * Decodes mutated packets. For any bytes: nothing throws, every packet is in one class, names
 * contain only allowed characters, counters add up, and no byte outside a frame has an effect. To
 * check the last point, two decoders get the same frames between different bytes and must return
 * the same results.
 */
const FRAME_BYTES = 1024 * 1024
const GAP_BYTES = 48
const FRAMES_MAX = 64
const FRAME_BYTES_MAX = 8192
const FILLINGS = [0x00, 0xff] as const
const LINK_TYPES = Object.values(LinkType)
/** Numbers at which errors in lengths and offsets are likely. */
const ODD_NUMBERS = [0, 1, 2, 0x3f, 0x40, 0x7f, 0x80, 0xff, 0x100, 0x3fff, 0x4000, 0x7fff, 0x8000, 0xfffe, 0xffff]
const PLAIN_NAME = /^(?:[!-[\]-~]|\\\d{3})*$/

interface Sequence {
  readonly linkType: number
  readonly frames: readonly Buffer[]
}

class Subject {
  readonly batch: FrameBatch
  readonly #decoder: BatchDecoder
  readonly #filling: number

  constructor(filling: number) {
    const sizes = { frameBytes: FRAME_BYTES, rowBytes: BATCH_ROW_BYTES, listFrames: FRAMES_MAX }
    this.batch = new FrameBatch(allocateBatch(1, sizes), 0)
    this.#filling = filling
    this.#decoder = new BatchDecoder(0, {
      trie: compileTrie([{ domain: 'claude.ai', match: 'suffix' }]),
      resolvers: compileTrie(RESOLVERS),
      everyName: true,
      dnsPorts: DNS_PORTS,
      tlsPorts: TLS_PORTS,
      proxyPorts: PROXY_PORTS,
      // Every client of the captures may send PROXY headers.
      loadBalancers: [{ bytes: new Uint8Array(16), prefixBits: 0 }],
      httpNames: true,
    })
  }

  /** Decodes the frames and returns the results as text. */
  outcome(frames: readonly Buffer[], linkType: number, seconds: number): string {
    const { batch } = this
    const section = batch.lane(0)
    batch.tryTake()
    batch.beginFilling(0)
    let offset = batch.framesStart
    for (const frame of frames) {
      batch.bytes.fill(this.#filling, offset, offset + GAP_BYTES)
      offset += GAP_BYTES
      batch.bytes.set(frame, offset)
      batch.list(0, offset, frame.length, seconds, 0, linkType)
      offset += frame.length
    }
    batch.bytes.fill(this.#filling, offset, offset + GAP_BYTES)
    batch.pass(BatchState.filling, BatchState.ready)
    const classes = new Array<number>(PACKET_CLASS_NAMES.length).fill(0)
    const counters = new Array<number>(COUNTER_NAMES.length).fill(0)
    const names: string[] = []
    let counted = 0
    for (let done = false; !done; ) {
      done = this.#decoder.decode(batch)
      for (let index = 0; index < classes.length; index++)
        classes[index] = (classes[index] ?? 0) + (section.classes[index] ?? 0)
      for (let index = 0; index < counters.length; index++)
        counters[index] = (counters[index] ?? 0) + (section.counters[index] ?? 0)
      const { run } = section
      counted += run.names
      const end = section.rowsStart + run.rowBytes
      for (let at = section.rowsStart; at < end; at += rowBytes(batch.view, at)) {
        const { name, client, server, clientPort, serverPort, method } = readRow(batch.view, batch.bytes, at)
        if (!PLAIN_NAME.test(name) || name.length > NAME_TEXT_BYTES_MAX) throw new Error(`name ${JSON.stringify(name)}`)
        if (rowIsRefusal(batch.view, at)) counted++
        names.push(`${method} ${client}:${clientPort} ${server}:${serverPort} ${name}`)
      }
    }
    batch.pass(BatchState.ready, BatchState.free)
    const packets = classes.reduce((sum, count) => sum + count, 0)
    if (packets !== frames.length) throw new Error(`${packets} packets in classes, expected ${frames.length}`)
    if (counted !== names.length) throw new Error(`${counted} names counted, ${names.length} rows`)
    return `${classes.join()} ${counters.join()} ${names.join()}`
  }
}

/**
 * Decodes `mutations` packets.
 *
 * @throws Error that names the seed and the packets.
 */
export function fuzzPackets(seed: number, mutations: number, onProgress: (done: number) => void = () => {}): void {
  const random = new Random(seed)
  const sequences = Object.values(generatedCaptures()).map(
    ({ packets, pcap }): Sequence => ({
      linkType: pcap?.linkType ?? LinkType.ethernet,
      frames: packets.map(({ bytes }) => bytes).filter(({ length }) => length < FRAME_BYTES_MAX),
    }),
  )
  sequences.push({ linkType: LinkType.ethernet, frames: golden().frames })
  const subjects = FILLINGS.map((filling) => new Subject(filling))
  let seconds = 1_000
  for (let done = 0; done < mutations; ) {
    const { linkType, frames } = changed(random, sequences)
    // Time advances, and sometimes goes back.
    seconds += random.below(50) === 0 ? random.below(100) - 20 : 0
    try {
      const [first, second] = subjects.map((subject) => subject.outcome(frames, linkType, seconds))
      if (first !== second) throw new Error(`bytes outside the frames have a say:\n${first}\n${second}`)
    } catch (error) {
      const packets = frames.map((frame) => frame.toString('hex')).join('\n')
      throw new Error(
        `seed ${seed}, behind ${done} packets, link type ${linkType}: ${(error as Error).stack}\n${packets}`,
      )
    }
    done += frames.length
    onProgress(done)
  }
}

/** Part of a capture, with packets mutated, omitted, repeated and reordered. */
function changed(random: Random, sequences: readonly Sequence[]): Sequence {
  const { linkType, frames } = random.of(sequences)
  const first = random.below(Math.max(1, frames.length - 4))
  const part = frames.slice(first, first + 1 + random.below(FRAMES_MAX - 1))
  for (let moves = random.below(4); moves > 0 && part.length > 0; moves--) {
    const at = random.below(part.length)
    const packet = part[at] as Buffer
    const what = random.below(4)
    if (what === 0) part.splice(at, 1)
    else if (part.length < FRAMES_MAX) part.splice(random.below(part.length + 1), what === 1 ? 1 : 0, packet)
  }
  const rate = random.below(3)
  return {
    linkType: random.below(12) === 0 ? random.of(LINK_TYPES) : linkType,
    frames: part.map((frame) => (random.below(3) <= rate ? mutated(random, frame, frames) : frame)),
  }
}

function mutated(random: Random, original: Buffer, others: readonly Buffer[]): Buffer {
  let frame = Buffer.from(original)
  for (let changes = 1 + random.below(4); changes > 0 && frame.length > 0; changes--) {
    // Most of the structure is in the first bytes.
    const at = random.below(random.below(2) === 0 ? Math.min(frame.length, 120) : frame.length)
    switch (random.below(8)) {
      case 0:
        frame[at] = random.below(256)
        break
      case 1:
      case 2:
        frame[at] = (frame[at] ?? 0) ^ (1 << random.below(8))
        break
      case 3:
        if (at + 2 <= frame.length) frame.writeUInt16BE(random.of(ODD_NUMBERS), at)
        break
      case 4:
        if (at + 2 <= frame.length) frame.writeUInt16BE((frame.readUInt16BE(at) + random.below(9) - 4) & 0xffff, at)
        break
      case 5:
        frame = frame.subarray(0, random.below(frame.length + 1))
        break
      case 6: {
        const other = random.of(others)
        frame = Buffer.concat([frame.subarray(0, at), other.subarray(Math.min(at, other.length))])
        break
      }
      default: {
        const bytes = frame.subarray(at, at + random.below(24))
        frame = Buffer.concat([frame.subarray(0, at), bytes, frame.subarray(at)]).subarray(0, FRAME_BYTES_MAX)
      }
    }
  }
  return frame
}
