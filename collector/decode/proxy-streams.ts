import type { Network } from '../../engine/kernel/process/network.ts'
import { Counter } from '../batch/counters.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { REQUEST_FIELDS_BYTES_MAX, SHORT_BUFFER_BYTES } from '../limits.ts'
import { NO_BUFFER } from './byte-windows.ts'
import type { Transport } from './layers.ts'
import { nameHash } from './name.ts'
import type { NameSink } from './name-sink.ts'
import type { Ports } from './ports.ts'
import { isFrom } from './proxied-streams.ts'
import { MORE_BYTES, ProxyElement, ProxyPhase, Via } from './proxy-element.ts'
import { readProxyElement } from './proxy-handshake.ts'
import { StreamState, type StreamTable } from './stream-table.ts'

/**
 * TCP segments of a proxy's handshake -> names and clients. Only bytes of an incomplete request
 * line, SOCKS request or PROXY header are kept for the next segment, and segments that arrived
 * before others.
 */

/** Reads what follows the handshake: TcpStreams. */
export interface TunnelReader {
  firstSegment(transport: Transport, slot: number, sequence: number, payload: number): PacketClass
  walkKept(transport: Transport, slot: number): PacketClass
}

/** The stream's bytes are not of a proxy's handshake. */
export const NO_HANDSHAKE = -1
const TLS_HANDSHAKE = 22
const CR = 0x0d
const LF = 0x0a
const FOLLOWED_BYTES_MAX = 1 << 20

/** Outcomes of #advance(). */
const NEEDS_MORE = 0
const ENDED = 1
const NOT_READ = 2

export class ProxyStreams {
  readonly #streams: StreamTable
  readonly #sink: NameSink
  readonly #ports: Ports
  readonly #loadBalancers: readonly Network[]
  readonly #tunnel: TunnelReader
  readonly #element = new ProxyElement()
  /** Set by #advance(): offset of the first byte that was not read. */
  #at = 0
  /** Set by segment(): none of its bytes were read. */
  #isUnread = false

  constructor(
    streams: StreamTable,
    sink: NameSink,
    ports: Ports,
    loadBalancers: readonly Network[],
    tunnel: TunnelReader,
  ) {
    this.#streams = streams
    this.#sink = sink
    this.#ports = ports
    this.#loadBalancers = loadBalancers
    this.#tunnel = tunnel
  }

  /**
   * A segment at the base of a stream, where a handshake may begin. Returns the packet's class, or
   * NO_HANDSHAKE if nothing was read.
   */
  firstSegment(transport: Transport, slot: number, sequence: number, payload: number): number {
    const packetClass = this.segment(transport, slot, sequence, payload)
    return this.#isUnread ? NO_HANDSHAKE : packetClass
  }

  /** A segment of a stream whose handshake goes on. Abandons a stream that is something else. */
  segment(transport: Transport, slot: number, sequence: number, payload: number): PacketClass {
    const streams = this.#streams
    const { view, end } = transport
    const seconds = this.#sink.row.seconds
    this.#isUnread = false
    let from = payload
    let offset = (sequence - (streams.base[slot] ?? 0)) | 0
    if (offset < 0 && offset > -FOLLOWED_BYTES_MAX) {
      from -= offset
      offset = 0
      if (from >= end) return PacketClass.tcpRetransmission
    }
    if (offset < 0 || offset + end - from > SHORT_BUFFER_BYTES + end - payload) return this.#abandon(slot, sequence)
    if (offset > 0 || streams.buffer[slot] !== NO_BUFFER) {
      if (!this.#keep(transport, slot, offset, from)) return this.#abandon(slot, sequence)
      return this.kept(transport, slot)
    }
    const outcome = this.#advance(transport, slot, view, from, end)
    const at = this.#at
    if (outcome === NOT_READ) {
      this.#isUnread = at === from
      return this.#abandon(slot, sequence)
    }
    const base = ((streams.base[slot] ?? 0) + at - from) >>> 0
    if (outcome === NEEDS_MORE) {
      // The bytes missing from a truncated frame do not arrive in a later segment.
      if (transport.truncated === 1) return this.#abandon(slot, base)
      streams.settle(slot, StreamState.proxy, base, seconds)
      if (at < end && !this.#keep(transport, slot, 0, at)) return this.#abandon(slot, base)
      return PacketClass.proxyHandshake
    }
    streams.settle(slot, StreamState.synchronized, base, seconds)
    if (at === end) return PacketClass.proxyHandshake
    const packetClass = this.#tunnel.firstSegment(transport, slot, base, at)
    this.#isUnread = false
    return packetClass === PacketClass.tcpOther ? PacketClass.proxyHandshake : packetClass
  }

  /** Reads the kept bytes from the stream's base on. Abandons a stream that is something else. */
  kept(transport: Transport, slot: number): PacketClass {
    const streams = this.#streams
    const { windows } = streams
    const seconds = this.#sink.row.seconds
    const buffer = streams.buffer[slot] ?? 0
    const start = windows.start(buffer)
    const outcome = this.#advance(transport, slot, windows.view, start, start + windows.contiguous(buffer))
    const base = ((streams.base[slot] ?? 0) + this.#at - start) >>> 0
    if (outcome === NOT_READ) return this.#abandon(slot, base)
    windows.consume(buffer, this.#at - start)
    streams.base[slot] = base
    streams.resetProgress(slot)
    const isEmpty = windows.farthest(buffer) === 0
    if (outcome === NEEDS_MORE) {
      if (isEmpty) streams.settle(slot, StreamState.proxy, base, seconds)
      else streams.state[slot] = StreamState.proxy
      return PacketClass.proxyHandshake
    }
    if (isEmpty) {
      streams.settle(slot, StreamState.synchronized, base, seconds)
      return PacketClass.proxyHandshake
    }
    streams.state[slot] = StreamState.hello
    return windows.contiguous(buffer) === 0 ? PacketClass.proxyHandshake : this.#tunnel.walkKept(transport, slot)
  }

  #keep({ view, end }: Transport, slot: number, offset: number, from: number): boolean {
    const { seconds, nanoseconds } = this.#sink.row
    return this.#streams.keep(slot, offset, view, from, end, seconds, nanoseconds)
  }

  #abandon(slot: number, base: number): PacketClass {
    this.#streams.settle(slot, StreamState.other, base, this.#sink.row.seconds)
    return PacketClass.tcpOther
  }

  /** Reads elements of the handshake in bytes [from, end). */
  #advance(transport: Transport, slot: number, view: DataView, from: number, end: number): number {
    const { proxied } = this.#streams
    const port = this.#ports.proxyPort(this.#streams.destinationPort(slot))
    const element = this.#element
    let at = from
    for (;;) {
      this.#at = at
      const phase = (proxied.phase[slot] ?? 0) as ProxyPhase
      switch (phase) {
        case ProxyPhase.tunnel:
          return at === from ? NOT_READ : ENDED
        case ProxyPhase.httpLine: {
          const line = at
          while (at < end && view.getUint8(at) !== LF) at++
          proxied.bytes[slot] = Math.min((proxied.bytes[slot] ?? 0) + at - line, REQUEST_FIELDS_BYTES_MAX)
          this.#at = at
          if (proxied.bytes[slot] === REQUEST_FIELDS_BYTES_MAX) return NOT_READ
          if (at === end) return NEEDS_MORE
          at++
          proxied.phase[slot] = ProxyPhase.httpField
          break
        }
        case ProxyPhase.fields:
        case ProxyPhase.fieldBegin:
        case ProxyPhase.fieldCr: {
          at = this.#skipFields(slot, view, at, end)
          this.#at = at
          if ((proxied.bytes[slot] ?? 0) >= REQUEST_FIELDS_BYTES_MAX) return NOT_READ
          if (proxied.phase[slot] !== ProxyPhase.afterHeader) return NEEDS_MORE
          if (at === end || view.getUint8(at) === TLS_HANDSHAKE) return ENDED
          break
        }
        case ProxyPhase.socksUser:
        case ProxyPhase.socksPassword: {
          const skipped = Math.min(proxied.bytes[slot] ?? 0, end - at)
          at += skipped
          proxied.bytes[slot] = (proxied.bytes[slot] ?? 0) - skipped
          this.#at = at
          if ((proxied.bytes[slot] ?? 0) > 0) return NEEDS_MORE
          const isUser = phase === ProxyPhase.socksUser
          proxied.phase[slot] = isUser ? ProxyPhase.socksPasswordLength : ProxyPhase.socksRequest
          break
        }
        default: {
          const after = readProxyElement(view, at, end, phase, port, element)
          if (after === MORE_BYTES) return NEEDS_MORE
          // After a PROXY header or a request, whatever follows is the tunnel's.
          if (after < 0) return at > from && phase <= ProxyPhase.afterHeader ? ENDED : NOT_READ
          this.#read(transport, slot, view, element)
          at = after
          this.#at = at
          if (element.next === ProxyPhase.afterHeader && at === end) return ENDED
        }
      }
    }
  }

  /** Uses an element that was read. */
  #read(transport: Transport, slot: number, view: DataView, element: ProxyElement): void {
    const streams = this.#streams
    const { proxied } = streams
    const sink = this.#sink
    proxied.phase[slot] = element.next
    proxied.bytes[slot] = element.skip
    if (element.isProxyHeader) {
      const isTrusted = proxied.mayHaveHeader(slot) && isFrom(this.#loadBalancers, transport)
      streams.count(isTrusted ? Counter.proxyHeaders : Counter.proxyHeadersUntrusted)
      if (!isTrusted) return
      if (element.version !== 0) proxied.setClient(slot, element)
      proxied.apply(slot, sink.row)
    }
    if (element.nameEnd === element.nameStart) return
    const hash = nameHash(view, element.nameStart, element.nameEnd)
    // The request is repeated with a password after a 407, or is for the same server as the last.
    if (proxied.announced[slot] === hash) return
    proxied.announced[slot] = hash
    sink.row.announced = hash
    streams.count(COUNTERS[element.via])
    sink.announcedName(view, element.nameStart, element.nameEnd, element.via)
  }

  /** Skips header fields up to the empty line after them (RFC 9112 §2.1, §2.2). */
  #skipFields(slot: number, view: DataView, from: number, end: number): number {
    const { proxied } = this.#streams
    let phase = proxied.phase[slot] ?? 0
    let at = from
    while (at < end && phase !== ProxyPhase.afterHeader) {
      const byte = view.getUint8(at++)
      if (byte === LF) phase = phase === ProxyPhase.fields ? ProxyPhase.fieldBegin : ProxyPhase.afterHeader
      else if (byte === CR && phase === ProxyPhase.fieldBegin) phase = ProxyPhase.fieldCr
      else phase = ProxyPhase.fields
    }
    const skipped = (proxied.bytes[slot] ?? 0) + at - from
    proxied.bytes[slot] = phase === ProxyPhase.afterHeader ? 0 : Math.min(skipped, REQUEST_FIELDS_BYTES_MAX)
    proxied.phase[slot] = phase
    return at
  }
}

const COUNTERS: Readonly<Record<Via, Counter>> = {
  [Via.none]: Counter.connectTargets,
  [Via.connect]: Counter.connectTargets,
  [Via.socks]: Counter.socksTargets,
  [Via.proxyHeader]: Counter.proxyHeaderNames,
  [Via.http]: Counter.httpNames,
}
