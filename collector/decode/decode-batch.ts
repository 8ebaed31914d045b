import type { Network } from '../../engine/kernel/process/network.ts'
import { COUNTER_COUNT, Counter, countUp } from '../batch/counters.ts'
import { ANSWER_COPY, type FrameBatch, type LaneSection, NO_FRAME } from '../batch/frame-batch.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { CLOCK_STEP_SECONDS, STREAM_IDLE_SECONDS } from '../limits.ts'
import { Answers } from './answers.ts'
import { HiddenStreams } from './hidden.ts'
import { IpProtocol } from './ip.ts'
import { IpFragments } from './ip-fragments.ts'
import { Layers, Transport } from './layers.ts'
import { type NameOptions, NameSink } from './name-sink.ts'
import { Ports, type ServerPorts } from './ports.ts'
import { QuicStreams } from './quic-streams.ts'
import { StreamTable } from './stream-table.ts'
import { TcpStreams } from './tcp-streams.ts'
import { UdpTunnels } from './tunnel.ts'
import { UDP_DESTINATION_PORT, UDP_SOURCE_PORT } from './udp.ts'

export interface DecodeOptions extends ServerPorts, NameOptions {
  /** PROXY headers are believed from these networks only. */
  readonly loadBalancers: readonly Network[]
}

/**
 * The loop of a decode worker: frame -> layers -> name -> match -> row. One per lane, because it
 * holds the lane's streams. It never throws, whatever the bytes, and allocates nothing per packet
 * except the keys of a QUIC Initial.
 */
export class BatchDecoder {
  readonly #lane: number
  readonly #counters = new Uint32Array(COUNTER_COUNT)
  readonly #answers: Answers
  readonly #sink: NameSink
  readonly #ports: Ports
  readonly #fragments: IpFragments
  readonly #layers: Layers
  readonly #transport: Transport
  readonly #streams: StreamTable
  readonly #tcp: TcpStreams
  readonly #quic: QuicStreams
  readonly #hidden: HiddenStreams
  #expiredSeconds = 0
  #expireFrom = 0

  constructor(lane: number, options: DecodeOptions) {
    this.#lane = lane
    this.#answers = new Answers(this.#counters)
    this.#sink = new NameSink(options, this.#counters, this.#answers)
    this.#ports = new Ports(options)
    this.#fragments = new IpFragments(this.#counters)
    this.#layers = new Layers(new UdpTunnels(options), this.#fragments)
    this.#transport = new Transport(this.#fragments.view, this.#fragments.bytes)
    this.#streams = new StreamTable(
      this.#counters,
      (slot) => (this.#streams.isTcp(slot) ? this.#tcp.unfinished(slot) : this.#quic.unfinished(slot)),
      (slot) => this.#quic.release(slot),
    )
    this.#tcp = new TcpStreams(this.#streams, this.#sink, this.#ports, options.loadBalancers)
    this.#quic = new QuicStreams(this.#streams, this.#sink, this.#ports)
    this.#hidden = new HiddenStreams(this.#streams)
  }

  /** Matches against another registry from the next batch on. */
  useTrie(trie: SharedArrayBuffer): void {
    this.#sink.useTrie(trie)
  }

  /**
   * Decodes the lane's frames of the batch from where the last run ended. Returns true when all are
   * done. Returns false if the rows area is full: call again after the rows were read. After the
   * last batch of a source, the next one may be of another source.
   */
  decode(batch: FrameBatch): boolean {
    const section = batch.lane(this.#lane)
    const { view, bytes } = batch
    const { classes, frames } = section
    const sink = this.#sink
    section.beginRun()
    this.#counters.fill(0)
    sink.begin(view, section)
    const first = section.nextFrame
    let frame = first
    let captured = 0
    let copies = 0
    // A round without frames only reports the time.
    if (frames === 0 && sink.beginFrame(Math.max(batch.frames - 1, 0), 0, 0)) this.#expire(batch.clockSeconds)

    while (frame < frames) {
      const seconds = section.frameSeconds(frame)
      if (!sink.beginFrame(section.frameIndex(frame), seconds, section.frameNanoseconds(frame))) break
      if (seconds !== this.#expiredSeconds) this.#expire(seconds)
      const start = section.frameOffset(frame)
      const length = section.frameCaptured(frame)
      const linkType = section.frameLinkType(frame)
      if (linkType >= ANSWER_COPY) {
        this.#answerCopy(view, bytes, linkType - ANSWER_COPY, start, start + length)
        copies++
        frame++
        continue
      }
      const packetClass = this.#packet(view, bytes, linkType, start, start + length)
      classes[packetClass] = (classes[packetClass] ?? 0) + 1
      captured += length
      frame++
    }
    let done = frame === frames
    if (done && batch.last) done = this.#flushStreams(Math.max(batch.frames - 1, 0))
    this.#endRun(section, frame, done, { first: first + copies, captured })
    return done
  }

  #endRun(section: LaneSection, frame: number, done: boolean, run: { first: number; captured: number }): void {
    section.counters.set(this.#counters)
    const nextIndex = frame < section.frames ? section.frameIndex(frame) : NO_FRAME
    section.endRun(frame, done ? NO_FRAME : nextIndex, {
      rowBytes: this.#sink.rowBytes,
      frames: frame - run.first,
      bytes: run.captured,
      names: this.#sink.names,
      matched: this.#sink.matched,
    })
  }

  /**
   * The source has ended: emits the names of incomplete streams. Returns false if the rows area is
   * full.
   */
  #flushStreams(index: number): boolean {
    while (this.#sink.beginFrame(index, 0, 0)) {
      if (this.#streams.expireOne()) continue
      this.#streams.clear()
      this.#answers.clear()
      this.#fragments.clear()
      return true
    }
    return false
  }

  /** Called once per second of capture time, before the first frame of that second. */
  #expire(seconds: number): void {
    if (seconds === 0) return
    // A clock that was set forward is no time in which streams were idle.
    if (this.#expiredSeconds !== 0 && seconds - this.#expiredSeconds > CLOCK_STEP_SECONDS)
      this.#expireFrom = seconds + STREAM_IDLE_SECONDS
    this.#expiredSeconds = seconds
    if (seconds >= this.#expireFrom || seconds < this.#expireFrom - STREAM_IDLE_SECONDS) this.#streams.expire(seconds)
    this.#fragments.expire(seconds)
    this.#answers.expire(seconds)
  }

  /** Returns the class of the packet in bytes [start, end), and emits its names. */
  #packet(view: DataView, bytes: Uint8Array, linkType: number, start: number, end: number): PacketClass {
    const transport = this.#transport
    const refused = this.#layers.unwrap(view, bytes, linkType, start, end, this.#sink.row.seconds, transport)
    if (refused < 0) return ~refused as PacketClass
    if (transport.authenticated === 1) countUp(this.#counters, Counter.ahPackets)
    if (transport.protocol === IpProtocol.tcp) return this.#tcp.segment(transport)
    if (transport.protocol === IpProtocol.udp) return this.#datagram(transport)
    this.#hidden.esp(transport, this.#sink.row.seconds)
    return PacketClass.otherTransport
  }

  /** A DNS answer that another lane decodes, whose connection may be in this lane. */
  #answerCopy(view: DataView, bytes: Uint8Array, linkType: number, start: number, end: number): void {
    const transport = this.#transport
    if (this.#layers.unwrap(view, bytes, linkType, start, end, this.#sink.row.seconds, transport) < 0) return
    if (transport.protocol !== IpProtocol.udp) return
    this.#sink.answer(transport, transport.view, transport.payload, transport.payloadEnd, true)
  }

  #datagram(transport: Transport): PacketClass {
    const { view, start, payload, payloadEnd } = transport
    const source = view.getUint16(start + UDP_SOURCE_PORT)
    const destination = view.getUint16(start + UDP_DESTINATION_PORT)
    const { dns } = this.#ports
    if (dns[source] === 1 || dns[destination] === 1) {
      this.#sink.fromPacket(transport, source, destination)
      const packetClass = this.#sink.query(view, payload, payloadEnd, transport.truncated)
      if (packetClass === PacketClass.dnsResponse && dns[source] === 1)
        this.#sink.answer(transport, view, payload, payloadEnd, false)
      return packetClass
    }
    const packetClass = this.#quic.datagram(transport, source, destination, payload, payloadEnd)
    if (packetClass === PacketClass.udpOther || packetClass === PacketClass.quicOther)
      this.#hidden.datagram(transport, source, destination, this.#sink.row.seconds)
    return packetClass
  }
}
