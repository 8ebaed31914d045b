import type { X509Certificate } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isoDay } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { assertExpected } from '../../engine/kernel/process/failure.ts'
import { keyPin } from '../../engine/kernel/process/key-pin.ts'
import { withoutBrackets } from '../../engine/kernel/process/network.ts'
import type { CollectorSettings } from '../config.ts'
import {
  type ConnectionOptions,
  type ConnectionProblem,
  connectionProblem,
  httpsPeer,
  type Peer,
  proxyOf,
  syslogPeer,
  TlsConnector,
  urlOf,
} from '../forward/connection.ts'
import { HttpsForwarder } from '../forward/https.ts'
import { StreamLink } from '../forward/syslog-link.ts'
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
        fix: connectionRemedy(problem, peer, names),
      }
    }
    const shown = await handshake(connector, { anyCertificate: true }).catch((second: unknown) =>
      assertExpected(second),
    )
    if (shown === undefined) return { result: 'failed', code: 'CERTIFICATE', found: why, fix: 'try again' }
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
  return `${dates(certificate)}, ${keyPin(certificate)}`
}

function dates(certificate: X509Certificate): string {
  const until = isoDay(Date.parse(certificate.validTo))
  if (Date.parse(certificate.validTo) < Date.now()) return `expired on ${until}`
  if (Date.parse(certificate.validFrom) > Date.now())
    return `valid from ${isoDay(Date.parse(certificate.validFrom))} on`
  return `valid until ${until}`
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
): { found: string; fix: string } {
  const origin = urlOf(peer)
  const pin = `--service-fingerprint ${keyPin(certificate)}`
  switch (problem) {
    case 'expired':
      return {
        found: `${origin}: the certificate is ${described(certificate)}`,
        fix: `renew it on the service's host, or set this clock, which shows ${new Date().toISOString()}`,
      }
    case 'notYetValid':
      return {
        found: `${origin}: the certificate is ${described(certificate)}`,
        fix: `set this clock, which shows ${new Date().toISOString()}`,
      }
    case 'otherName':
      return {
        found: `${origin}: the certificate is for ${certificate.subjectAltName ?? certificate.subject}, and not for ${peer.host}`,
        fix: `give --endpoint a name of the certificate, start the service with --tls-name ${peer.host}, or pin its key: ${pin}`,
      }
    case 'notPinned':
      return {
        found: `${origin}: neither the certificate nor its key is pinned: ${described(certificate)}`,
        fix: `if the service logs this pin when it starts, its key was replaced: ${pin}`,
      }
    default: {
      const issuer =
        certificate.issuer === certificate.subject ? 'self-signed' : 'signed by a CA that is not trusted here'
      const found = `${origin}: the certificate is ${issuer}, ${described(certificate)}`
      const ca = 'pass its CA certificate, or a copy of the certificate, with --service-ca-file'
      return { found, fix: `if the service logs this pin when it starts, set it: ${pin}, or ${ca}` }
    }
  }
}

/**
 * Resolves the endpoint's name as a connection does, by the system's configuration: hosts file,
 * name servers and so on.
 */
export async function checkResolution(settings: CollectorSettings): Promise<StepOutcome> {
  const { endpoint } = settings
  if (isIP(withoutBrackets(endpoint)) !== 0) return { result: 'skipped', found: `${endpoint} is an address` }
  try {
    const addresses = await lookup(endpoint, { all: true })
    return { result: 'ok', found: `${endpoint}: ${addresses.map(({ address }) => address).join(', ')}` }
  } catch (error) {
    const found = `${endpoint} does not resolve (${(error as NodeJS.ErrnoException).code})`
    if (settings.httpsEnabled && proxyOf(httpsPeer(settings)) !== undefined)
      return { result: 'skipped', found: `${found}; that is left to the proxy that HTTPS_PROXY names` }
    const fix = endpoint.includes(':')
      ? 'give --endpoint the name alone, and the port by --https-port'
      : 'correct --endpoint, or see which name servers /etc/resolv.conf names'
    return { result: 'failed', code: 'SERVICE_UNREACHABLE', found, fix }
  }
}

const NAMES = { portSetting: '--syslog-port', listener: 'syslog listener' } as const

/**
 * Connects as the forwarder does, and sends nothing. UDP has no answers, so nothing can be tested.
 */
export async function checkSyslog(settings: CollectorSettings): Promise<StepOutcome> {
  const peer = syslogPeer(settings)
  if (peer.scheme === 'tls') return tryTls(peer, NAMES)
  if (peer.scheme === 'udp')
    return { result: 'skipped', found: `${urlOf(peer)}: whether datagrams arrive cannot be seen from here` }
  const link = new StreamLink(peer)
  try {
    await link.open()
    return { result: 'ok', found: `${urlOf(peer)} accepts connections, in plain text` }
  } catch (error) {
    const { problem, why } = connectionProblem(error, peer)
    return { result: 'failed', code: 'SERVICE_UNREACHABLE', found: why, fix: connectionRemedy(problem, peer, NAMES) }
  } finally {
    await link.close()
  }
}

/** Sends a batch without events, which the service answers like any other but does not store. */
export async function checkToken(settings: CollectorSettings): Promise<StepOutcome> {
  const forwarder = new HttpsForwarder(settings)
  const outcome = await forwarder.send([]).finally(() => forwarder.close())
  switch (outcome.kind) {
    case 'accepted':
      return { result: 'ok', found: 'the service accepts the token' }
    case 'unauthorized': {
      const make = '"posture-admin token generate LABEL --org ORGANIZATION" makes one on the service\'s host'
      return {
        result: 'failed',
        code: 'TOKEN_REFUSED',
        found: outcome.why,
        fix: `set SVC_TOKEN_FILE or SVC_TOKEN to a token that is not revoked; ${make}`,
      }
    }
    case 'retry':
    case 'refused':
    case 'notPassed': {
      const fix = "see the service's log, or whether it is the service that answers there"
      return { result: 'failed', code: 'SERVICE_UNREACHABLE', found: outcome.why, fix }
    }
  }
}
