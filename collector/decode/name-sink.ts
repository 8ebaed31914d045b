import { candidateOf } from '../../registry/candidate-names.ts'
import { canonicalName } from '../../registry/domain-name.ts'
import { DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { Counter, countUp } from '../batch/counters.ts'
import type { LaneSection } from '../batch/frame-batch.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { DNS_QUESTIONS_MAX, FRAME_ROW_BYTES_MAX } from '../limits.ts'
import type { Answers } from './answers.ts'
import { copyBytes } from './byte-windows.ts'
import { readServerName } from './client-hello.ts'
import { DNS_HEADER_BYTES, dnsQuestions, queryClass, readQuestion } from './dns.ts'
import type { Transport } from './layers.ts'
import { FoundName, isTorName, NAME_TEXT_BYTES_MAX, NameForm, nameHash, writeNameText } from './name.ts'
import { Method, ROW_BYTES_MAX, RowSource, writeRow } from './name-rows.ts'
import { Via } from './proxy-element.ts'
import { KEY_FIRST, KEY_SECOND } from './slot-table.ts'
import { DOT_PORT, type StreamTable } from './stream-table.ts'
import { HelloAlpn, type HelloBody } from './tls-record.ts'

/** Hashes of names that were read before: 64 KiB each. A collision costs a candidate. */
const SLOTS = 16_384
/**
 * New names of a run over a batch that are read: reading takes 100 times as long as a lookup.
 * Further ones are counted as `candidatesUnread`.
 */
const NAMES_PER_RUN = 256

/** Finds the names of no platform that look like AI services (registry/candidate-names.ts). */
export class CandidateFilter {
  readonly #plain = new Uint32Array(SLOTS)
  readonly #candidates = new Uint32Array(SLOTS)
  readonly #text = Buffer.alloc(NAME_TEXT_BYTES_MAX)
  readonly #view = new DataView(this.#text.buffer, this.#text.byteOffset, this.#text.length)
  readonly #counters: Uint32Array
  #namesLeft = 0

  constructor(counters: Uint32Array) {
    this.#counters = counters
  }

  /** Begins a run over a section. */
  begin(): void {
    this.#namesLeft = NAMES_PER_RUN
  }

  accepts(name: FoundName): boolean {
    const hash = nameHash(name.view, name.start, name.end)
    const slot = hash & (SLOTS - 1)
    if (this.#plain[slot] === hash) return false
    if (this.#candidates[slot] === hash) return true
    if (this.#namesLeft === 0) {
      countUp(this.#counters, Counter.candidatesUnread)
      return false
    }
    this.#namesLeft--
    const host = canonicalName(this.#text.toString('latin1', 0, writeNameText(name, this.#view, 0)))
    const isCandidate = host !== undefined && candidateOf(host) !== undefined
    const seen = isCandidate ? this.#candidates : this.#plain
    seen[slot] = hash
    return isCandidate
  }
}

export interface NameOptions {
  /** The compiled registry, from compileTrie(). */
  readonly trie: SharedArrayBuffer
  /** The compiled list of DNS-over-HTTPS resolvers. */
  readonly resolvers: SharedArrayBuffer
  /** Write a row for every name, not only for matches. */
  readonly everyName: boolean
  /** Write rows also for names of no platform that look like AI services. */
  readonly candidates?: boolean
}

/** Matches and counts names, and writes them as rows to the lane's section. One per worker. */
export class NameSink {
  readonly row = new RowSource()
  readonly name: FoundName
  names = 0
  matched = 0
  #trie: DomainTrie
  readonly #resolvers: DomainTrie
  readonly #everyName: boolean
  readonly #candidates: CandidateFilter | undefined
  readonly #counters: Uint32Array
  readonly #answers: Answers
  /** A receiver's address, then the sender's. */
  readonly #swapped = new DataView(new SharedArrayBuffer(32))
  #isLate = false
  #view: DataView = new DataView(new SharedArrayBuffer(8))
  #rowAt = 0
  #rowsStart = 0
  #rowsEnd = 0
  #frameRowsEnd = 0

  constructor({ trie, resolvers, everyName, candidates }: NameOptions, counters: Uint32Array, answers: Answers) {
    this.#trie = new DomainTrie(trie)
    this.#resolvers = new DomainTrie(resolvers)
    this.#everyName = everyName
    this.#candidates = candidates ? new CandidateFilter(counters) : undefined
    this.#counters = counters
    this.#answers = answers
    this.name = new FoundName(this.#view)
  }

  /** Matches against another registry. Must not be called during a run. */
  useTrie(trie: SharedArrayBuffer): void {
    this.#trie = new DomainTrie(trie)
  }

  /** Begins a run over a section. */
  begin(view: DataView, section: LaneSection): void {
    this.#view = view
    this.#rowAt = section.rowsStart
    this.#rowsStart = section.rowsStart
    this.#rowsEnd = section.rowsEnd
    this.names = 0
    this.matched = 0
    this.#candidates?.begin()
  }

  get rowBytes(): number {
    return this.#rowAt - this.#rowsStart
  }

  /** Begins a frame. Returns false if the rows of a frame of maximum size might not fit. */
  beginFrame(index: number, seconds: number, nanoseconds: number): boolean {
    if (this.#rowAt + FRAME_ROW_BYTES_MAX > this.#rowsEnd) return false
    const row = this.row
    row.frame = index
    row.seconds = seconds
    row.nanoseconds = nanoseconds
    this.#frameRowsEnd = this.#rowAt + FRAME_ROW_BYTES_MAX - ROW_BYTES_MAX
    return true
  }

  /** The names that follow are from a packet from its source to its destination. */
  fromPacket(transport: Transport, clientPort: number, serverPort: number): void {
    const row = this.row
    row.addresses = transport.addressView
    row.client = transport.source
    row.server = transport.source + transport.addressBytes
    row.addressBytes = transport.addressBytes
    row.version = transport.version
    row.clientPort = clientPort
    row.serverPort = serverPort
    row.announced = 0
  }

  /**
   * Emits names of an abandoned stream with the stream's own time. A stream may be evicted while
   * another packet is being decoded, so the state of that packet is restored afterward.
   */
  late(streams: StreamTable, slot: number, read: () => PacketClass): PacketClass {
    const { row } = this
    const before = { ...row }
    const key = streams.keyAt(slot)
    row.seconds = streams.seconds(slot)
    row.nanoseconds = streams.nanoseconds(slot)
    row.addresses = streams.keys
    row.client = key + KEY_FIRST
    row.server = key + KEY_SECOND
    row.version = streams.version(slot)
    row.addressBytes = row.version === 4 ? 4 : 16
    row.clientPort = streams.sourcePort(slot)
    row.serverPort = streams.destinationPort(slot)
    row.announced = 0
    streams.proxied.apply(slot, row)
    // Such a hello is not attributed by DNS answers: the names of many may be due in one frame.
    this.#isLate = true
    const packetClass = read()
    this.#isLate = false
    Object.assign(row, before)
    return packetClass
  }

  /**
   * Reads the DNS message in bytes [message, end) and returns the class of its packet. `isCut` 1: the
   * capture ends before the message.
   */
  query(view: DataView, message: number, end: number, isCut = 0): PacketClass {
    const questions = dnsQuestions(view, message, end)
    if (questions < 0) return ~questions as PacketClass
    const name = this.name
    const read = Math.min(questions, DNS_QUESTIONS_MAX)
    let at = message + DNS_HEADER_BYTES
    for (let question = 0; question < read; question++) {
      at = readQuestion(view, message, at, end, name, isCut)
      if (at < 0) return ~at as PacketClass
      if (this.#rowAt > this.#frameRowsEnd) return PacketClass.dnsQuestionsOverLimit
      this.#found(Method.dns, false)
    }
    return queryClass(questions)
  }

  /**
   * Reads a ClientHello that is complete, or of which no more bytes will come. Counts its outcome
   * and returns the class of its packet.
   */
  hello(hello: HelloBody, method: Method): PacketClass {
    const packetClass = readServerName(hello, this.name)
    // On port 853, the connection is counted when it begins.
    if (hello.alpn === HelloAlpn.doq && this.row.serverPort !== DOT_PORT) {
      countUp(this.#counters, Counter.dotSessions)
      countUp(this.#counters, Counter.doqSessions)
    }
    switch (packetClass) {
      case PacketClass.clientHello:
        countUp(this.#counters, Counter.helloName)
        break
      case PacketClass.clientHelloEch:
        countUp(this.#counters, Counter.helloEch)
        break
      case PacketClass.clientHelloNoName:
        countUp(this.#counters, Counter.helloNoName)
        this.explain(method, false)
        return packetClass
      case PacketClass.clientHelloPart:
        countUp(this.#counters, Counter.helloIncomplete)
        return packetClass
      default:
        return packetClass
    }
    const name = this.name
    if (hello.alpn === HelloAlpn.none && isTorName(name.view, name.start, name.end))
      countUp(this.#counters, Counter.torSessions)
    if (this.#resolvers.matchDotted(name.view, name.start, name.end) !== NO_MATCH)
      countUp(this.#counters, Counter.dohSessions)
    const isEch = packetClass === PacketClass.clientHelloEch
    const { announced } = this.row
    if (announced === 0) {
      // An outer name that matches is the name of the platform: the extension is GREASE.
      if (!this.#found(method, isEch) && isEch) this.explain(method, true)
      return packetClass
    }
    // The request to the proxy had the name, and was reported.
    if (announced === nameHash(name.view, name.start, name.end)) return packetClass
    if (isEch) countUp(this.#counters, Counter.helloExplained)
    this.#found(method, isEch)
    return packetClass
  }

  /** Emits the name in bytes [start, end) of a proxy's handshake. */
  announcedName(view: DataView, start: number, end: number, via: Via): void {
    if (this.#rowAt > this.#frameRowsEnd) return
    this.name.set(view, start, end, NameForm.dotted)
    this.row.via = via
    this.#found(Method.tls, false)
    this.row.via = Via.none
  }

  /**
   * Attributes the connection of the current packet, whose name is hidden, to the name that its
   * client asked for its address.
   */
  explain(method: Method, isEch: boolean): void {
    if (this.#isLate || this.#rowAt > this.#frameRowsEnd) return
    const { name, row } = this
    if (!this.#answers.attribute(row, row.seconds, isEch, name)) return
    const rule = this.#trie.matchWire(name.view, name.start, name.end)
    if (rule === NO_MATCH) return
    countUp(this.#counters, Counter.helloExplained)
    this.#write(method === Method.quic ? Method.quic_inferred : Method.tls_inferred, isEch, rule)
  }

  /** Remembers the answers of a DNS message to a client. With `isCopy`, another lane counts it. */
  answer(transport: Transport, view: DataView, message: number, end: number, isCopy: boolean): void {
    const rule = this.#answers.learn(transport, view, message, end, this.row.seconds, this.#trie)
    if (rule === NO_MATCH || isCopy || this.#rowAt > this.#frameRowsEnd) return
    const { found, isBlocked } = this.#answers
    this.name.set(found.view, found.start, found.end, found.form)
    this.#toReceiver(transport)
    if (isBlocked) this.#refuse(rule)
    else this.#write(Method.dns_alias, false, rule)
  }

  /** Swaps the addresses and ports of the packet: its receiver is the client. */
  #toReceiver({ addressView, source, addressBytes, version, view, start }: Transport): void {
    const { row } = this
    copyBytes(addressView, source + addressBytes, source + 2 * addressBytes, this.#swapped, 0)
    copyBytes(addressView, source, source + addressBytes, this.#swapped, addressBytes)
    row.addresses = this.#swapped
    row.client = 0
    row.server = addressBytes
    row.addressBytes = addressBytes
    row.version = version
    row.clientPort = view.getUint16(start + 2)
    row.serverPort = view.getUint16(start)
  }

  /** Returns whether the name matched. */
  #found(method: Method, ech: boolean): boolean {
    const name = this.name
    const rule =
      name.form === NameForm.wire
        ? this.#trie.matchWire(name.view, name.start, name.end)
        : this.#trie.matchDotted(name.view, name.start, name.end)
    const isPlain = rule === NO_MATCH && !this.#everyName && this.#candidates?.accepts(name) !== true
    if (isPlain) this.names++
    else this.#write(method, ech, rule)
    return rule !== NO_MATCH
  }

  /** The query was a name of its own. */
  #refuse(rule: number): void {
    const { row } = this
    row.method = Method.dns
    row.ech = 0
    row.refusal = 1
    this.#rowAt = writeRow(this.#view, this.#rowAt, row, this.name, rule)
    row.refusal = 0
  }

  #write(method: Method, ech: boolean, rule: number): void {
    // The names of abandoned streams may have filled the area.
    if (this.#rowAt > this.#frameRowsEnd) {
      countUp(this.#counters, Counter.streamsOverLimit)
      return
    }
    this.names++
    if (rule !== NO_MATCH) this.matched++
    this.row.method = method
    this.row.ech = ech ? 1 : 0
    this.#rowAt = writeRow(this.#view, this.#rowAt, this.row, this.name, rule)
  }
}
