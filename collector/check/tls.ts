import type { X509Certificate } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { TLSSocket } from 'node:tls'
import { Fault } from '../../engine/process/error-codes.ts'
import type { CollectorSettings } from '../config.ts'
import {
  type ConnectionOptions,
  type ConnectionProblem,
  connectionProblem,
  dispatcherFor,
  originOf,
  proxyNamed,
} from '../forward/connection.ts'
import { EVENTS_PATH } from '../forward/https.ts'
import { CHECK_CONNECT_MS } from '../limits.ts'
import type { StepOutcome } from './step.ts'

/** What the other side showed. */
interface Handshake {
  /** `TLSv1.3` */
  readonly protocol: string
  readonly certificate: X509Certificate
}

/**
 * Connects as the forwarder does; a certificate that is refused is looked at over a second connection. The token is never sent.
 *
 * @throws Fault USAGE for a proxy that is no URL.
 */
export async function checkTls(settings: CollectorSettings): Promise<StepOutcome> {
  try {
    const { protocol, certificate } = await handshake(settings, {})
    return { result: 'ok', found: `${protocol}, certificate ${described(certificate)}` }
  } catch (error) {
    if (error instanceof Fault) throw error
    const { problem, why } = connectionProblem(error, settings)
    if (!CERTIFICATE_PROBLEMS.has(problem)) {
      return { result: 'failed', code: 'SERVICE_UNREACHABLE', found: why, remedy: connectionRemedy(problem, settings) }
    }
    const shown = await handshake(settings, { anyCertificate: true }).catch(() => undefined)
    if (shown === undefined) return { result: 'failed', code: 'CERTIFICATE', found: why, remedy: 'try again' }
    return { result: 'failed', code: 'CERTIFICATE', ...certificateAdvice(problem, shown.certificate, settings) }
  }
}

const CERTIFICATE_PROBLEMS: ReadonlySet<ConnectionProblem> = new Set<ConnectionProblem>([
  ...(['notTrusted', 'notPinned', 'otherName', 'expired', 'notYetValid'] as const),
])

/** undici tells of each connection on this channel; through a proxy it makes them where nothing else can be hung in. */
const CONNECTED = 'undici:client:connected'

/** Resolved when TLS stands; rejected with what undici throws. Nobody waits for the answer to the request, which carries no token. */
async function handshake(settings: CollectorSettings, options: ConnectionOptions): Promise<Handshake> {
  const origin = originOf(settings)
  const dispatcher = dispatcherFor(settings, { ...options, timeoutMs: CHECK_CONNECT_MS })
  let onConnected: (message: unknown) => void = () => {}
  const connected = new Promise<Handshake>((resolve) => {
    onConnected = (message) => {
      const { socket, connectParams } = message as { socket: unknown; connectParams: { host: string } }
      if (!(socket instanceof TLSSocket) || connectParams.host !== new URL(origin).host) return
      const certificate = socket.getPeerX509Certificate()
      if (certificate !== undefined) resolve({ protocol: socket.getProtocol() ?? 'TLS', certificate })
    }
  })
  subscribe(CONNECTED, onConnected)
  try {
    const answered = dispatcher.request({ origin, path: EVENTS_PATH, method: 'GET' }).then(async ({ body }) => {
      await body.dump()
      return connected
    })
    return await Promise.race([connected, answered])
  } finally {
    unsubscribe(CONNECTED, onConnected)
    await dispatcher.destroy()
  }
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

function connectionRemedy(problem: ConnectionProblem, { httpsPort }: CollectorSettings): string {
  const port = `--https-port, here ${httpsPort}, must be the port that posture-service's --ingest-port names`
  switch (problem) {
    case 'notTls':
      return port
    case 'timeout':
      return `a firewall may drop the packets, or what listens there speaks no TLS: ${port}`
    default:
      if (proxyNamed())
        return 'see whether the proxy that HTTPS_PROXY names is right, and lets through to posture-service'
      return 'see whether posture-service runs there, and correct --endpoint or --https-port'
  }
}

function certificateAdvice(
  problem: ConnectionProblem,
  certificate: X509Certificate,
  settings: CollectorSettings,
): { found: string; remedy: string } {
  const origin = originOf(settings)
  const pin = `--fingerprint ${certificate.fingerprint256}`
  switch (problem) {
    case 'expired':
      return {
        found: `${origin}: the certificate is ${described(certificate)}`,
        remedy: `renew it on the service's host, or set the clock here, which says ${new Date().toISOString()}`,
      }
    case 'notYetValid':
      return {
        found: `${origin}: the certificate is ${described(certificate)}`,
        remedy: `set the clock here, which says ${new Date().toISOString()}`,
      }
    case 'otherName':
      return {
        found: `${origin}: the certificate is for ${certificate.subjectAltName ?? certificate.subject}, and not for ${settings.endpoint}`,
        remedy: `give --endpoint a name of the certificate, or pin it: ${pin}`,
      }
    case 'notPinned':
      return {
        found: `${origin}: another certificate than the pinned one: ${described(certificate)}`,
        remedy: `if the service logs this fingerprint when it starts, its certificate was renewed: ${pin}`,
      }
    default: {
      const issuer =
        certificate.issuer === certificate.subject ? 'self-signed' : 'of an authority that is not trusted here'
      const found = `${origin}: the certificate is ${issuer}, ${described(certificate)}`
      const ca = 'name its authority, or a copy of the certificate, by --ca'
      // connection.ts
      if (proxyNamed()) return { found, remedy: `${ca}: behind a proxy a pin is not compared` }
      return { found, remedy: `if the service logs this fingerprint when it starts, pin it: ${pin}, or ${ca}` }
    }
  }
}
