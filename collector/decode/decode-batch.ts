import { DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import {
  BatchState,
  FRAME_CAPTURED,
  FRAME_HEADER_BYTES,
  FRAME_INDEX,
  type FrameBatch,
  frameSpace,
  NO_FRAME,
} from '../capture/frame-batch.ts'
import { DNS_QUESTIONS_MAX } from '../limits.ts'
import { readServerName } from './client-hello.ts'
import { DNS_HEADER_BYTES, DNS_PORT, dnsQuestions, queryClass, readQuestion } from './dns.ts'
import { IpHeader, IpProtocol, ipPayload } from './ip.ts'
import { linkPayload } from './link.ts'
import { FoundName, NameForm } from './name.ts'
import { Method, ROW_BYTES_MAX, RowSource, writeRow } from './name-rows.ts'
import { PacketClass } from './packet-class.ts'
import { TCP_DESTINATION_PORT, TCP_SOURCE_PORT, tcpPayload } from './tcp.ts'
import { findClientHello, HelloBody } from './tls-record.ts'
import { UDP_DESTINATION_PORT, UDP_SOURCE_PORT, udpEnd, udpPayload } from './udp.ts'

const HTTPS_PORT = 443

/**
 * The loop of a decode worker: frame -> layers -> name -> match -> row. One for each lane, since a lane's flows live here.
 * Nothing in it throws, whatever the bytes, and nothing is allocated for a packet.
 */
export class BatchDecoder {
  readonly #trie: DomainTrie
  readonly #everyName: boolean
  readonly #ip = new IpHeader()
  readonly #name = new FoundName(new DataView(new SharedArrayBuffer(8)))
  readonly #hello = new HelloBody()
  readonly #row = new RowSource()
  #rowAt = 0
  #rows = 0
  #names = 0
  #matched = 0

  /** With `everyName` there is a row for each name, else only for those that match. */
  constructor(trie: SharedArrayBuffer, everyName: boolean) {
    this.#trie = new DomainTrie(trie)
    this.#everyName = everyName
  }

  /**
   * Decodes the batch's frames from where the last run ended. True when the batch is done; false when its rows area is full, and it
   * shall be run again after the rows were read.
   */
  decode(batch: FrameBatch): boolean {
    if (batch.state === BatchState.ready) batch.pass(BatchState.ready, BatchState.decoding)
    batch.beginRun()
    const view = batch.view
    const classes = batch.classes
    const linkType = batch.linkType
    const frames = batch.frames
    // A frame is only begun when the names of any frame would fit.
    const lastRowAt = batch.rowsEnd - DNS_QUESTIONS_MAX * ROW_BYTES_MAX
    const first = batch.nextFrame
    let frame = first
    let at = batch.framesStart + batch.nextOffset
    let bytes = 0
    this.#rowAt = batch.rowsStart
    this.#rows = 0
    this.#names = 0
    this.#matched = 0

    while (frame < frames && this.#rowAt <= lastRowAt) {
      const captured = view.getUint32(at + FRAME_CAPTURED, true)
      const start = at + FRAME_HEADER_BYTES
      this.#row.frame = at
      const packetClass = this.#packet(view, linkType, start, start + captured)
      classes[packetClass] = (classes[packetClass] as number) + 1
      bytes += captured
      at += frameSpace(captured)
      frame++
    }

    const done = frame === frames
    batch.endRun(
      {
        frame,
        offset: at - batch.framesStart,
        index: done ? NO_FRAME : view.getUint32(at + FRAME_INDEX, true),
      },
      {
        rows: this.#rows,
        rowBytes: this.#rowAt - batch.rowsStart,
        frames: frame - first,
        bytes,
        names: this.#names,
        matched: this.#matched,
      },
    )
    return done
  }

  /** The class in which the packet in bytes [start, end) ends; its names are handed on. */
  #packet(view: DataView, linkType: number, start: number, end: number): PacketClass {
    const header = linkPayload(view, linkType, start, end)
    if (header < 0) return ~header as PacketClass
    const ip = this.#ip
    const transport = ipPayload(view, header, end, ip)
    if (transport < 0) return ~transport as PacketClass
    if (ip.protocol === IpProtocol.udp) return this.#datagram(view, transport, ip.end)
    if (ip.protocol === IpProtocol.tcp) return this.#segment(view, transport, ip.end)
    return PacketClass.otherTransport
  }

  #datagram(view: DataView, datagram: number, ipEnd: number): PacketClass {
    const payload = udpPayload(view, datagram, ipEnd)
    if (payload < 0) return ~payload as PacketClass
    const end = udpEnd(view, datagram, ipEnd)
    const source = view.getUint16(datagram + UDP_SOURCE_PORT)
    const destination = view.getUint16(datagram + UDP_DESTINATION_PORT)
    if (source === DNS_PORT || destination === DNS_PORT) return this.#query(view, payload, end, source, destination)
    return source === HTTPS_PORT || destination === HTTPS_PORT ? PacketClass.quic : PacketClass.udpOther
  }

  #query(view: DataView, message: number, end: number, source: number, destination: number): PacketClass {
    const questions = dnsQuestions(view, message, end)
    if (questions < 0) return ~questions as PacketClass
    const name = this.#name
    const read = Math.min(questions, DNS_QUESTIONS_MAX)
    let at = message + DNS_HEADER_BYTES
    for (let question = 0; question < read; question++) {
      at = readQuestion(view, message, at, end, name)
      if (at < 0) return ~at as PacketClass
      this.#found(view, Method.dns, source, destination)
    }
    return queryClass(questions)
  }

  #segment(view: DataView, segment: number, end: number): PacketClass {
    const payload = tcpPayload(view, segment, end)
    if (payload < 0) return ~payload as PacketClass
    if (payload >= end) return this.#ip.cut === 1 ? PacketClass.truncated : PacketClass.tcpNoPayload
    const source = view.getUint16(segment + TCP_SOURCE_PORT)
    const destination = view.getUint16(segment + TCP_DESTINATION_PORT)
    if (source === DNS_PORT || destination === DNS_PORT) return PacketClass.dnsOverTcp
    const found = findClientHello(view, payload, end, this.#hello)
    const packetClass = found < 0 ? (~found as PacketClass) : readServerName(this.#hello, this.#name)
    if (packetClass === PacketClass.clientHello) this.#found(view, Method.tls, source, destination)
    // What is missing of a hello in a cut frame does not come in a later segment.
    if (packetClass === PacketClass.clientHelloIncomplete && this.#ip.cut === 1) return PacketClass.truncated
    return packetClass
  }

  /** Matches the name that was found and hands it on. The sender of a query or a hello is the client. */
  #found(view: DataView, method: number, clientPort: number, serverPort: number): void {
    const name = this.#name
    const trie = this.#trie
    const rule =
      name.form === NameForm.wire
        ? trie.matchWire(name.view, name.start, name.end)
        : trie.matchDotted(name.view, name.start, name.end)
    this.#names++
    if (rule !== NO_MATCH) this.#matched++
    else if (!this.#everyName) return
    const ip = this.#ip
    const row = this.#row
    row.version = ip.version
    row.addressBytes = ip.addressBytes
    row.client = ip.source
    row.server = ip.source + ip.addressBytes
    row.clientPort = clientPort
    row.serverPort = serverPort
    row.method = method
    this.#rowAt = writeRow(view, this.#rowAt, row, name, rule)
    this.#rows++
  }
}
