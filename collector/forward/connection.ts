import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { assertExpected } from '../../engine/kernel/process/failure.ts'
import { CA_BYTES_MAX, readInput } from '../../engine/kernel/process/input-file.ts'
import { keyPin } from '../../engine/kernel/process/key-pin.ts'
import { hostAndPort, withoutBrackets } from '../../engine/kernel/process/network.ts'
import { notReadable } from '../../engine/kernel/process/ownership.ts'
import { PROXY_REFUSED, proxyFor, tunnel } from '../../engine/kernel/process/proxy.ts'
import { FORWARD_TIMEOUT_MS, SYSLOG_PORT, SYSLOG_PROTOCOL } from '../limits.ts'

/**
 * Connections to the service: its address, the trusted certificates, the proxy, and the reasons for
 * a failed connection.
 */

/** Address of a listener of the service, and the certificates trusted there. */
export interface Peer {
  readonly scheme: 'https' | 'tls' | 'tcp' | 'udp'
  /** Name or address; an IPv6 address has no brackets. */
  readonly host: string
  readonly port: number
  /** Path of a PEM file, or empty. */
  readonly ca: string
  /** Comma-separated pins of config.ts, or empty. */
  readonly fingerprint: string
}

/** The settings of a collector that concern the service. */
export interface ServiceSettings {
  readonly endpoint: string
  readonly httpsPort: number
  readonly syslogPort?: number | undefined
  readonly syslogProtocol?: 'tls' | 'tcp' | 'udp' | undefined
  readonly ca: string
  readonly fingerprint: string
}

export function httpsPeer({ endpoint, httpsPort, ca, fingerprint }: ServiceSettings): Peer {
  return { scheme: 'https', host: withoutBrackets(endpoint), port: httpsPort, ca, fingerprint }
}

export function syslogPeer({
  endpoint,
  syslogPort: port = SYSLOG_PORT,
  syslogProtocol: scheme = SYSLOG_PROTOCOL,
  ca,
  fingerprint,
}: ServiceSettings): Peer {
  return { scheme, host: withoutBrackets(endpoint), port, ca, fingerprint }
}

/** `https://posture.example:9443` */
export function urlOf({ scheme, host, port }: Peer): string {
  return `${scheme}://${hostAndPort(host, port)}`
}

/**
 * Returns the proxy for this peer. Only HTTPS uses one. @throws Fault USAGE if the setting is not a
 * URL.
 */
export function proxyOf(peer: Peer): URL | undefined {
  return peer.scheme === 'https' ? proxyFor(urlOf(peer)) : undefined
}

export interface ConnectionOptions {
  /** Total for proxy, TCP and TLS. */
  readonly timeoutMs?: number
  /**
   * Accepts every certificate, to inspect it. Nothing secret may be sent over such a connection.
   */
  readonly anyCertificate?: boolean
}

/**
 * Connects to a peer by TLS. Reads the CA certificate once, so that an unreadable file is reported
 * at the start of the program.
 */
export class TlsConnector {
  readonly #peer: Peer
  readonly #proxy: URL | undefined
  readonly #caCertificate: Buffer | undefined
  /** Aborts the connection attempt in progress. */
  #cancel: (() => void) | undefined

  /** @throws Fault USAGE if the CA certificate cannot be read or the proxy is not a URL. */
  constructor(peer: Peer) {
    this.#peer = peer
    this.#proxy = proxyOf(peer)
    this.#caCertificate = peer.ca === '' ? undefined : readCaCertificate(peer.ca)
  }

  /**
   * Returns a connection with completed TLS handshake (TLS 1.2 or later) and valid certificate:
   * signed by a trusted CA for this name, or pinned with any signer. Nothing was sent on the
   * connection.
   *
   * @throws errors for connectionProblem().
   */
  async connect({
    timeoutMs = FORWARD_TIMEOUT_MS,
    anyCertificate = false,
  }: ConnectionOptions = {}): Promise<TLSSocket> {
    const { host, port } = this.#peer
    const pin = anyCertificate ? '' : this.#peer.fingerprint
    const untilMs = performance.now() + timeoutMs
    const registerCancel = (cancel: () => void): void => {
      this.#cancel = cancel
    }
    const proxied =
      this.#proxy === undefined ? undefined : await tunnel(this.#proxy, host, port, timeoutMs, registerCancel)
    const socket = connect({
      host,
      port,
      ...(proxied === undefined ? {} : { socket: proxied }),
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

  /** Fails the connection attempt in progress. */
  cancel(): void {
    this.#cancel?.()
  }
}

export function stopped(): Error {
  return new Error('the collector is stopping')
}

const TIMEOUT = 'NO_CONNECTION_IN_TIME'
const OTHER_CERTIFICATE = 'OTHER_CERTIFICATE'

/** Returns the error for a connection that took too long. */
export function timeoutError(timeoutMs: number): Error {
  return Object.assign(new Error(`timeout, no connection within ${Math.round(timeoutMs / 1000)} s`), { code: TIMEOUT })
}

async function secured(socket: TLSSocket, timeoutMs: number): Promise<void> {
  // Ignores errors outside the wait below. The caller that gets the connection adds its own
  // listener.
  socket.on('error', () => {})
  const timer = setTimeout(() => socket.destroy(timeoutError(timeoutMs)), timeoutMs)
  try {
    await once(socket, 'secureConnect')
  } finally {
    clearTimeout(timer)
  }
}

/** A key stays the same when its certificate is renewed. RFC 7469 §2.4: the hash of its SPKI. */
function assertPinned(socket: TLSSocket, pins: string): void {
  // Not getPeerX509Certificate(), which answers only once.
  const certificate = new X509Certificate(socket.getPeerCertificate().raw)
  const found = certificate.fingerprint256.replaceAll(':', '').toLowerCase()
  const key = keyPin(certificate)
  if (pins.split(',').some((pin) => pin === found || pin === key)) return
  const why = `the certificate has the fingerprint ${found} and ${key}, which --service-fingerprint does not pin`
  throw Object.assign(new Error(why), { code: OTHER_CERTIFICATE })
}

/** Why there is no connection. Each problem has a different fix. */
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

/**
 * Classifies an error of a connection and describes it in one line.
 *
 * @throws the error itself, if wrong code threw it.
 */
export function connectionProblem(
  error: unknown,
  peer: Peer,
): { readonly problem: ConnectionProblem; readonly why: string } {
  assertExpected(error)
  const cause: SystemError = error
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
      const what =
        'the certificate is not trusted; pass its CA certificate with --service-ca-file, or pin it with --service-fingerprint'
      return { problem, why: `${url}: ${what}` }
    }
    case 'otherName': {
      const service = `the certificate has other names; start the service with --tls-name ${peer.host}`
      return { problem, why: `${url}: ${service}, or pin the certificate with --service-fingerprint` }
    }
    default:
      return {
        problem,
        why: `${url}: ${cause.message || cause.errors?.map(({ message }) => message).join(', ') || cause.code}`,
      }
  }
}

/** Fields of Node's errors of name resolution and connections, and of the errors of proxy.ts. */
interface SystemError extends NodeJS.ErrnoException {
  readonly hostname?: string
  /** One error per address if several addresses were tried. */
  readonly errors?: readonly Error[]
  readonly proxy?: string
}

/** Reads the PEM file of --service-ca-file. @throws Fault USAGE if it cannot be read. */
export function readCaCertificate(file: string): Buffer {
  try {
    return readInput(file, CA_BYTES_MAX, { what: '--service-ca-file', code: 'USAGE' })
  } catch (error) {
    const denied = notReadable((error as Error).cause)
    if (denied === undefined) throw error
    throw new Fault('USAGE', `--service-ca-file: ${denied.found}; ${denied.remedy}`, { cause: error })
  }
}
