import { Counter } from '../batch/counters.ts'
import { PacketClass } from '../batch/packet-class.ts'
import { HELLO_BYTES_MAX, QUIC_COALESCED_MAX, STREAMS_MAX } from '../limits.ts'
import { helloRandom } from './client-hello.ts'
import type { Transport } from './layers.ts'
import { Method } from './name-rows.ts'
import type { NameSink } from './name-sink.ts'
import type { Ports } from './ports.ts'
import {
  CONNECTION_ID_BYTES_MAX,
  CryptoFrame,
  InitialOpener,
  isUnreadInitial,
  LongHeader,
  nextCryptoFrame,
  QuicFault,
  QuicPacket,
  readLongHeader,
} from './quic-initial.ts'
import { alternativeVersion, INITIAL_KEYS_BYTES, InitialKeys, quicVersion } from './quic-keys.ts'
import { NO_SLOT } from './slot-table.ts'
import { StreamState, type StreamTable } from './stream-table.ts'
import { HANDSHAKE_CLIENT_HELLO, HANDSHAKE_HEADER_BYTES, HelloBody } from './tls-record.ts'
import { UDP_HEADER_BYTES, UDP_LENGTH } from './udp.ts'

/**
 * QUIC datagrams -> ClientHellos, reassembled from the CRYPTO frames of a client's Initial packets.
 * The keys derive from the connection ID that the client chose for its first Initial (RFC 9001
 * §5.2). Later Initials carry the server's ID under the same keys. After a Retry the client starts
 * again with new keys (RFC 9000 §17.2.5.3).
 */

/** RFC 9000 §17.2: header form and fixed bit. */
const LONG_HEADER = 0x80
const FIXED_BIT = 0x40
const VERSION = 1

/**
 * State of a connection, for each slot of the stream table:
 *
 *     byte  0  44  its keys, as InitialKeys.store() writes them
 *          44   1  1 + length in bytes of the ID from which the keys derive; 0 without a connection
 *          45  20  that ID
 */
const ID_LENGTH = INITIAL_KEYS_BYTES
const ID = ID_LENGTH + 1
const CONNECTION_BYTES = ID + CONNECTION_ID_BYTES_MAX

export class QuicStreams {
  readonly #streams: StreamTable
  readonly #sink: NameSink
  readonly #ports: Ports
  readonly #connections = new Uint8Array(STREAMS_MAX * CONNECTION_BYTES)
  readonly #header = new LongHeader()
  readonly #opener = new InitialOpener()
  readonly #frame = new CryptoFrame()
  readonly #hello = new HelloBody()
  /** The hello of a stream that is evicted while another hello is read. */
  readonly #unfinished = new HelloBody()

  constructor(streams: StreamTable, sink: NameSink, ports: Ports) {
    this.#streams = streams
    this.#sink = sink
    this.#ports = ports
  }

  /**
   * Returns the class of a datagram whose payload is in bytes [payload, end), udpOther if it is not
   * QUIC.
   */
  datagram(transport: Transport, source: number, destination: number, payload: number, end: number): PacketClass {
    const { view } = transport
    const ports = this.#ports.tls
    const onPort = ports[destination] === 1 || ports[source] === 1
    if (payload + VERSION + 4 > end) return PacketClass.udpOther
    const first = view.getUint8(payload)
    if ((first & LONG_HEADER) === 0) {
      return onPort && (first & FIXED_BIT) !== 0 ? PacketClass.quicOther : PacketClass.udpOther
    }
    const version = view.getUint32(payload + VERSION)
    // RFC 8999 §6: version 0 is a server's Version Negotiation packet.
    if (version === 0) return onPort ? PacketClass.quicOther : PacketClass.udpOther
    const known = quicVersion(version) !== undefined
    if (!known && !onPort) return PacketClass.udpOther
    if (ports[source] === 1 && ports[destination] === 0) return PacketClass.quicOther
    this.#sink.fromPacket(transport, source, destination)
    if (!known) return this.#unknownVersion(transport, source, destination)

    let outcome: PacketClass = PacketClass.quicOther
    let at = payload
    for (let packets = 0; packets < QUIC_COALESCED_MAX && at < end; packets++) {
      const header = this.#header
      const fault = readLongHeader(view, at, end, header)
      if (fault === QuicFault.notLongHeader) break
      if (fault < 0) {
        if (packets > 0) break
        return transport.truncated === 1 ? PacketClass.truncated : PacketClass.quicUndecodable
      }
      if (header.packetType === QuicPacket.initial) {
        const packetClass = this.#initial(transport, source, destination, at)
        // The most informative Initial decides the class of the datagram.
        if (outcome === PacketClass.quicOther || packetClass === PacketClass.clientHello) outcome = packetClass
        else if (outcome === PacketClass.clientHelloPart && packetClass !== PacketClass.quicOther) outcome = packetClass
      }
      at = header.packetEnd
    }
    return outcome
  }

  /** Counts each connection once, from its first Initial on. */
  #unknownVersion(transport: Transport, source: number, destination: number): PacketClass {
    const streams = this.#streams
    const { seconds } = this.#sink.row
    const slot = streams.find(transport, source * 65_536 + destination)
    if (slot !== NO_SLOT && streams.state[slot] === StreamState.unread) {
      streams.touch(slot, seconds)
      return PacketClass.quicUnknownVersion
    }
    const { view, start, payload, payloadEnd } = transport
    // By the UDP header, because the frame may be truncated.
    const datagramBytes = Math.max(view.getUint16(start + UDP_LENGTH) - UDP_HEADER_BYTES, payloadEnd - payload)
    if (!isUnreadInitial(view, payload, payloadEnd, datagramBytes)) return PacketClass.udpOther
    if (slot !== NO_SLOT) return PacketClass.quicUnknownVersion
    streams.follow(StreamState.unread, 0, destination, seconds)
    streams.count(Counter.helloQuicUnknownVersion)
    this.#sink.explain(Method.quic, false)
    return PacketClass.quicUnknownVersion
  }

  #initial(transport: Transport, source: number, destination: number, start: number): PacketClass {
    const streams = this.#streams
    const { seconds } = this.#sink.row
    let slot = streams.find(transport, source * 65_536 + destination)
    const connections = this.#connections
    if (slot !== NO_SLOT && connections[slot * CONNECTION_BYTES + ID_LENGTH] !== 0) {
      const sameId = this.#isId(transport, slot)
      if (sameId && streams.state[slot] === StreamState.helloRead) {
        streams.touch(slot, seconds)
        return PacketClass.quicOther
      }
      const length = this.#open(transport, start, InitialKeys.load(connections, slot * CONNECTION_BYTES))
      if (length >= 0) return this.#crypto(slot, length)
      if (sameId) return PacketClass.quicUndecodable
    }
    const { versionParameters, version, dcidStart, dcidEnd } = this.#header
    if (versionParameters === undefined) return PacketClass.quicUndecodable
    const id = transport.bytes.subarray(dcidStart, dcidEnd)
    let keys = InitialKeys.derive(versionParameters, id)
    let length = this.#open(transport, start, keys)
    const alternative = length < 0 ? alternativeVersion(version) : undefined
    if (alternative !== undefined) {
      keys = InitialKeys.derive(alternative, id)
      length = this.#open(transport, start, keys)
    }
    // Only packets that open are followed, so a flood of others takes no slots.
    if (length < 0) return PacketClass.quicUndecodable
    if (slot === NO_SLOT) slot = streams.follow(StreamState.hello, 0, destination, seconds)
    else {
      // A Retry, or a new connection between the same ports: the CRYPTO stream and the hello start
      // again.
      this.unfinished(slot)
      streams.settle(slot, StreamState.hello, 0, seconds)
    }
    this.#remember(slot, keys, id)
    return this.#crypto(slot, length)
  }

  #remember(slot: number, keys: InitialKeys, id: Uint8Array): void {
    const at = slot * CONNECTION_BYTES
    keys.store(this.#connections, at)
    this.#connections[at + ID_LENGTH] = 1 + id.length
    this.#connections.set(id, at + ID)
  }

  /** Whether the packet's DCID is the one from which the slot's keys derive. */
  #isId({ view }: Transport, slot: number): boolean {
    const connections = this.#connections
    const { dcidStart, dcidEnd } = this.#header
    const at = slot * CONNECTION_BYTES
    if (connections[at + ID_LENGTH] !== 1 + dcidEnd - dcidStart) return false
    for (let byte = 0; byte < dcidEnd - dcidStart; byte++) {
      if (view.getUint8(dcidStart + byte) !== connections[at + ID + byte]) return false
    }
    return true
  }

  #open(transport: Transport, start: number, keys: InitialKeys): number {
    const length = this.#opener.open(transport.view, transport.bytes, this.#header, start, keys)
    if (length >= 0) this.#streams.count(Counter.quicOpened)
    return length
  }

  /** Adds the CRYPTO frames of an opened Initial of `length` bytes to the stream's hello. */
  #crypto(slot: number, length: number): PacketClass {
    const streams = this.#streams
    const plain = this.#opener.plain
    const frame = this.#frame
    const { seconds, nanoseconds } = this.#sink.row
    let outcome: PacketClass = PacketClass.quicOther
    for (let at = nextCryptoFrame(plain, 0, length, frame); at >= 0; at = nextCryptoFrame(plain, at, length, frame)) {
      let from = frame.start
      let offset = frame.offset - (streams.base[slot] ?? 0)
      if (offset < 0) {
        from -= offset
        offset = 0
      }
      if (from >= frame.end) continue
      if (streams.state[slot] === StreamState.helloRead) streams.state[slot] = StreamState.hello
      if (offset === 0 && this.#wholeHello(plain, from, frame.end)) {
        outcome = this.#readHello(slot, plain, from)
        continue
      }
      if (!streams.keep(slot, offset, plain, from, frame.end, seconds, nanoseconds)) {
        this.unfinished(slot)
        streams.settle(slot, StreamState.helloRead, (streams.base[slot] ?? 0) + offset, seconds)
        return PacketClass.quicOther
      }
      const buffer = streams.buffer[slot] ?? 0
      const start = streams.windows.start(buffer)
      const view = streams.windows.view
      if (outcome === PacketClass.quicOther) outcome = PacketClass.clientHelloPart
      if (this.#wholeHello(view, start, start + streams.windows.contiguous(buffer))) {
        outcome = this.#readHello(slot, view, start)
      }
    }
    if (streams.state[slot] === StreamState.helloRead) streams.touch(slot, seconds)
    return outcome
  }

  /** Whether bytes [start, end) of a CRYPTO stream hold a whole ClientHello, or something else. */
  #wholeHello(view: DataView, start: number, end: number): boolean {
    if (start < end && view.getUint8(start) !== HANDSHAKE_CLIENT_HELLO) return true
    if (start + HANDSHAKE_HEADER_BYTES > end) return false
    const bytes = HANDSHAKE_HEADER_BYTES + (view.getUint32(start) & 0xff_ffff)
    return bytes > HELLO_BYTES_MAX || start + bytes <= end
  }

  /**
   * Reads the hello at `start`, for which wholeHello() must be true, and records that the stream's
   * hello was read.
   */
  #readHello(slot: number, view: DataView, start: number): PacketClass {
    const streams = this.#streams
    const { seconds } = this.#sink.row
    const bytes = HANDSHAKE_HEADER_BYTES + (view.getUint32(start) & 0xff_ffff)
    let packetClass: PacketClass = PacketClass.quicOther
    if (view.getUint8(start) === HANDSHAKE_CLIENT_HELLO) {
      packetClass = PacketClass.clientHelloMalformed
      if (bytes <= HELLO_BYTES_MAX) {
        this.#hello.set(view, start + HANDSHAKE_HEADER_BYTES, start + bytes, 0)
        const random = helloRandom(this.#hello)
        // RFC 9000 §17.2.5.3: after a Retry the client repeats its hello. The hello after a
        // HelloRetryRequest has the same random, but a later offset.
        const again = streams.base[slot] === 0 && random !== 0 && random === streams.random[slot]
        packetClass = again ? PacketClass.quicOther : this.#sink.hello(this.#hello, Method.quic)
        streams.random[slot] = random
      }
    }
    streams.settle(slot, StreamState.helloRead, (streams.base[slot] ?? 0) + bytes, seconds)
    return packetClass
  }

  /**
   * Emits the name of an incomplete hello of which no more bytes will come, if the name is
   * available.
   */
  unfinished(slot: number): void {
    const streams = this.#streams
    const buffer = streams.buffer[slot] ?? 0
    if (streams.state[slot] !== StreamState.hello || buffer < 0) return
    const start = streams.windows.start(buffer)
    const contiguous = streams.windows.contiguous(buffer)
    const hello = this.#unfinished
    const body = Math.min(start + HANDSHAKE_HEADER_BYTES, start + contiguous)
    hello.set(streams.windows.view, body, start + contiguous, 1)
    const packetClass = this.#sink.late(streams, slot, () => this.#sink.hello(hello, Method.quic))
    // A name already emitted is not emitted again when the client repeats the whole hello after a
    // Retry.
    if (packetClass !== PacketClass.clientHelloPart) streams.random[slot] = helloRandom(hello)
  }

  /** The slot is reused for another stream. */
  release(slot: number): void {
    this.#connections[slot * CONNECTION_BYTES + ID_LENGTH] = 0
  }
}
