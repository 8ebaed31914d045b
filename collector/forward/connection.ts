import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { hostAndPort, withoutBrackets } from '../host.ts'
import { FORWARD_TIMEOUT_MS } from '../limits.ts'
import { readCaCertificate } from './ca-certificate.ts'
import { PROXY_REFUSED, proxyFor, tunnel } from './proxy.ts'

/** Connections to the service: where it is, who is trusted, by which proxy, and why there is none. */

/** Where something of the service listens, and whom to trust there. */
export interface Peer {
  readonly scheme: 'https' | 'tls' | 'tcp' | 'udp'
  /** Name or address, an IPv6 address without brackets. */
  readonly host: string
  readonly port: number
  /** PEM file, or empty. */
  readonly ca: string
  /** 64 lower-case hex digits, or empty. */
  readonly fingerprint: string
}

/** What the settings of a collector say of the service. */
export interface ServiceSettings {
  readonly endpoint: string
  readonly httpsPort: number
  readonly syslogPort: number
  readonly syslogProtocol: 'tls' | 'tcp' | 'udp'
  readonly ca: string
  readonly fingerprint: string
}

export function httpsPeer({
  endpoint,
  httpsPort,
  ca,
  fingerprint,
}: Omit<ServiceSettings, 'syslogPort' | 'syslogProtocol'>): Peer {
  return { scheme: 'https', host: withoutBrackets(endpoint), port: httpsPort, ca, fingerprint }
}

export function syslogPeer({ endpoint, syslogPort, syslogProtocol, ca, fingerprint }: ServiceSettings): Peer {
  return { scheme: syslogProtocol, host: withoutBrackets(endpoint), port: syslogPort, ca, fingerprint }
}

/** `https://posture.example:9443` */
export function urlOf({ scheme, host, port }: Peer): string {
  return `${scheme}://${hostAndPort(host, port)}`
}

/** The proxy on the way there. Only HTTPS goes by one. @throws Fault USAGE where it is no URL. */
export function proxyOf(peer: Peer): URL | undefined {
  return peer.scheme === 'https' ? proxyFor(urlOf(peer)) : undefined
}

export interface ConnectionOptions {
  /** For the proxy, TCP and TLS together. */
  readonly timeoutMs?: number
  /** Takes every certificate, to look at it. Nothing secret may be sent over such a connection. */
  readonly anyCertificate?: boolean
}

/** The trust of a peer, read once; so a file that cannot be read is found when the program starts. */
export class TlsConnector {
  readonly #peer: Peer
  readonly #proxy: URL | undefined
  readonly #caCertificate: Buffer | undefined
  /** Ends what is on the way to be a connection. */
  #cancel: (() => void) | undefined

  /** @throws Fault USAGE where the file of the authority cannot be read, or the proxy is no URL. */
  constructor(peer: Peer) {
    this.#peer = peer
    this.#proxy = proxyOf(peer)
    this.#caCertificate = peer.ca === '' ? undefined : readCaCertificate(peer.ca)
  }

  /**
   * A connection on which TLS stands and the certificate is the right one: signed by an authority that is trusted and for this name, or the
   * pinned one, whoever signed it. TLS 1.2 and up. Nothing was sent on it.
   *
   * @throws what connectionProblem() reads.
   */
  async connect({
    timeoutMs = FORWARD_TIMEOUT_MS,
    anyCertificate = false,
  }: ConnectionOptions = {}): Promise<TLSSocket> {
    const { host, port } = this.#peer
    const pin = anyCertificate ? '' : this.#peer.fingerprint
    const untilMs = performance.now() + timeoutMs
    const onAsk = (cancel: () => void): void => {
      this.#cancel = cancel
    }
    const through = this.#proxy === undefined ? undefined : await tunnel(this.#proxy, host, port, timeoutMs, onAsk)
    const socket = connect({
      host,
      port,
      ...(through === undefined ? {} : { socket: through }),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ...(this.#caCertificate === undefined ? {} : { ca: this.#caCertificate }),
      minVersion: 'TLSv1.2',
      rejectUnauthorized: !anyCertificate && pin === '',
    })
    this.#cancel = () => socket.destroy(stopped())
    try {
      await secured(socket, Math.max(1, untilMs - performance.now()))
      if (pin !== '') assertPinned(socket, pin)
    } catch (error) {
      socket.destroy()
      throw error
    }
    socket.setNoDelay(true)
    this.#cancel = undefined
    return socket
  }

  /** A connection that is being made fails now. */
  cancel(): void {
    this.#cancel?.()
  }
}

export function stopped(): Error {
  return new Error('the collector stops')
}

const TIMEOUT = 'NO_CONNECTION_IN_TIME'
const OTHER_CERTIFICATE = 'OTHER_CERTIFICATE'

/** The error for a connection that took too long. */
export function tooLate(timeoutMs: number): Error {
  return Object.assign(new Error(`timeout, no connection within ${Math.round(timeoutMs / 1000)} s`), { code: TIMEOUT })
}

async function secured(socket: TLSSocket, timeoutMs: number): Promise<void> {
  // Errors that come when nobody waits for one any more, or not yet: who takes the connection listens himself.
  socket.on('error', () => {})
  const timer = setTimeout(() => socket.destroy(tooLate(timeoutMs)), timeoutMs)
  try {
    await once(socket, 'secureConnect')
  } finally {
    clearTimeout(timer)
  }
}

function assertPinned(socket: TLSSocket, fingerprint: string): void {
  const found = socket.getPeerCertificate().fingerprint256?.replaceAll(':', '').toLowerCase()
  if (found === fingerprint) return
  const why = `the certificate has the fingerprint ${found}, not the one that --fingerprint pins`
  throw Object.assign(new Error(why), { code: OTHER_CERTIFICATE })
}

/** Why there is no connection, as far as what to do about it differs. */
export type ConnectionProblem =
  | 'notListening'
  | 'notResolved'
  | 'notTls'
  | 'notTrusted'
  | 'notPinned'
  | 'otherName'
  | 'expired'
  | 'notYetValid'
  | 'timeout'
  | 'proxy'
  | 'other'

const PROBLEMS: Readonly<Record<string, ConnectionProblem>> = {
  ECONNREFUSED: 'notListening',
  ENOTFOUND: 'notResolved',
  EAI_AGAIN: 'notResolved',
  ERR_SSL_WRONG_VERSION_NUMBER: 'notTls',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'notTls',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'notTrusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'notTrusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'notTrusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'notTrusted',
  [OTHER_CERTIFICATE]: 'notPinned',
  ERR_TLS_CERT_ALTNAME_INVALID: 'otherName',
  CERT_HAS_EXPIRED: 'expired',
  CERT_NOT_YET_VALID: 'notYetValid',
  [TIMEOUT]: 'timeout',
  [PROXY_REFUSED]: 'proxy',
}

/** The problem behind an error of a connection, and one line that says it. */
export function connectionProblem(
  error: unknown,
  peer: Peer,
): { readonly problem: ConnectionProblem; readonly why: string } {
  const cause = error as SystemError
  const problem = PROBLEMS[cause.code ?? ''] ?? 'other'
  const url = urlOf(peer)
  switch (problem) {
    case 'notListening':
      return { problem, why: `nothing listens on ${cause.proxy ? `${cause.proxy}, where the proxy should be` : url}` }
    case 'notResolved':
      return { problem, why: `the name ${cause.hostname ?? peer.host} does not resolve` }
    case 'notTls':
      return { problem, why: `${url} does not speak TLS` }
    case 'notTrusted': {
      const what = 'the certificate is not trusted; name its authority by --ca or pin it by --fingerprint'
      return { problem, why: `${url}: ${what}` }
    }
    default:
      return {
        problem,
        why: `${url}: ${cause.message || cause.errors?.map(({ message }) => message).join(', ') || cause.code}`,
      }
  }
}

/** What Node puts into errors of name resolution and of a connection, and proxy.ts into those of its own. */
interface SystemError extends NodeJS.ErrnoException {
  readonly hostname?: string
  /** Of one that was tried at several addresses. */
  readonly errors?: readonly Error[]
  readonly proxy?: string
}
