import { addressBytes } from '../../engine/kernel/process/network.ts'
import { PROXY_HEADER_BYTES_MAX, REQUEST_LINE_BYTES_MAX, SOCKS_USER_BYTES_MAX } from '../limits.ts'
import { beginsRequest, mayBeginRequest, readField, readRequest } from './http-request.ts'
import { begins, HOST_BYTES_MAX, MORE_BYTES, NOT_PROXY, type ProxyElement, ProxyPhase, Via } from './proxy-element.ts'

/**
 * The bytes that a client or a load balancer sends before the ClientHello -> the
 * name of the target, or the address of the client. Of an HTTP request only its first line is read,
 * and only if the method is CONNECT; header fields such as Proxy-Authorization are skipped byte by
 * byte, and so are the user name and password of SOCKS. http-request.ts reads requests of plain
 * HTTP, if the operator wants their names.
 */

const COLON = 0x3a
const SPACE = 0x20
const CR = 0x0d
const LF = 0x0a

/** RFC 9110 §9.3.6, RFC 9112 §3.2.3: `CONNECT host:port HTTP/1.1`. */
const CONNECT = Buffer.from('CONNECT ')
const HTTP_1 = Buffer.from(' HTTP/1.')
/** The PROXY protocol of HAProxy, §2.1 and §2.2. */
const PROXY_V1 = Buffer.from('PROXY ')
const PROXY_V2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const PROXY_V2_HEADER_BYTES = 16
const PROXY_V1_BYTES_MAX = 107
const PROXY_V2_COMMAND_PROXY = 0x21
const PROXY_V2_COMMAND_LOCAL = 0x20
const PROXY_V2_TCP4 = 0x11
const PROXY_V2_TCP6 = 0x21
const PROXY_V2_TLV_HEADER_BYTES = 3
/** The PROXY protocol, §2.2.2: the name that the client sent. */
const PROXY_V2_TLV_SERVER_NAME = 2
/** The SOCKS 4 and 4A memos, and RFC 1928 §3, §4. */
const SOCKS4 = 4
const SOCKS5 = 5
const SOCKS_CONNECT = 1
const SOCKS4_USER = 8
const SOCKS5_ADDRESS = 4
const SOCKS5_IPV4 = 1
const SOCKS5_NAME = 3
const SOCKS5_IPV6 = 4
/** RFC 1929 §2. */
const SOCKS5_PASSWORD_VERSION = 1
/** IANA assigned ten methods. Few clients offer more than three. */
const SOCKS5_METHODS_MAX = 16

/** What is read on a server port before a ClientHello. */
export interface ProxyPort {
  /** CONNECT and PROXY headers. */
  readonly readsProxies: boolean
  /** SOCKS. */
  readonly isProxy: boolean
  /** Requests of plain HTTP. */
  readonly isHttp: boolean
}

/** Whether a stream that begins with this byte may begin with a proxy's handshake. */
export function mayBeginProxy(byte: number, { readsProxies, isProxy, isHttp }: ProxyPort): boolean {
  if (readsProxies && (byte === CONNECT[0] || byte === PROXY_V1[0] || byte === PROXY_V2[0])) return true
  return (isProxy && (byte === SOCKS4 || byte === SOCKS5)) || (isHttp && mayBeginRequest(byte))
}

/** Whether a request begins at byte `at`, which may be in the middle of a stream. */
export function beginsLaterRequest(
  view: DataView,
  at: number,
  end: number,
  { readsProxies, isHttp }: ProxyPort,
): boolean {
  return (readsProxies && begins(view, at, end, CONNECT) === 0) || (isHttp && beginsRequest(view, at, end))
}

/**
 * Whether bytes [at, end), without the start of the stream before them, are certainly the first of
 * a proxy's handshake: a request line, a PROXY header, or exactly the methods of SOCKS 5.
 */
export function beginsProxy(view: DataView, at: number, end: number, port: ProxyPort): boolean {
  if (beginsLaterRequest(view, at, end, port)) return true
  if (port.readsProxies && (begins(view, at, end, PROXY_V1) === 0 || begins(view, at, end, PROXY_V2) === 0)) return true
  if (!port.isProxy || end - at < 3 || view.getUint8(at) !== SOCKS5) return false
  return view.getUint8(at + 1) <= SOCKS5_METHODS_MAX && end - at === 2 + view.getUint8(at + 1)
}

/**
 * Reads one element of a handshake from bytes [at, end) into `element`. Returns the offset after
 * it, MORE_BYTES or NOT_PROXY. For phases whose bytes are skipped see proxy-streams.ts.
 */
export function readProxyElement(
  view: DataView,
  at: number,
  end: number,
  phase: ProxyPhase,
  port: ProxyPort,
  element: ProxyElement,
): number {
  if (at >= end) return MORE_BYTES
  const first = view.getUint8(at)
  switch (phase) {
    case ProxyPhase.start:
    case ProxyPhase.afterHeader:
      if (port.readsProxies && first === CONNECT[0]) return readConnect(view, at, end, element)
      if (port.readsProxies && phase === ProxyPhase.start && first === PROXY_V2[0])
        return readProxyV2(view, at, end, element)
      if (port.readsProxies && phase === ProxyPhase.start && first === PROXY_V1[0]) {
        const after = readProxyV1(view, at, end, element)
        if (after !== NOT_PROXY) return after
      }
      if (port.isProxy && first === SOCKS4) return readSocks4(view, at, end, element)
      if (port.isProxy && first === SOCKS5) return readSocksMethods(view, at, end, element)
      return port.isHttp ? readRequest(view, at, end, element) : NOT_PROXY
    case ProxyPhase.httpField:
      return readField(view, at, end, element)
    case ProxyPhase.socksMethods:
      if (first === SOCKS5) return readSocksRequest(view, at, end, element)
      if (first !== SOCKS5_PASSWORD_VERSION) return NOT_PROXY
      if (at + 2 > end) return MORE_BYTES
      element.set(ProxyPhase.socksUser, view.getUint8(at + 1))
      return at + 2
    case ProxyPhase.socksPasswordLength:
      element.set(ProxyPhase.socksPassword, first)
      return at + 1
    case ProxyPhase.socksRequest:
      return readSocksRequest(view, at, end, element)
    default:
      return NOT_PROXY
  }
}

function readConnect(view: DataView, start: number, end: number, element: ProxyElement): number {
  const begun = begins(view, start, end, CONNECT)
  if (begun < 0) return begun
  const limit = Math.min(end, start + REQUEST_LINE_BYTES_MAX)
  const needed = limit < end || limit - start === REQUEST_LINE_BYTES_MAX ? NOT_PROXY : MORE_BYTES
  const name = start + CONNECT.length
  let colon = 0
  let at = name
  for (; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === SPACE) break
    if (byte < SPACE || byte > 0x7e) return NOT_PROXY
    if (byte === COLON) colon = at
  }
  if (at === limit) return needed
  if (colon <= name || !isPortNumber(view, colon + 1, at)) return NOT_PROXY
  const version = begins(view, at, end, HTTP_1)
  if (version < 0) return version
  // The minor version, then a line end with or without a CR.
  at += HTTP_1.length + 1
  if (at < limit && view.getUint8(at) === CR) at++
  if (at >= limit) return needed
  if (view.getUint8(at) !== LF) return NOT_PROXY
  element.set(ProxyPhase.fieldBegin)
  element.setName(view, name, colon, Via.connect)
  return at + 1
}

/** RFC 3986 §3.2.3. Proxies reject CONNECT without a port. */
function isPortNumber(view: DataView, start: number, end: number): boolean {
  let port = 0
  for (let at = start; at < end && port < 65_536; at++) {
    const digit = view.getUint8(at) - 0x30
    if (digit < 0 || digit > 9) return false
    port = port * 10 + digit
  }
  return port > 0 && port < 65_536
}

function readSocks4(view: DataView, start: number, end: number, element: ProxyElement): number {
  if (start + SOCKS4_USER >= end) return MORE_BYTES
  if (view.getUint8(start + 1) !== SOCKS_CONNECT) return NOT_PROXY
  const userEnd = zeroByte(view, start + SOCKS4_USER, end, SOCKS_USER_BYTES_MAX)
  if (userEnd < 0) return userEnd
  element.set(ProxyPhase.tunnel)
  // SOCKS 4A: an address 0.0.0.x announces a name after the user.
  const address = view.getUint32(start + 4)
  if (address === 0 || address > 0xff) return userEnd + 1
  const nameEnd = zeroByte(view, userEnd + 1, end, HOST_BYTES_MAX)
  if (nameEnd < 0) return nameEnd
  element.setName(view, userEnd + 1, nameEnd, Via.socks)
  return nameEnd + 1
}

/** The offset of the zero byte after at most `max` bytes. */
function zeroByte(view: DataView, start: number, end: number, max: number): number {
  for (let at = start; at < end; at++) {
    if (view.getUint8(at) === 0) return at
    if (at - start >= max) return NOT_PROXY
  }
  return MORE_BYTES
}

function readSocksMethods(view: DataView, start: number, end: number, element: ProxyElement): number {
  if (start + 2 > end) return MORE_BYTES
  const methods = view.getUint8(start + 1)
  if (methods === 0 || methods > SOCKS5_METHODS_MAX) return NOT_PROXY
  if (start + 2 + methods > end) return MORE_BYTES
  element.set(ProxyPhase.socksMethods)
  return start + 2 + methods
}

function readSocksRequest(view: DataView, start: number, end: number, element: ProxyElement): number {
  if (start + SOCKS5_ADDRESS + 1 > end) return MORE_BYTES
  if (view.getUint8(start) !== SOCKS5 || view.getUint8(start + 2) !== 0) return NOT_PROXY
  const address = start + SOCKS5_ADDRESS
  const kind = view.getUint8(start + 3)
  const bytes = kind === SOCKS5_IPV4 ? 4 : kind === SOCKS5_IPV6 ? 16 : 1 + view.getUint8(address)
  if (kind !== SOCKS5_IPV4 && kind !== SOCKS5_IPV6 && kind !== SOCKS5_NAME) return NOT_PROXY
  const after = address + bytes + 2
  if (after > end) return MORE_BYTES
  element.set(ProxyPhase.tunnel)
  const isConnect = view.getUint8(start + 1) === SOCKS_CONNECT
  if (isConnect && kind === SOCKS5_NAME) element.setName(view, address + 1, address + bytes, Via.socks)
  return after
}

/** Creates strings: once for a connection of a load balancer. */
function readProxyV1(view: DataView, start: number, end: number, element: ProxyElement): number {
  const begun = begins(view, start, end, PROXY_V1)
  if (begun < 0) return begun
  let at = start
  while (at < end && at - start < PROXY_V1_BYTES_MAX && view.getUint8(at) !== LF) at++
  if (at - start === PROXY_V1_BYTES_MAX) return NOT_PROXY
  if (at === end) return MORE_BYTES
  if (view.getUint8(at - 1) !== CR) return NOT_PROXY
  element.set(ProxyPhase.afterHeader)
  element.isProxyHeader = true
  let line = ''
  for (let byte = start; byte < at - 1; byte++) line += String.fromCharCode(view.getUint8(byte))
  const [, family, client = '', server = '', clientPort = '', serverPort = ''] = line.split(' ')
  if (family === 'UNKNOWN') return at + 1
  const version = family === 'TCP4' ? 4 : 6
  const clientBytes = addressBytes(client)
  const serverBytes = addressBytes(server)
  const isV4 = !client.includes(':') && !server.includes(':')
  if ((family !== 'TCP4' && family !== 'TCP6') || clientBytes === undefined || serverBytes === undefined)
    return NOT_PROXY
  if (isV4 !== (version === 4) || !isPort(clientPort) || !isPort(serverPort)) return NOT_PROXY
  const bytes = version === 4 ? 4 : 16
  const { addresses } = element
  for (let index = 0; index < bytes; index++) {
    addresses.setUint8(index, clientBytes[16 - bytes + index] ?? 0)
    addresses.setUint8(bytes + index, serverBytes[16 - bytes + index] ?? 0)
  }
  addresses.setUint16(2 * bytes, Number(clientPort))
  addresses.setUint16(2 * bytes + 2, Number(serverPort))
  element.version = version
  return at + 1
}

const isPort = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) < 65_536

function readProxyV2(view: DataView, start: number, end: number, element: ProxyElement): number {
  const begun = begins(view, start, end, PROXY_V2)
  if (begun < 0) return begun
  if (start + PROXY_V2_HEADER_BYTES > end) return MORE_BYTES
  const command = view.getUint8(start + 12)
  if (command !== PROXY_V2_COMMAND_PROXY && command !== PROXY_V2_COMMAND_LOCAL) return NOT_PROXY
  const body = start + PROXY_V2_HEADER_BYTES
  const after = body + view.getUint16(start + 14)
  if (after - start > PROXY_HEADER_BYTES_MAX) return NOT_PROXY
  if (after > end) return MORE_BYTES
  element.set(ProxyPhase.afterHeader)
  element.isProxyHeader = true
  const family = view.getUint8(start + 13)
  if (command === PROXY_V2_COMMAND_LOCAL || (family !== PROXY_V2_TCP4 && family !== PROXY_V2_TCP6)) return after
  const bytes = family === PROXY_V2_TCP4 ? 4 : 16
  const tlvs = body + 2 * bytes + 4
  if (tlvs > after) return NOT_PROXY
  for (let at = body; at < tlvs; at++) element.addresses.setUint8(at - body, view.getUint8(at))
  element.version = bytes === 4 ? 4 : 6
  let at = tlvs
  while (at + PROXY_V2_TLV_HEADER_BYTES <= after) {
    const value = at + PROXY_V2_TLV_HEADER_BYTES
    const valueEnd = value + view.getUint16(at + 1)
    if (valueEnd > after) break
    if (view.getUint8(at) === PROXY_V2_TLV_SERVER_NAME) {
      element.setName(view, value, valueEnd, Via.proxyHeader)
      break
    }
    at = valueEnd
  }
  return after
}
