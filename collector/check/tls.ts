import type { X509Certificate } from 'node:crypto'
import { Fault } from '../../engine/process/error-codes.ts'
import { assertExpected } from '../../engine/process/failure.ts'
import type { CollectorSettings } from '../config.ts'
import {
  type ConnectionOptions,
  type ConnectionProblem,
  connectionProblem,
  httpsPeer,
  type Peer,
  proxyOf,
  TlsConnector,
  urlOf,
} from '../forward/connection.ts'
import { CHECK_CONNECT_MS } from '../limits.ts'
import type { StepOutcome } from './step.ts'

/** Result of a handshake with the peer. */
interface Handshake {
  /** `TLSv1.3` */
  readonly protocol: string
  readonly certificate: X509Certificate
}

/** @throws Fault USAGE if the proxy is not a URL. */
export function checkTls(settings: CollectorSettings): Promise<StepOutcome> {
  return tryTls(httpsPeer(settings), { portSetting: '--https-port', listener: '--ingest-port' })
}

/** The port's setting here and at the service. */
interface PortNames {
  readonly portSetting: string
  readonly listener: string
}

/**
 * Connects as the forwarder does. Inspects a rejected certificate over a second connection. Sends
 * nothing.
 *
 * @throws Fault USAGE if the proxy is not a URL.
 */
export async function tryTls(peer: Peer, names: PortNames): Promise<StepOutcome> {
  const connector = new TlsConnector(peer)
  try {
    const { protocol, certificate } = await handshake(connector, {})
    return { result: 'ok', found: `${protocol}, certificate ${described(certificate)}` }
  } catch (error) {
    if (error instanceof Fault) throw error
    const { problem, why } = connectionProblem(error, peer)
    if (!CERTIFICATE_PROBLEMS.has(problem)) {
      return {
        result: 'failed',
        code: 'SERVICE_UNREACHABLE',
        found: why,
        remedy: connectionRemedy(problem, peer, names),
      }
    }
    const shown = await handshake(connector, { anyCertificate: true }).catch((second: unknown) =>
      assertExpected(second),
    )
    if (shown === undefined) return { result: 'failed', code: 'CERTIFICATE', found: why, remedy: 'try again' }
    return { result: 'failed', code: 'CERTIFICATE', ...certificateAdvice(problem, shown.certificate, peer) }
  }
}

const CERTIFICATE_PROBLEMS: ReadonlySet<ConnectionProblem> = new Set<ConnectionProblem>([
  ...(['notTrusted', 'notPinned', 'otherName', 'expired', 'notYetValid'] as const),
])

async function handshake(connector: TlsConnector, options: ConnectionOptions): Promise<Handshake> {
  const socket = await connector.connect({ ...options, timeoutMs: CHECK_CONNECT_MS })
  const certificate = socket.getPeerX509Certificate()
  const protocol = socket.getProtocol() ?? 'TLS'
  socket.destroy()
  if (certificate === undefined) throw new Error('the other side showed no certificate')
  return { protocol, certificate }
}

function described(certificate: X509Certificate): string {
  return `${dates(certificate)}, SHA-256 ${certificate.fingerprint256}`
}

function dates(certificate: X509Certificate): string {
  const until = day(certificate.validTo)
  if (Date.parse(certificate.validTo) < Date.now()) return `expired on ${until}`
  if (Date.parse(certificate.validFrom) > Date.now()) return `valid from ${day(certificate.validFrom)} on`
  return `valid until ${until}`
}

function day(text: string): string {
  return new Date(text).toISOString().slice(0, 10)
}

export function connectionRemedy(problem: ConnectionProblem, peer: Peer, { portSetting, listener }: PortNames): string {
  const port = `${portSetting}, here ${peer.port}, must be the port that posture-service's ${listener} names`
  switch (problem) {
    case 'notTls':
      return port
    case 'timeout':
      return `a firewall may drop the packets, or the listener does not support TLS: ${port}`
    default:
      if (proxyOf(peer) !== undefined)
        return 'check that HTTPS_PROXY is right, and that the proxy allows connections to posture-service'
      return `check that posture-service runs there, or correct --endpoint or ${portSetting}`
  }
}

function certificateAdvice(
  problem: ConnectionProblem,
  certificate: X509Certificate,
  peer: Peer,
): { found: string; remedy: string } {
  const origin = urlOf(peer)
  const pin = `--fingerprint ${certificate.fingerprint256}`
  switch (problem) {
    case 'expired':
      return {
        found: `${origin}: the certificate is ${described(certificate)}`,
        remedy: `renew it on the service's host, or set this clock, which shows ${new Date().toISOString()}`,
      }
    case 'notYetValid':
      return {
        found: `${origin}: the certificate is ${described(certificate)}`,
        remedy: `set this clock, which shows ${new Date().toISOString()}`,
      }
    case 'otherName':
      return {
        found: `${origin}: the certificate is for ${certificate.subjectAltName ?? certificate.subject}, and not for ${peer.host}`,
        remedy: `give --endpoint a name of the certificate, start the service with --tls-name ${peer.host}, or pin the certificate: ${pin}`,
      }
    case 'notPinned':
      return {
        found: `${origin}: another certificate than the pinned one: ${described(certificate)}`,
        remedy: `if the service logs this fingerprint when it starts, its certificate was renewed: ${pin}`,
      }
    default: {
      const issuer =
        certificate.issuer === certificate.subject ? 'self-signed' : 'signed by a CA that is not trusted here'
      const found = `${origin}: the certificate is ${issuer}, ${described(certificate)}`
      const ca = 'pass its CA certificate, or a copy of the certificate, with --ca'
      return { found, remedy: `if the service logs this fingerprint when it starts, pin it: ${pin}, or ${ca}` }
    }
  }
}
