import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { SENDERS, type SenderFacts, type SenderKind } from '../../engine/admin/senders.ts'
import type { ReadyLines } from '../../engine/admin/setup.ts'
import { keyPin } from '../../engine/kernel/process/key-pin.ts'
import { type Secret, statusOf } from '../../engine/store/secrets.ts'
import type { Visit } from '../http/visit.ts'
import type { IngestListeners } from '../ingest-listeners.ts'
import type { Site } from '../site.ts'

/** Stands for the token in instructions, unless the token was just generated. */
export const TOKEN_PLACEHOLDER = 'MONITORING_TOKEN'
const HOST_PLACEHOLDER = 'posture.example.com'
const HTTPS_PORT = 9443
const TLS_PORT = 6514
const PLAIN_PORT = 514

/** The service's certificate, as senders see it. */
export interface CertificateView {
  /** SHA-256 of the certificate, as browsers show it. */
  readonly fingerprint: string
  /** The pin of its key, for collectors. */
  readonly pin: string
  /** The certificate itself in PEM; '' unless it is self-signed. */
  readonly pem: string
  /** Names and addresses for which it is valid. */
  readonly names: readonly string[]
  /** It is valid for the name in the address of this page. */
  readonly isValidHere: boolean
}

export interface SenderView extends Pick<SenderKind, 'id' | 'group' | 'name' | 'about' | 'guide'> {
  readonly steps: ReadyLines['steps']
  /** The setting that turns on the listener that the sender needs; '' if the listener is on. */
  readonly missing: string
}

export type TokenChoice = Pick<Secret, 'id' | 'label' | 'visible'>

export interface SetupGuideView {
  /** Active tokens, newest first. */
  readonly tokens: readonly TokenChoice[]
  /** The token for senders; undefined until one is chosen. */
  readonly token: TokenChoice | undefined
  readonly senders: readonly SenderView[]
  readonly certificate: CertificateView | undefined
}

/**
 * Instructions for each kind of sender, filled in with the address, ports and certificate of this
 * service.
 *
 * @param tokenId the chosen token; '' if none is chosen
 * @param raw the token itself, if it was just generated; otherwise ''
 */
export function setupGuideView(visit: Visit, tokenId: string, raw: string): SetupGuideView {
  const { site, organization, nowMs, request } = visit
  const tokens = site.store.monitoringTokens
    .ofOrganization(organization.id)
    .filter((token) => statusOf(token, nowMs) === 'active')
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  const token = tokens.find(({ id }) => id === tokenId)
  const hostName = hostNameOf(request.origin)
  const certificate = certificateView(site.ingest, hostName)
  const facts: SenderFacts = {
    token: raw === '' ? TOKEN_PLACEHOLDER : raw,
    visible: token?.visible ?? '',
    organization: organization.name,
    plainPort: site.ingest.plainPorts[0] ?? PLAIN_PORT,
    reach: {
      host: hostName === '' ? HOST_PLACEHOLDER : hostName,
      apiPort: 0,
      ingestPort: site.ingest.httpsPort ?? HTTPS_PORT,
      syslogPort: site.ingest.tlsPorts[0] ?? TLS_PORT,
      pin: certificate === undefined || certificate.pem === '' ? '' : certificate.pin,
      certificateFile: '',
    },
  }
  return { tokens, token, senders: token ? SENDERS.map((kind) => senderView(kind, facts, site)) : [], certificate }
}

function senderView({ steps, needs, ...kind }: SenderKind, facts: SenderFacts, { ingest }: Site): SenderView {
  const missing = {
    https: ingest.httpsPort === undefined ? `INGEST_PORT=${HTTPS_PORT}` : '',
    tls: ingest.tlsPorts.length === 0 ? `SYSLOG_TLS=${TLS_PORT}` : '',
    plain: ingest.plainPorts.length === 0 ? `SYSLOG_UDP=${PLAIN_PORT}` : '',
    none: '',
  }
  return { ...kind, steps: steps(facts), missing: missing[needs] }
}

/** undefined if no listener uses TLS, or if the file cannot be read at the moment. */
export function certificateView(ingest: IngestListeners, hostName: string): CertificateView | undefined {
  if (ingest.certificateFile === '') return undefined
  const certificate = readCertificate(ingest.certificateFile)
  if (certificate === undefined) return undefined
  const { fingerprint256: fingerprint, subjectAltName = '' } = certificate
  const names = subjectAltName.split(', ').flatMap((each) => each.split(':').slice(1).join(':') || [])
  const isValidHere =
    (isIP(hostName) === 0 ? certificate.checkHost(hostName) : certificate.checkIP(hostName)) !== undefined
  // Only the certificate: the file may contain its key as well.
  const pem = isSelfSigned(certificate) ? certificate.toString() : ''
  return { fingerprint, pin: keyPin(certificate), names, isValidHere, pem }
}

function readCertificate(file: string): X509Certificate | undefined {
  try {
    return new X509Certificate(readFileSync(file))
  } catch {
    return undefined
  }
}

/** X509Certificate.checkIssued() denies it for a certificate that may not sign others. */
function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey)
}

/**
 * Returns the name or address in an origin; '' if it is not valid. The Host field can contain
 * anything, and instructions for senders repeat it in commands.
 */
export function hostNameOf(origin: string): string {
  const name = URL.canParse(origin) ? new URL(origin).hostname.replace(/^\[|\]$/g, '') : ''
  return /^[a-z0-9.:-]+$/.test(name) ? name : ''
}
