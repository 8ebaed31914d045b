import { isIP } from 'node:net'
import { type ClientFacts, type FindingEvent, type Reporter, type Severity, truncated } from './finding-event.ts'

/*
 * ArcSight Common Event Format, version 0, as in "Implementing ArcSight Common Event Format (CEF)",
 * version 25:
 *
 *   CEF:0|vendor|product|version|event class|name|severity|key=value key=value
 *
 * In the header, a backslash precedes | and \. In a value, it precedes = and \, and line ends are
 * the two characters \n. Keys are those of the CEF dictionary; values without a key are in its
 * custom fields, each with a label.
 */
const HEADER_SPECIAL = /[\\|]/g
const VALUE_SPECIAL = /[\\=]/g
const LINE_END = /\r\n|[\n\r\u2028\u2029]/g
/** All other control characters: they end or distort lines in syslog and terminals. */
const CONTROL = /\p{Cc}/gu

/** 0 to 10. Up to 3 is low, up to 6 medium, up to 8 high. */
const SEVERITY: Readonly<Record<Severity, number>> = { informational: 1, low: 3, medium: 5, high: 8, critical: 10 }

/** The maximum lengths of the dictionary, in characters. */
const HEADER_CHARS_MAX = 512
const TEXT_CHARS_MAX = 1023
const CUSTOM_CHARS_MAX = 4000

type Value = string | number | undefined
/** Keys and values alternate. */
type Pairs = (readonly [key: string, value: Value])[]

/** One line, without a line end. */
export function cefLine(event: FindingEvent, { vendor, product, version }: Reporter): string {
  const header = [vendor, product, version, event.kind, event.title, SEVERITY[event.severity]]
  const pairs = pairsOf(event).filter(([, value]) => value !== undefined && value !== '')
  const extension = pairs.map(([key, value]) => `${key}=${typeof value === 'string' ? escaped(value) : value}`)
  return `CEF:0|${header.map(headerText).join('|')}|${extension.join(' ')}`
}

function pairsOf({ id, timeMs, message, organization, url, platform, clients, details }: FindingEvent): Pairs {
  const [client, ...otherClients] = clients ?? []
  return [
    ['rt', timeMs],
    ['externalId', id],
    ['msg', text(message)],
    ['cat', platform?.type],
    ['start', platform?.firstSeenMs],
    ['end', platform?.lastSeenMs],
    ['dhost', platform?.domains[0]],
    ...sourceOf(client?.address ?? ''),
    ['suser', client && text(client.user)],
    ['request', url && text(url)],
    ...custom('cs1', 'Organization', `${organization.name} (${organization.id})`),
    ...custom('cs2', 'Platform', platform && `${platform.name} (${platform.id})`),
    ...custom('cs3', 'Vendor', platform?.vendor),
    ...custom('cs4', 'Decision', platform?.decision),
    ...custom('cs5', 'Domains', platform?.domains.join(', ')),
    ...custom('cs6', 'Details', detailsText(details, otherClients)),
    ...custom('cn1', 'Risk', platform?.risk),
    ...custom('cn2', 'Clients', platform?.clients),
    ...custom('cn3', 'Matches', platform?.matches),
    ...custom('cfp1', 'Confidence', platform?.confidence),
  ]
}

/** A custom field and its label. Neither, if there is no value. */
function custom(key: string, label: string, value: Value): Pairs {
  if (value === undefined || value === '') return []
  return [
    [`${key}Label`, label],
    [key, typeof value === 'string' ? truncated(value, CUSTOM_CHARS_MAX) : value],
  ]
}

function detailsText(details: FindingEvent['details'] = {}, otherClients: readonly ClientFacts[]): string {
  const texts = Object.entries(details).map(([name, value]) => `${name}: ${value}`)
  if (otherClients.length > 0) texts.push(`other clients: ${otherClients.map(({ address }) => address).join(', ')}`)
  return texts.join('; ')
}

/** The dictionary has a key for each version of IP. A pseudonym is no address, but a host. */
function sourceOf(address: string): Pairs {
  const version = isIP(address)
  if (version === 4) return [['src', address]]
  if (version === 6) {
    return [
      ['c6a2Label', 'Source IPv6 Address'],
      ['c6a2', address],
    ]
  }
  return [['shost', text(address)]]
}

function text(value: string): string {
  return truncated(value, TEXT_CHARS_MAX)
}

function headerText(value: string | number): string {
  const line = truncated(String(value).replace(LINE_END, ' ').replace(CONTROL, ' '), HEADER_CHARS_MAX)
  return line.replace(HEADER_SPECIAL, '\\$&')
}

/** A value of the extension. */
function escaped(value: string): string {
  const special = value.replace(VALUE_SPECIAL, '\\$&')
  return special.replace(LINE_END, '\\n').replace(CONTROL, ' ')
}
