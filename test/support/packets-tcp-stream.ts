import { ethernet, ipv4, ipv6, type NetworkPacket, TcpFlags, type Transport, tcp } from './packets.ts'

export interface TcpTalkFields {
  readonly client?: string
  readonly clientPort?: number
  readonly server?: string
  readonly serverPort?: number
  /** The sequence number of the client's SYN. */
  readonly clientSequence?: number
  readonly serverSequence?: number
  /** What goes around the IP packet; Ethernet when it is not given. */
  readonly link?: (packet: NetworkPacket) => Buffer
}

/**
 * The frames of one TCP connection. The bytes that either side says are known from the start, so that a segment is named by its
 * place in them: any part can be sent at any time, twice, or never.
 */
export class TcpTalk {
  readonly client: string
  readonly clientPort: number
  readonly server: string
  readonly serverPort: number
  readonly #said: Buffer
  readonly #answered: Buffer
  readonly #clientSequence: number
  readonly #serverSequence: number
  readonly #link: (packet: NetworkPacket) => Buffer

  constructor(fields: TcpTalkFields, said: Buffer, answered: Buffer = Buffer.alloc(0)) {
    this.client = fields.client ?? '10.0.0.7'
    this.clientPort = fields.clientPort ?? 50_001
    this.server = fields.server ?? '203.0.113.9'
    this.serverPort = fields.serverPort ?? 443
    this.#said = said
    this.#answered = answered
    this.#clientSequence = fields.clientSequence ?? 1_000_000
    this.#serverSequence = fields.serverSequence ?? 2_000_000
    this.#link = fields.link ?? ((packet) => ethernet({}, packet))
  }

  /** How many bytes the client says in all. */
  get said(): number {
    return this.#said.length
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

  /** One segment of the client with the bytes [start, end). `answered` is how much of the server's bytes it acknowledges. */
  say(start = 0, end = this.#said.length, answered = 0): Buffer {
    return this.up(TcpFlags.psh | TcpFlags.ack, start, end, answered)
  }

  /** One segment of the server; `said` is how much of the client's bytes it acknowledges. */
  answer(start = 0, end = this.#answered.length, said = 0): Buffer {
    return this.down(TcpFlags.psh | TcpFlags.ack, start, end, said)
  }

  /** The client's bytes from `from` on, cut at these places, in order or in the order of the given indexes. */
  sayCut(cuts: readonly number[], order?: readonly number[], from = 0, answered = 0): Buffer[] {
    const borders = [from, ...cuts, this.#said.length]
    const segments = [...cuts, 0].map((_cut, index) => this.say(borders[index], borders[index + 1], answered))
    return order === undefined ? segments : order.map((index) => segments[index] as Buffer)
  }

  /** The client's bytes [start, end) in segments of at most `size`. */
  sayInPieces(size: number, start = 0, end = this.#said.length): Buffer[] {
    const segments: Buffer[] = []
    for (let at = start; at < end; at += size) segments.push(this.say(at, Math.min(at + size, end)))
    return segments
  }

  /** FIN of both sides, behind all that was said. */
  close(): Buffer[] {
    const said = this.#said.length
    const answered = this.#answered.length
    return [
      this.up(TcpFlags.fin | TcpFlags.ack, said, said, answered),
      this.down(TcpFlags.fin | TcpFlags.ack, answered, answered, said + 1),
      this.up(TcpFlags.ack, said + 1, said + 1, answered + 1),
    ]
  }

  reset(): Buffer {
    return this.up(TcpFlags.rst | TcpFlags.ack, this.#said.length, this.#said.length, this.#answered.length)
  }

  /** A segment of the client with any flags; `start` counts from the first byte behind SYN. */
  up(flags: number, start: number, end: number, answered = 0): Buffer {
    const fields = {
      sourcePort: this.clientPort,
      destinationPort: this.serverPort,
      sequence: this.#clientSequence + 1 + start,
      acknowledgement: flags === TcpFlags.syn ? 0 : this.#serverSequence + 1 + answered,
      flags,
    }
    return this.#frame(this.client, this.server, tcp(fields, this.#said.subarray(Math.max(start, 0), end)))
  }

  down(flags: number, start: number, end: number, said = 0): Buffer {
    const fields = {
      sourcePort: this.serverPort,
      destinationPort: this.clientPort,
      sequence: this.#serverSequence + 1 + start,
      acknowledgement: this.#clientSequence + 1 + said,
      flags,
    }
    return this.#frame(this.server, this.client, tcp(fields, this.#answered.subarray(Math.max(start, 0), end)))
  }

  #frame(source: string, destination: string, transport: Transport): Buffer {
    return this.#link(
      source.includes(':') ? ipv6({ source, destination }, transport) : ipv4({ source, destination }, transport),
    )
  }
}
