import { isIP } from 'node:net'
import { z } from 'zod'
import { canonicalName, hostNameFault } from '../../registry/domain-name.ts'
import { type ChannelSettings, SMTP_TLS_MODES, SYSLOG_FORMATS, SYSLOG_TRANSPORTS } from '../alert/channel-settings.ts'
import { makeWebhookSecret } from '../alert/webhook-signature.ts'
import { isLoopbackHost, type Network, withoutBrackets } from '../kernel/process/network.ts'
import { isAllowedTarget, TargetRefused } from '../kernel/process/outbound-address.ts'
import { portNumber } from '../kernel/process/settings.ts'

/** Bytes of a text in the settings of a channel. */
const TEXT_BYTES_MAX = 1000
/** Receivers of one mail channel. More are refused: use a mailing list. */
const MAIL_RECEIVERS_MAX = 20
const CERTIFICATES_BYTES_MAX = 64 * 1024
/** RFC 5321 §4.5.3.1.3, and no character with a meaning in header fields. */
const MAIL_ADDRESS = /^[^\s@<>"(),;:\\[\]]{1,64}@[^\s@<>"(),;:\\[\]]{1,189}$/

/** The default ports of mail submission (RFC 8314, RFC 6409, RFC 5321). */
const SMTP_PORTS = { implicit: 465, starttls: 587, off: 25 } as const
const SYSLOG_PORTS = { tls: 6514, tcp: 514, udp: 514 } as const

function text(what: string) {
  return z
    .string(`${what} is required`)
    .trim()
    .min(1, `${what} is required`)
    .refine((value) => Buffer.byteLength(value) <= TEXT_BYTES_MAX, `Expected at most ${TEXT_BYTES_MAX} bytes`)
}

const url = text('The URL').superRefine((value, context) => {
  const fault = urlFault(value)
  // Without the value, which may contain a secret.
  if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
})

function urlFault(value: string): string | undefined {
  if (!URL.canParse(value)) return 'Expected a URL such as https://alerts.example.com/posture'
  const { protocol, hostname, username, password, hash } = new URL(value)
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopbackHost(hostname))) {
    return 'Expected https; http is for localhost only'
  }
  if (username !== '' || password !== '' || hash !== '') return 'Expected a URL without user name and fragment'
  return undefined
}

const host = text('The host').refine((value) => {
  const bare = withoutBrackets(value)
  if (isIP(bare) !== 0) return true
  const name = canonicalName(bare)
  return name !== undefined && (name === 'localhost' || hostNameFault(name) === undefined)
}, 'Expected a host name or an address')

const ca = z
  .string()
  .max(CERTIFICATES_BYTES_MAX, `Expected at most ${CERTIFICATES_BYTES_MAX} bytes`)
  .refine((pem) => pem === '' || pem.includes('-----BEGIN CERTIFICATE-----'), 'Expected certificates in PEM')
  .default('')

export function isMailAddress(text: string): boolean {
  return mailAddress.safeParse(text).success
}

const mailAddress = text('The address').regex(MAIL_ADDRESS, 'Expected a mail address such as soc@example.com')

/** The addresses of a mail; none is allowed. */
const mailAddresses = z
  .array(mailAddress, 'A receiver is required')
  .max(MAIL_RECEIVERS_MAX, `Expected at most ${MAIL_RECEIVERS_MAX} receivers; use a mailing list`)

/** The settings of a channel that a person enters, by its kind. */
const CHANNEL_SCHEMAS = {
  webhook: z.object({ url, ca }),
  slack: z.object({ url, ca }),
  teams: z.object({ url, ca }),
  smtp: z
    .object({
      host,
      port: portNumber().optional(),
      tls: z.enum(SMTP_TLS_MODES).default('starttls'),
      user: z.string().default(''),
      password: z.string().default(''),
      from: mailAddress,
      to: mailAddresses.min(1, 'A receiver is required'),
      ca,
    })
    .refine(({ user, password }) => (user === '') === (password === ''), {
      path: ['password'],
      message: 'Set both user and password, or neither',
    })
    .refine(({ tls, password }) => tls !== 'off' || password === '', {
      path: ['password'],
      message: 'A password is never sent without TLS',
    }),
  syslog: z.object({
    host,
    port: portNumber().optional(),
    transport: z.enum(SYSLOG_TRANSPORTS).default('tls'),
    format: z.enum(SYSLOG_FORMATS).default('cef'),
    ca,
  }),
} as const

/** Returns the addresses, or why they are invalid. */
export function checkedAddresses(given: readonly string[]): readonly string[] | { readonly fault: string } {
  const parsed = mailAddresses.safeParse(given)
  return parsed.success ? parsed.data : { fault: parsed.error.issues[0]?.message ?? '' }
}

/**
 * Why the service does not connect to the address of a receiver. undefined for a name, whose
 * addresses are checked at each connection.
 */
export function targetFault(
  settings: ChannelSettings,
  allowed: readonly Network[],
): { readonly name: 'url' | 'host'; readonly message: string } | undefined {
  const [name, host] =
    'url' in settings ? (['url', new URL(settings.url).hostname] as const) : (['host', settings.host] as const)
  const address = host === 'localhost' ? '127.0.0.1' : withoutBrackets(host)
  if (isIP(address) === 0 || isAllowedTarget(address, allowed)) return undefined
  return { name, message: new TargetRefused(host).message }
}

/** Settings as entered: texts by name. */
export type GivenChannel = { readonly kind: ChannelSettings['kind'] } & Readonly<Record<string, unknown>>

export type CheckedChannel =
  | { readonly kind: 'valid'; readonly settings: ChannelSettings }
  | { readonly kind: 'invalid'; readonly faults: readonly { readonly name: string; readonly message: string }[] }

/** Checks settings and completes them: default ports, and the secret of a webhook. */
export function checkedChannel(given: GivenChannel): CheckedChannel {
  const parsed = CHANNEL_SCHEMAS[given.kind].safeParse(given)
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => ({ name: String(path[0] ?? ''), message }))
    return { kind: 'invalid', faults }
  }
  return { kind: 'valid', settings: completed(given.kind, parsed.data) }
}

function completed(kind: ChannelSettings['kind'], data: unknown): ChannelSettings {
  switch (kind) {
    case 'webhook':
      return { kind, ...(data as z.output<typeof CHANNEL_SCHEMAS.webhook>), secret: makeWebhookSecret() }
    case 'slack':
    case 'teams':
      return { kind, ...(data as z.output<typeof CHANNEL_SCHEMAS.slack>) }
    case 'smtp': {
      const settings = data as z.output<typeof CHANNEL_SCHEMAS.smtp>
      return { kind, ...settings, port: settings.port ?? SMTP_PORTS[settings.tls] }
    }
    case 'syslog': {
      const settings = data as z.output<typeof CHANNEL_SCHEMAS.syslog>
      return { kind, ...settings, port: settings.port ?? SYSLOG_PORTS[settings.transport] }
    }
    default:
      return kind satisfies never
  }
}
