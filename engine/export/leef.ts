import { type FindingEvent, type Reporter, type Severity, truncated } from './finding-event.ts'

/*
 * IBM QRadar Log Event Extended Format, version 2.0, as in IBM's guide to it:
 *
 *   LEEF:2.0|vendor|product|version|event id|delimiter|key=value<delimiter>key=value
 *
 * The format has no escapes. The header has only constants of the program. The delimiter is a
 * caret, because relays of syslog replace a tab, the default, by `#011`. A caret or a line end in a
 * value becomes a space; in the URL of a page, %5E.
 */
const DELIMITER = '^'
/** Line ends, control characters, and the delimiter. */
const UNFIT = /[\p{Cc}\u2028\u2029^]+/gu
/** The pipe would end a header field. */
const UNFIT_IN_HEADER = /[|^]/g

/** 1 to 10. */
const SEVERITY: Readonly<Record<Severity, number>> = { informational: 1, low: 3, medium: 5, high: 8, critical: 10 }
const VALUE_CHARS_MAX = 4000

/** A format of java.text.SimpleDateFormat that the guide lists, and the same time in it. */
const TIME_FORMAT = 'MMM dd yyyy HH:mm:ss.SSS zzz'

type Value = string | number | boolean | undefined

/** One line, without a line end. */
export function leefLine(event: FindingEvent, { vendor, product, version }: Reporter): string {
  const header = [vendor, product, version, event.kind].map((field) => valueText(field).replace(UNFIT_IN_HEADER, ' '))
  const attributes = Object.entries(attributesOf(event))
    .filter(([, value]) => value !== undefined && value !== '')
    .map(([key, value]) => `${key}=${valueText(value)}`)
  return `LEEF:2.0|${header.join('|')}|${DELIMITER}|${attributes.join(DELIMITER)}`
}

function attributesOf(event: FindingEvent): Readonly<Record<string, Value>> {
  const { organization, platform, clients } = event
  const [client] = clients ?? []
  return {
    // Further values come first, so that none of them replaces an attribute of the format.
    ...event.details,
    devTime: timeText(event.timeMs),
    devTimeFormat: TIME_FORMAT,
    sev: SEVERITY[event.severity],
    cat: platform?.type ?? event.kind,
    src: client?.address,
    usrName: client?.user,
    url: event.url?.replaceAll('^', '%5E'),
    id: event.id,
    title: event.title,
    msg: event.message,
    organization: organization.name,
    organizationId: organization.id,
    platform: platform?.name,
    platformId: platform?.id,
    vendor: platform?.vendor,
    decision: platform?.decision,
    risk: platform?.risk,
    confidence: platform?.confidence,
    clients: platform?.clients,
    matches: platform?.matches,
    firstSeen: platform && new Date(platform.firstSeenMs).toISOString(),
    lastSeen: platform && new Date(platform.lastSeenMs).toISOString(),
    domain: platform?.domains[0],
    domains: platform?.domains.join(','),
    otherClients: clients
      ?.slice(1)
      .map(({ address }) => address)
      .join(','),
  }
}

function valueText(value: Value): string {
  return truncated(String(value), VALUE_CHARS_MAX).replace(UNFIT, ' ')
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const

/** TIME_FORMAT in UTC: `Nov 20 2026 09:15:02.000 UTC`. */
function timeText(timeMs: number): string {
  const iso = new Date(timeMs).toISOString()
  const month = MONTHS[Number(iso.slice(5, 7)) - 1]
  return `${month} ${iso.slice(8, 10)} ${iso.slice(0, 4)} ${iso.slice(11, 23)} UTC`
}
