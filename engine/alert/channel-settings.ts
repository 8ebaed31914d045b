import type { SecretsKey } from '../process/secrets-key.ts'
import { type AlertChannel, type AlertChannelKind, channelContext } from '../store/alert-channels.ts'

/** A receiver of JSON by HTTPS, which verifies signatures. */
export interface WebhookSettings {
  readonly kind: 'webhook'
  readonly url: string
  /** `whsec_` and 32 random bytes in base64. */
  readonly secret: string
  /** Trusted certificates in PEM; '' for those of the system. */
  readonly ca: string
}

/** An incoming webhook of a chat. Anyone who knows its URL can post. */
export interface ChatSettings {
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

/** Shorter parts of a URL are words such as `hooks`. */
const URL_SECRET_CHARS_MIN = 8

/** The parts of settings that nobody may see. */
export function secretsOf(settings: ChannelSettings): string[] {
  switch (settings.kind) {
    case 'webhook':
      return [settings.secret, ...secretsOfUrl(settings.url)]
    case 'slack':
    case 'teams':
      return secretsOfUrl(settings.url)
    case 'smtp':
      return settings.password === '' ? [] : secretsOfLogin(settings)
    case 'syslog':
      return []
    default:
      return settings satisfies never
  }
}

/**
 * The parts of a URL that may contain a secret, the longest first: path and query, each segment of
 * the path, and each value of the query, as sent and decoded.
 */
function secretsOfUrl(url: string): string[] {
  const { pathname, search, searchParams } = new URL(url)
  const parts = [...pathname.split('/'), ...search.slice(1).split(/[&=]/), ...searchParams.values()]
  const decoded = pathname.split('/').flatMap((segment) => {
    try {
      return [decodeURIComponent(segment)]
    } catch {
      return []
    }
  })
  const long = [...parts, ...decoded].filter((part) => part.length >= URL_SECRET_CHARS_MIN)
  const whole = pathname === '/' ? search : pathname + search
  return [url, whole, ...long].sort((one, other) => other.length - one.length)
}

/** The password, and how AUTH PLAIN (RFC 4616 §2) and AUTH LOGIN send it. */
function secretsOfLogin({ user, password }: SmtpSettings): string[] {
  return [`\0${user}\0${password}`, password].map((text) => Buffer.from(text).toString('base64')).concat(password)
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

/** Kinds whose settings have a URL. */
export function isHttpKind(kind: AlertChannelKind): boolean {
  return kind === 'webhook' || kind === 'slack' || kind === 'teams'
}
