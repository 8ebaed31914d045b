/** What readers of a proxy's handshake share: what they read, and where the stream is then. */

/** What the next byte of a stream belongs to. */
export const ProxyPhase = {
  /** A PROXY header, a CONNECT request or SOCKS. */
  start: 0,
  /** The same without another PROXY header. */
  afterHeader: 1,
  /** Header fields of a request: within a line, at its begin, and after a CR there. */
  fields: 2,
  fieldBegin: 3,
  fieldCr: 4,
  /** SOCKS 5 after the list of methods: user name and password (RFC 1929), or the request. */
  socksMethods: 5,
  socksUser: 6,
  socksPasswordLength: 7,
  socksPassword: 8,
  socksRequest: 9,
  /** The tunnel. */
  tunnel: 10,
  /** A request of plain HTTP before its Host field: within a line, and at the begin of a field. */
  httpLine: 11,
  httpField: 12,
} as const
export type ProxyPhase = (typeof ProxyPhase)[keyof typeof ProxyPhase]

/** Where the name of a row was found, other than in a DNS query or a ClientHello. */
export const Via = { none: 0, connect: 1, socks: 2, proxyHeader: 3, http: 4 } as const
export type Via = (typeof Via)[keyof typeof Via]

/** Results of readProxyElement(): more bytes are needed, or they are not of a proxy's handshake. */
export const MORE_BYTES = -1
export const NOT_PROXY = -2

/** The last element that was read. One per worker, overwritten by each element. */
export class ProxyElement {
  /** Bytes [nameStart, nameEnd) are the name of the target; equal if there is none. */
  nameStart = 0
  nameEnd = 0
  via: Via = Via.none
  next: ProxyPhase = ProxyPhase.tunnel
  /** Bytes to skip after the element, in phases socksUser and socksPassword. */
  skip = 0
  isProxyHeader = false
  /** 4 or 6 if the element is a PROXY header with a client; 0: without. */
  version = 0
  /** The client's address, the server's address, and their ports, as on the wire. */
  readonly addresses = new DataView(new SharedArrayBuffer(ADDRESSES_BYTES))

  set(next: ProxyPhase, skip = 0): void {
    this.next = next
    this.skip = skip
    this.nameStart = 0
    this.nameEnd = 0
    this.via = Via.none
    this.isProxyHeader = false
    this.version = 0
  }

  /**
   * Sets the name in bytes [start, end) without a final dot, unless it is an address or no text.
   */
  setName(view: DataView, start: number, end: number, via: Via): void {
    const nameEnd = end > start && view.getUint8(end - 1) === DOT ? end - 1 : end
    if (nameEnd - start > HOST_BYTES_MAX || !isName(view, start, nameEnd)) return
    this.nameStart = start
    this.nameEnd = nameEnd
    this.via = via
  }
}

/** Two addresses of 16 bytes and two ports. */
export const ADDRESSES_BYTES = 36
export const HOST_BYTES_MAX = 255
const DOT = 0x2e
const COLON = 0x3a
const SPACE = 0x20
const DELETE = 0x7f

/** Whether the text is a name: printable, and neither an IPv4 nor an IPv6 address. */
function isName(view: DataView, start: number, end: number): boolean {
  let isIpv4 = true
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === COLON || byte <= SPACE || byte >= DELETE) return false
    if (byte !== DOT && (byte < 0x30 || byte > 0x39)) isIpv4 = false
  }
  return !isIpv4
}

/** Returns 0 if bytes [at, end) begin with the text, MORE_BYTES if they may, else NOT_PROXY. */
export function begins(view: DataView, at: number, end: number, text: Buffer): number {
  for (let index = 0; index < text.length; index++) {
    if (at + index >= end) return MORE_BYTES
    if (view.getUint8(at + index) !== text[index]) return NOT_PROXY
  }
  return 0
}
