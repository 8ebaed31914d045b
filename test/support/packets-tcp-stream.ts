import { ethernet, ipv4, ipv6, type NetworkPacket, TcpFlags, type Transport, tcp } from './packets.ts'

export interface TcpStreamFields {
  readonly client?: string
  readonly clientPort?: number
  readonly server?: string
  readonly serverPort?: number
  /** Sequence number of the client's SYN. */
  readonly clientSequence?: number
  readonly serverSequence?: number
  /** Adds the link header to an IP packet. Default: Ethernet. */
  readonly link?: (packet: NetworkPacket) => Buffer
}

/**
 * The frames of one TCP connection. The bytes of both sides are known from the start, so a segment
 * is identified by its offsets. Tests can send any part at any time, twice or never.
 */
export class TcpStream {
  readonly client: string
  readonly clientPort: number
  readonly server: string
  readonly serverPort: number
  readonly #clientBytes: Buffer
  readonly #serverBytes: Buffer
  readonly #clientSequence: number
  readonly #serverSequence: number
  readonly #link: (packet: NetworkPacket) => Buffer

  constructor(fields: TcpStreamFields, clientBytes: Buffer, serverBytes: Buffer = Buffer.alloc(0)) {
    this.client = fields.client ?? '10.0.0.7'
    this.clientPort = fields.clientPort ?? 50_001
    this.server = fields.server ?? '203.0.113.9'
    this.serverPort = fields.serverPort ?? 443
    this.#clientBytes = clientBytes
    this.#serverBytes = serverBytes
    this.#clientSequence = fields.clientSequence ?? 1_000_000
    this.#serverSequence = fields.serverSequence ?? 2_000_000
    this.#link = fields.link ?? ((packet) => ethernet({}, packet))
  }

  /** Number of bytes that the client sends. */
  get clientLength(): number {
    return this.#clientBytes.length
  }

  /** SYN, SYN-ACK and ACK. */
  open(): Buffer[] {
    return [this.syn(), this.synAck(), this.up(TcpFlags.ack, 0, 0)]
  }

  syn(): Buffer {
    return this.up(TcpFlags.syn, -1, 0)
  }

  synAck(): Buffer {
    return this.down(TcpFlags.syn | TcpFlags.ack, -1, 0)
  }

  /**
   * One segment of the client with the bytes [start, end). `acknowledged`: number of server bytes
   * acknowledged.
   */
  send(start = 0, end = this.#clientBytes.length, acknowledged = 0): Buffer {
    return this.up(TcpFlags.psh | TcpFlags.ack, start, end, acknowledged)
  }

  /** One segment of the server. `acknowledged`: number of client bytes acknowledged. */
  reply(start = 0, end = this.#serverBytes.length, acknowledged = 0): Buffer {
    return this.down(TcpFlags.psh | TcpFlags.ack, start, end, acknowledged)
  }

  /**
   * The client's bytes from `from` on, split at the given offsets, in ascending order or in the
   * order of the given indexes.
   */
  sendSplit(cuts: readonly number[], order?: readonly number[], from = 0, acknowledged = 0): Buffer[] {
    const borders = [from, ...cuts, this.#clientBytes.length]
    const segments = [...cuts, 0].map((_size, index) => this.send(borders[index], borders[index + 1], acknowledged))
    return order === undefined ? segments : order.map((index) => segments[index] as Buffer)
  }

  /** The client's bytes [start, end) in segments of at most `size` bytes. */
  sendSegments(size: number, start = 0, end = this.#clientBytes.length): Buffer[] {
    const segments: Buffer[] = []
    for (let at = start; at < end; at += size) segments.push(this.send(at, Math.min(at + size, end)))
    return segments
  }

  /** FIN of both sides, after all bytes. */
  close(): Buffer[] {
    const sent = this.#clientBytes.length
    const replied = this.#serverBytes.length
    return [
      this.up(TcpFlags.fin | TcpFlags.ack, sent, sent, replied),
      this.down(TcpFlags.fin | TcpFlags.ack, replied, replied, sent + 1),
      this.up(TcpFlags.ack, sent + 1, sent + 1, replied + 1),
    ]
  }

  reset(): Buffer {
    return this.up(
      TcpFlags.rst | TcpFlags.ack,
      this.#clientBytes.length,
      this.#clientBytes.length,
      this.#serverBytes.length,
    )
  }

  /** A segment of the client with any flags. `start` counts from the first byte after SYN. */
  up(flags: number, start: number, end: number, acknowledged = 0): Buffer {
    const fields = {
      sourcePort: this.clientPort,
      destinationPort: this.serverPort,
      sequence: this.#clientSequence + 1 + start,
      acknowledgement: flags === TcpFlags.syn ? 0 : this.#serverSequence + 1 + acknowledged,
      flags,
    }
    return this.#frame(this.client, this.server, tcp(fields, this.#clientBytes.subarray(Math.max(start, 0), end)))
  }

  down(flags: number, start: number, end: number, acknowledged = 0): Buffer {
    const fields = {
      sourcePort: this.serverPort,
      destinationPort: this.clientPort,
      sequence: this.#serverSequence + 1 + start,
      acknowledgement: this.#clientSequence + 1 + acknowledged,
      flags,
    }
    return this.#frame(this.server, this.client, tcp(fields, this.#serverBytes.subarray(Math.max(start, 0), end)))
  }

  #frame(source: string, destination: string, transport: Transport): Buffer {
    return this.#link(
      source.includes(':') ? ipv6({ source, destination }, transport) : ipv4({ source, destination }, transport),
    )
  }
}
