import { isIPv6 } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { Agent, buildConnector, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { Fault } from '../../engine/process/error-codes.ts'
import { FORWARD_TIMEOUT_MS } from '../limits.ts'
import { readAuthority } from './authority.ts'

/** The one way to the service's HTTPS ingest: who is trusted, by which proxy, and why it failed. */

export interface ConnectionSettings {
  readonly endpoint: string
  readonly httpsPort: number
  /** PEM file, or empty. */
  readonly ca: string
  /** 64 lower-case hex digits, or empty. */
  readonly fingerprint: string
}

export interface ConnectionOptions {
  /** For TCP and TLS together. */
  readonly timeoutMs?: number
  /** Takes every certificate, to look at it. Nothing secret may be sent over such a connection. */
  readonly anyCertificate?: boolean
}

export function originOf({ endpoint, httpsPort }: ConnectionSettings): string {
  return `https://${isIPv6(endpoint) ? `[${endpoint}]` : endpoint}:${httpsPort}`
}

/** Whether the environment names a proxy, read as undici reads it. NO_PROXY may still except the endpoint. */
export function proxyNamed(): boolean {
  return proxyUrl() !== ''
}

function proxyUrl(): string {
  return process.env['https_proxy'] ?? process.env['HTTPS_PROXY'] ?? ''
}

/**
 * Connects to the endpoint by the proxy that HTTPS_PROXY and NO_PROXY name, if any. Certificates are checked; TLS 1.2 and up.
 *
 * @throws Fault USAGE where the file of the authority cannot be read, or the proxy is no URL.
 */
export function dispatcherFor(settings: ConnectionSettings, options: ConnectionOptions = {}): Dispatcher {
  const tls = {
    minVersion: 'TLSv1.2' as const,
    ...(settings.ca === '' ? {} : { ca: readAuthority(settings.ca) }),
    timeout: options.timeoutMs ?? FORWARD_TIMEOUT_MS,
    // A resumed session shows no certificate to compare with the pin.
    maxCachedSessions: 0,
  }
  const looking = options.anyCertificate === true
  const unchecked = { ...tls, rejectUnauthorized: false }
  const pin = looking ? '' : settings.fingerprint
  // With a pin the certificate itself is the trust: it is compared before a byte is sent, whoever signed it.
  const connector = buildConnector(looking || pin !== '' ? unchecked : tls)
  const agent = { connect: pinned(connector, pin), connections: 1, pipelining: 1 }
  if (!proxyNamed()) return new Agent(agent)
  assertProxyUrl()
  // Behind a proxy undici makes the TLS connection itself and the pin cannot be compared: the authority must be trusted.
  return new EnvHttpProxyAgent({ ...agent, requestTls: looking ? unchecked : tls })
}

/** undici refuses some of them only when it connects. The variable is not repeated: it may hold a password. */
function assertProxyUrl(): void {
  if (URL.canParse(proxyUrl()) && /^(https?|socks5?):$/.test(new URL(proxyUrl()).protocol)) return
  throw new Fault('USAGE', 'HTTPS_PROXY: found no URL of a proxy; expected one such as http://proxy.example:3128')
}

const OTHER_CERTIFICATE = 'OTHER_CERTIFICATE'

/** The connector, refusing every certificate but the pinned one. */
function pinned(connector: buildConnector.connector, fingerprint: string): buildConnector.connector {
  if (fingerprint === '') return connector
  return (options, callback) => {
    connector(options, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      const found = (socket as TLSSocket).getPeerCertificate().fingerprint256?.replaceAll(':', '').toLowerCase()
      if (found === fingerprint) return callback(null, socket)
      socket.destroy()
      const why = `the certificate has the fingerprint ${found}, not the one that --fingerprint pins`
      callback(Object.assign(new Error(why), { code: OTHER_CERTIFICATE }), null)
    })
  }
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
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
}

/** The problem behind what undici threw, and one line that says it. */
export function connectionProblem(
  error: unknown,
  settings: ConnectionSettings,
): { readonly problem: ConnectionProblem; readonly why: string } {
  const thrown = error as NodeJS.ErrnoException & { cause?: unknown }
  const cause = (thrown.cause as SystemError | undefined) ?? (thrown as SystemError)
  const problem = PROBLEMS[cause.code ?? ''] ?? 'other'
  const origin = originOf(settings)
  switch (problem) {
    case 'notListening':
      return { problem, why: `nothing listens on ${refusedBy(cause, settings) ?? origin}` }
    case 'notResolved':
      return { problem, why: `the name ${cause.hostname ?? settings.endpoint} does not resolve` }
    case 'notTls':
      return { problem, why: `${origin} does not speak TLS` }
    case 'notTrusted': {
      const what = 'the certificate is not trusted; name its authority by --ca or pin it by --fingerprint'
      return { problem, why: `${origin}: ${what}` }
    }
    default:
      return { problem, why: `${origin}: ${cause.message}` }
  }
}

/** What Node puts into errors of name resolution, of a connection, and of one that was tried at several addresses. */
interface SystemError extends NodeJS.ErrnoException {
  readonly hostname?: string
  readonly address?: string
  readonly port?: number
  readonly errors?: readonly SystemError[]
}

/** The proxy, where it is the proxy that nothing listens on. */
function refusedBy(cause: SystemError, settings: ConnectionSettings): string | undefined {
  const { address, port } = cause.errors?.[0] ?? cause
  if (!proxyNamed() || port === undefined || port === settings.httpsPort) return undefined
  return `${address} port ${port}, where the proxy should be`
}
