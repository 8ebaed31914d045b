import type { Network } from '../../engine/kernel/process/network.ts'
import { Counter } from '../batch/counters.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { SHORT_BUFFER_BYTES } from '../limits.ts'
import { NO_BUFFER } from './byte-windows.ts'
import { DnsStreams, REPETITION_BYTES_MAX } from './dns-streams.ts'
import { isOpenVpnReset } from './hidden.ts'
import type { Transport } from './layers.ts'
import { Method } from './name-rows.ts'
import type { NameSink } from './name-sink.ts'
import type { Ports } from './ports.ts'
import { beginsLaterRequest, beginsProxy, mayBeginProxy, type ProxyPort } from './proxy-handshake.ts'
import { NO_HANDSHAKE, ProxyStreams } from './proxy-streams.ts'
import { NO_SLOT } from './slot-table.ts'
import { StreamState, type StreamTable } from './stream-table.ts'
import { findClientHello, HelloBody, HelloProgress, isSsl2Hello, mayBeginHello, walkRecords } from './tls-record.ts'

/**
 * RFC 9293 §3.1: ports, sequence and acknowledgment number, data offset in units of 4 bytes, flags.
 */
const TCP_HEADER_BYTES = 20
const TCP_SEQUENCE = 4
const TCP_DATA_OFFSET = 12
const TCP_FLAGS = 13
const TcpFlag = { syn: 0x02, ack: 0x10 } as const

/**
 * Returns the offset of the payload of the segment in bytes [offset, end), or `end` if there is no
 * payload.
 */
function tcpPayload(view: DataView, offset: number, end: number): number {
  if (offset + TCP_HEADER_BYTES > end) return ~PacketClass.truncated
  const headerBytes = (view.getUint8(offset + TCP_DATA_OFFSET) >> 4) * 4
  if (headerBytes < TCP_HEADER_BYTES) return ~PacketClass.tcpMalformed
  if (offset + headerBytes > end) return ~PacketClass.truncated
  return offset + headerBytes
}

/**
 * TCP segments -> ClientHellos, reassembled whatever the order of the segments. The first copy of a
 * byte wins. Read: hellos at the start of a stream and at the start of any later segment (after
 * STARTTLS, a proxy's CONNECT, a HelloRetryRequest). proxy-streams.ts reads what precedes a hello
 * through a proxy, dns-streams.ts the streams of the DNS ports.
 *
 *     state         a new SYN       first bytes of a hello   its last bytes   other bytes
 *     (none)        synchronized      hello                    helloRead        orphan on a TLS port
 *     synchronized  (the same)        hello                    helloRead        proxy, other
 *     orphan        hello, if before  hello                    helloRead        orphan, other
 *     hello         (restarts)        hello                    helloRead        other
 *     proxy         (restarts)        hello                    helloRead        proxy, other
 *     helloRead     (restarts)        hello                    helloRead        helloRead
 *     other         (restarts)        hello                    helloRead        other, proxy
 *
 * A stream that began before the capture has no SYN. Its hello is recognized by the first bytes. On
 * a TLS port, bytes that arrive before the start of a hello are kept for a short time.
 */

const CHANGE_CIPHER_SPEC_BYTES = 6
const STRAY_BYTES_MAX = 2

export class TcpStreams {
  readonly #streams: StreamTable
  readonly #sink: NameSink
  readonly #ports: Ports
  readonly #hello = new HelloBody()
  /** The hello of a stream that is evicted while another hello is read. */
  readonly #unfinished = new HelloBody()
  readonly #progress = new HelloProgress()
  readonly #proxies: ProxyStreams
  readonly #dns: DnsStreams

  constructor(streams: StreamTable, sink: NameSink, ports: Ports, loadBalancers: readonly Network[]) {
    this.#streams = streams
    this.#sink = sink
    this.#ports = ports
    this.#proxies = new ProxyStreams(streams, sink, ports, loadBalancers, this)
    this.#dns = new DnsStreams(streams, sink)
  }

  /** Returns the class of this segment's packet, and emits its names. */
  segment(transport: Transport): PacketClass {
    const { view, start, end } = transport
    const payload = tcpPayload(view, start, end)
    if (payload < 0) return ~payload as PacketClass
    const flags = view.getUint8(start + TCP_FLAGS)
    const isSyn = (flags & (TcpFlag.syn | TcpFlag.ack)) === TcpFlag.syn
    if (payload >= end && !isSyn) return transport.truncated === 1 ? PacketClass.truncated : PacketClass.tcpNoPayload
    const ports = view.getUint32(start)
    const source = ports >>> 16
    const destination = ports & 0xffff
    const isDns = this.#ports.dns[destination] === 1
    if (!isDns && this.#ports.dns[source] === 1)
      return payload < end ? PacketClass.dnsResponse : PacketClass.tcpNoPayload
    // Data from servers is the bulk of all traffic. It is searched for a hello but not followed.
    if (this.#ports.tls[source] === 1 && this.#ports.tls[destination] === 0 && !isSyn) {
      if (findClientHello(view, payload, end, this.#hello) === ~PacketClass.tcpOther) return PacketClass.tcpOther
    }

    const streams = this.#streams
    const seconds = this.#sink.row.seconds
    let sequence = view.getUint32(start + TCP_SEQUENCE)
    let slot = streams.find(transport, ports)
    if (isSyn) {
      sequence = (sequence + 1) >>> 0
      slot = this.#onSyn(slot, sequence, isDns, destination, seconds)
      if (payload >= end) return PacketClass.tcpNoPayload
    }
    this.#sink.fromPacket(transport, source, destination)
    if (isDns) {
      if (slot === NO_SLOT) slot = streams.follow(StreamState.dnsUnaligned, sequence, destination, seconds)
      return this.#dns.segment(transport, slot, sequence, payload)
    }
    if (slot === NO_SLOT) return this.#untracked(transport, sequence, payload, destination)
    streams.proxied.apply(slot, this.#sink.row)
    switch (streams.state[slot] as StreamState) {
      case StreamState.proxy:
        return this.#proxies.segment(transport, slot, sequence, payload)
      case StreamState.synchronized:
        return this.firstSegment(transport, slot, sequence, payload)
      case StreamState.hello:
        return this.#continueHello(transport, slot, sequence, payload)
      case StreamState.orphan:
        return this.#orphanSegment(transport, slot, sequence, payload)
      default:
        return this.#laterSegment(transport, slot, sequence, payload)
    }
  }

  /** A SYN: the stream begins at `sequence`. Returns the stream's slot. */
  #onSyn(slot: number, sequence: number, isDns: boolean, destination: number, seconds: number): number {
    const streams = this.#streams
    const state = isDns ? StreamState.dns : StreamState.synchronized
    if (slot === NO_SLOT) return streams.follow(state, sequence, destination, seconds)
    // A repeated SYN, or a SYN that arrives after the data that follows it.
    const ahead = ((streams.base[slot] ?? 0) - sequence) | 0
    if (ahead === 0) return slot
    if (ahead > 0 && ahead < REPETITION_BYTES_MAX) {
      if (streams.state[slot] !== StreamState.orphan) return slot
      if (streams.beginBefore(slot, ahead)) {
        streams.state[slot] = StreamState.hello
        return slot
      }
    }
    this.unfinished(slot)
    streams.proxied.clear(slot)
    streams.settle(slot, state, sequence, seconds)
    return slot
  }

  /** Payload of a stream that is not followed. */
  #untracked(transport: Transport, sequence: number, payload: number, destination: number): PacketClass {
    const { view, end } = transport
    const seconds = this.#sink.row.seconds
    const found = findClientHello(view, payload, end, this.#hello)
    if (found !== ~PacketClass.tcpOther) {
      const slot = this.#streams.follow(StreamState.other, sequence, destination, seconds)
      return this.#beginHello(transport, slot, sequence, payload, found)
    }
    if (isSsl2Hello(view, payload, end)) {
      this.#streams.follow(StreamState.helloRead, (sequence + end - payload) >>> 0, destination, seconds)
      this.#streams.count(Counter.helloNoName)
      return PacketClass.clientHelloNoName
    }
    const port = this.#ports.proxyPort(destination)
    // What a proxy sends to its client may begin like a request.
    const isAnswer = this.#ports.proxy[view.getUint16(transport.start)] === 1 && !port.isProxy
    if (!isAnswer && beginsProxy(view, payload, end, port)) {
      const slot = this.#streams.follow(StreamState.synchronized, sequence, destination, seconds)
      this.#streams.proxied.beginUnseen(slot)
      return this.firstSegment(transport, slot, sequence, payload)
    }
    if (this.#ports.tls[destination] === 0 || transport.truncated === 1) return PacketClass.tcpOther
    const begins = mayBeginHello(view, payload, end)
    const state = begins ? StreamState.hello : StreamState.orphan
    const slot = this.#streams.follow(state, sequence, destination, seconds)
    return this.#keep(slot, 0, view, payload, end) && begins ? PacketClass.clientHelloPart : PacketClass.tcpOther
  }

  /** The first payload after a SYN, or a later one that overtook it. */
  firstSegment(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    const streams = this.#streams
    const { view, end } = transport
    const offset = (sequence - (streams.base[slot] ?? 0)) | 0
    if (offset < 0) {
      // Bytes before the start are from a keep-alive or an earlier connection.
      if (payload - offset >= end) return this.#laterSegment(transport, slot, sequence, payload)
      return this.firstSegment(transport, slot, streams.base[slot] ?? 0, payload - offset)
    }
    if (offset > 0) {
      // Later bytes have overtaken others.
      if (offset > SHORT_BUFFER_BYTES) return this.#laterSegment(transport, slot, sequence, payload)
      if (offset <= STRAY_BYTES_MAX) {
        const found = findClientHello(view, payload, end, this.#hello)
        if (found !== ~PacketClass.tcpOther) return this.#beginHello(transport, slot, sequence, payload, found)
      }
      streams.state[slot] = StreamState.hello
      return this.#continueHello(transport, slot, sequence, payload)
    }
    if (isStray(view, payload, end)) return PacketClass.tcpOther
    const found = findClientHello(view, payload, end, this.#hello)
    if (found !== ~PacketClass.tcpOther) return this.#beginHello(transport, slot, sequence, payload, found)
    const seconds = this.#sink.row.seconds
    const nextSequence = (sequence + end - payload) >>> 0
    if (mayBeginHello(view, payload, end)) {
      streams.state[slot] = StreamState.hello
      return this.#keep(slot, 0, view, payload, end) ? PacketClass.clientHelloPart : PacketClass.tcpOther
    }
    if (isSsl2Hello(view, payload, end)) {
      streams.settle(slot, StreamState.helloRead, nextSequence, seconds)
      streams.count(Counter.helloNoName)
      return PacketClass.clientHelloNoName
    }
    if (isOpenVpnReset(view, payload + 2, end) && view.getUint16(payload) === end - payload - 2)
      streams.count(Counter.openvpnSessions)
    if (mayBeginProxy(view.getUint8(payload), this.#proxyPort(slot))) {
      const packetClass = this.#proxies.firstSegment(transport, slot, sequence, payload)
      if (packetClass !== NO_HANDSHAKE) return packetClass as PacketClass
    }
    streams.settle(slot, StreamState.other, nextSequence, seconds)
    return PacketClass.tcpOther
  }

  #proxyPort(slot: number): ProxyPort {
    return this.#ports.proxyPort(this.#streams.destinationPort(slot))
  }

  /** A segment that begins with a ClientHello. `found` is the result of findClientHello(). */
  #beginHello(transport: Transport, slot: number, sequence: number, payload: number, found: number): PacketClass {
    const { view, end } = transport
    const streams = this.#streams
    const seconds = this.#sink.row.seconds
    const nextSequence = (sequence + end - payload) >>> 0
    if (found === ~PacketClass.clientHelloMalformed) {
      streams.settle(slot, StreamState.other, nextSequence, seconds)
      return PacketClass.clientHelloMalformed
    }
    const whole = found === 0 && this.#hello.incomplete === 0
    // The bytes missing from a truncated frame do not arrive in a later segment.
    if (whole || transport.truncated === 1) {
      streams.settle(slot, StreamState.helloRead, nextSequence, seconds)
      if (found < 0) this.#hello.set(view, payload, payload, 1)
      const packetClass = this.#sink.hello(this.#hello, Method.tls)
      return packetClass === PacketClass.clientHelloPart ? PacketClass.truncated : packetClass
    }
    const orphaned = streams.state[slot] === StreamState.orphan
    const ahead = orphaned ? ((streams.base[slot] ?? 0) - sequence) | 0 : -1
    if (ahead <= 0 || !streams.beginBefore(slot, ahead)) streams.settle(slot, StreamState.hello, sequence, seconds)
    streams.state[slot] = StreamState.hello
    return this.#continueHello(transport, slot, sequence, payload)
  }

  /** A segment of a stream whose hello is incomplete. */
  #continueHello(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    const streams = this.#streams
    const { view, end } = transport
    let from = payload
    let offset = (sequence - (streams.base[slot] ?? 0)) | 0
    if (offset < 0) {
      if (offset < -REPETITION_BYTES_MAX) return this.#restart(transport, slot, sequence, payload)
      from -= offset
      offset = 0
      if (from >= end) return PacketClass.tcpRetransmission
    }
    const before = streams.buffer[slot] ?? 0
    const contiguous = before === NO_BUFFER ? 0 : streams.windows.contiguous(before)
    if (offset + end - from <= contiguous) return PacketClass.tcpRetransmission
    if (offset > REPETITION_BYTES_MAX) return this.#restart(transport, slot, sequence, payload)
    return this.#keep(slot, offset, view, from, end) ? this.walkKept(transport, slot) : PacketClass.tcpOther
  }

  /** Reads the kept bytes from the stream's base on. */
  walkKept(transport: Transport, slot: number): PacketClass {
    const streams = this.#streams
    const windows = streams.windows
    const buffer = streams.buffer[slot] ?? 0
    const start = windows.start(buffer)
    const reached = start + windows.contiguous(buffer)
    const progress = streams.progress(slot, this.#progress)
    const outcome = walkRecords(windows.view, start, reached, progress)
    streams.setProgress(slot, progress)
    if (outcome === 0) return PacketClass.clientHelloPart
    const seconds = this.#sink.row.seconds
    const nextSequence = ((streams.base[slot] ?? 0) + windows.contiguous(buffer)) >>> 0
    if (outcome < 0) {
      const mayBeProxy = outcome === ~PacketClass.tcpOther && progress.recordAt === 0
      if (mayBeProxy && mayBeginProxy(windows.view.getUint8(start), this.#proxyPort(slot)))
        return this.#proxies.kept(transport, slot)
      streams.settle(slot, StreamState.other, nextSequence, seconds)
      return ~outcome as PacketClass
    }
    const found = findClientHello(windows.view, start, reached, this.#hello)
    const packetClass = found < 0 ? (~found as PacketClass) : this.#sink.hello(this.#hello, Method.tls)
    streams.settle(slot, StreamState.helloRead, nextSequence, seconds)
    return packetClass
  }

  /**
   * A segment too far from the followed bytes: the ports now belong to a connection whose start was
   * not seen.
   */
  #restart(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    this.unfinished(slot)
    this.#streams.proxied.clear(slot)
    this.#streams.settle(slot, StreamState.other, sequence, this.#sink.row.seconds)
    return this.#laterSegment(transport, slot, sequence, payload)
  }

  /**
   * A segment of a stream that carries something else or whose hello was read: another hello may
   * begin here.
   */
  #laterSegment(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    const streams = this.#streams
    const { view, end } = transport
    const seconds = this.#sink.row.seconds
    if (streams.state[slot] === StreamState.helloRead) {
      const offset = (sequence - (streams.base[slot] ?? 0)) | 0
      if (offset < 0 && offset >= -REPETITION_BYTES_MAX) return PacketClass.tcpRetransmission
    }
    const skipped = isChangeCipherSpec(view, payload, end) ? CHANGE_CIPHER_SPEC_BYTES : 0
    const found = findClientHello(view, payload + skipped, end, this.#hello)
    if (found !== ~PacketClass.tcpOther) {
      return this.#beginHello(transport, slot, (sequence + skipped) >>> 0, payload + skipped, found)
    }
    if (streams.state[slot] === StreamState.other && beginsLaterRequest(view, payload, end, this.#proxyPort(slot))) {
      streams.proxied.beginRequest(slot)
      streams.settle(slot, StreamState.synchronized, sequence, seconds)
      return this.firstSegment(transport, slot, sequence, payload)
    }
    streams.touch(slot, seconds)
    return PacketClass.tcpOther
  }

  /**
   * A segment of a stream on a TLS port whose start was not seen and of which a few bytes are kept.
   */
  #orphanSegment(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    const streams = this.#streams
    const { view, end } = transport
    const found = findClientHello(view, payload, end, this.#hello)
    if (found !== ~PacketClass.tcpOther) return this.#beginHello(transport, slot, sequence, payload, found)
    const offset = (sequence - (streams.base[slot] ?? 0)) | 0
    const farthest = streams.windows.farthest(streams.buffer[slot] ?? 0)
    // A stream with more bytes than fit a short buffer began long before.
    const fits =
      offset >= 0
        ? offset + end - payload <= SHORT_BUFFER_BYTES
        : farthest - offset <= SHORT_BUFFER_BYTES && streams.beginBefore(slot, -offset)
    if (!fits || !this.#keep(slot, Math.max(offset, 0), view, payload, end)) {
      streams.settle(slot, StreamState.other, sequence, this.#sink.row.seconds)
      return PacketClass.tcpOther
    }
    if (offset >= 0 || !mayBeginHello(view, payload, end)) return PacketClass.tcpOther
    streams.state[slot] = StreamState.hello
    return this.#continueHello(transport, slot, sequence, payload)
  }

  #keep(slot: number, offset: number, view: DataView, from: number, to: number): boolean {
    const { seconds, nanoseconds } = this.#sink.row
    if (this.#streams.keep(slot, offset, view, from, to, seconds, nanoseconds)) return true
    this.unfinished(slot)
    this.#streams.settle(slot, StreamState.other, (this.#streams.base[slot] ?? 0) + offset, seconds)
    return false
  }

  /**
   * Emits the name of an incomplete hello of which no more bytes will come, if the name is
   * available.
   */
  unfinished(slot: number): void {
    const streams = this.#streams
    const buffer = streams.buffer[slot] ?? 0
    if (streams.state[slot] === StreamState.dns) return this.#dns.unfinished(slot)
    if (streams.state[slot] !== StreamState.hello) return
    const contiguous = buffer === NO_BUFFER ? 0 : streams.windows.contiguous(buffer)
    // Without the first byte, the kept bytes may not be from a hello.
    if (contiguous === 0) return
    const start = streams.windows.start(buffer)
    const hello = this.#unfinished
    const found = findClientHello(streams.windows.view, start, start + contiguous, hello)
    if (found === ~PacketClass.tcpOther || found === ~PacketClass.clientHelloMalformed) return
    if (found < 0) hello.set(streams.windows.view, start, start, 1)
    hello.incomplete = 1
    this.#sink.late(streams, slot, () => this.#sink.hello(hello, Method.tls))
  }
}

/** One or two zero bytes at the start of a stream, which some hosts send before what they repeat there. */
function isStray(view: DataView, at: number, end: number): boolean {
  return end - at <= STRAY_BYTES_MAX && view.getUint8(at) === 0 && view.getUint8(end - 1) === 0
}

/**
 * RFC 8446 §D.4: a client in compatibility mode sends this between its two hellos, perhaps in the
 * segment of the second one.
 */
function isChangeCipherSpec(view: DataView, at: number, end: number): boolean {
  return at + CHANGE_CIPHER_SPEC_BYTES < end && view.getUint32(at) === 0x1403_0300 && view.getUint16(at + 4) === 0x0101
}
