import type { SecretsKey } from '../kernel/process/secrets-key.ts'
import { type AlertChannel, channelContext } from '../store/alert-channels.ts'

/** A receiver of JSON by HTTPS, which verifies signatures. */
interface WebhookSettings {
  readonly kind: 'webhook'
  readonly url: string
  /** `whsec_` and 32 random bytes in base64. */
  readonly secret: string
  /** Trusted certificates in PEM; '' for those of the system. */
  readonly ca: string
}

/** An incoming webhook of a chat. Anyone who knows its URL can post. */
interface ChatSettings {
  readonly kind: 'slack' | 'teams'
  readonly url: string
  readonly ca: string
}

export const SMTP_TLS_MODES = ['starttls', 'implicit', 'off'] as const
export interface SmtpSettings {
  readonly kind: 'smtp'
  readonly host: string
  readonly port: number
  readonly tls: (typeof SMTP_TLS_MODES)[number]
  /** '' if the server requires no authentication. */
  readonly user: string
  readonly password: string
  readonly from: string
  readonly to: readonly string[]
  readonly ca: string
}

export const SYSLOG_TRANSPORTS = ['tls', 'tcp', 'udp'] as const
export const SYSLOG_FORMATS = ['cef', 'leef', 'ocsf'] as const
export interface SyslogSettings {
  readonly kind: 'syslog'
  readonly host: string
  readonly port: number
  readonly transport: (typeof SYSLOG_TRANSPORTS)[number]
  readonly format: (typeof SYSLOG_FORMATS)[number]
  readonly ca: string
}

/** The settings of a channel, with its secrets. Stored encrypted. */
export type ChannelSettings = WebhookSettings | ChatSettings | SmtpSettings | SyslogSettings

export function sealSettings(
  key: SecretsKey,
  channel: Pick<AlertChannel, 'organizationId' | 'id'>,
  settings: ChannelSettings,
): AlertChannel['settings'] {
  return key.seal(JSON.stringify(settings), channelContext(channel))
}

/** @throws Fault SECRETS_KEY. */
export function openSettings(key: SecretsKey, channel: AlertChannel): ChannelSettings {
  return JSON.parse(key.open(channel.settings, channelContext(channel))) as ChannelSettings
}

/** Shorter segments of a path are words such as `hooks`, and shorter values keep nothing secret. */
const SEGMENT_CHARACTERS_MIN = 8
const VALUE_CHARACTERS_MIN = 4

/** The parts of settings that nobody may see, in the forms in which a receiver may repeat them. */
export function secretsOf(settings: ChannelSettings): string[] {
  switch (settings.kind) {
    case 'webhook':
      return [settings.secret, ...base64Forms(settings.secret.slice('whsec_'.length)), ...urlSecrets(settings.url)]
    case 'slack':
    case 'teams':
      return urlSecrets(settings.url)
    case 'smtp':
      return settings.password === '' ? [] : passwordSecrets(settings)
    case 'syslog':
      return []
    default:
      return settings satisfies never
  }
}

/** A URL, and each segment of its path and each value of its query, encoded and decoded. */
function urlSecrets(url: string): string[] {
  const { pathname, search, searchParams } = new URL(url)
  const segments = pathname.split('/').filter((segment) => segment.length >= SEGMENT_CHARACTERS_MIN)
  const values = search.split(/[?&;]/).map((pair) => pair.slice(pair.indexOf('=') + 1))
  const decoded = [...segments.map(decodedOrSame), ...searchParams.values()]
  const forms = decoded.flatMap((text) => [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)])
  const parts = [...segments, ...values, ...forms].flatMap((text) => [text, text.replaceAll('/', '\\/')])
  const path = pathname === '/' ? search : pathname + search
  return [url, path, ...parts.filter((part) => part.length >= VALUE_CHARACTERS_MIN)]
}

function decodedOrSame(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A password, and what AUTH LOGIN and AUTH PLAIN (RFC 4616 §2) send of it. */
function passwordSecrets({ user, password }: SmtpSettings): string[] {
  const sent = [password, `\0${user}\0${password}`, `${user}\0${user}\0${password}`]
  return [password, ...sent.flatMap((text) => base64Forms(Buffer.from(text).toString('base64')))]
}

function base64Forms(base64: string): string[] {
  return [base64, base64.replace(/=+$/, '')]
}

/** What lists show of the receiver: no path of a URL, which may contain a secret. */
export function targetOf(settings: ChannelSettings): string {
  switch (settings.kind) {
    case 'webhook':
    case 'slack':
    case 'teams':
      return new URL(settings.url).origin
    case 'smtp':
      return `${settings.to.join(', ')} by ${settings.host}:${settings.port}`
    case 'syslog':
      return `${settings.transport}://${settings.host}:${settings.port} (${settings.format})`
    default:
      return settings satisfies never
  }
}
