import { z } from 'zod'
import { nameLoggingHint } from '../formats/formats.ts'
import { framingRemark } from '../ingest/syslog/framing-remark.ts'
import { exclusively } from '../kernel/process/exclusive.ts'
import { wholeNumber } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import { tokenSettings } from '../kernel/process/token-setting.ts'
import { OUTCOMES, Outcome, totalOf } from '../store/outcomes.ts'
import { NO_ORGANIZATION, type Reject, type StoredSource } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { argument, type Commands, flag, option, query, table, timeText } from './command.ts'
import { assertNames, type Input, ingestFiles, withInput } from './ingest-file.ts'

interface SourceRow extends StoredSource {
  readonly organization: string
  readonly label: string
}

const snake = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const countOf = ({ counts }: StoredSource, ...outcomes: readonly (keyof typeof Outcome)[]): number =>
  outcomes.reduce((sum, outcome) => sum + (counts[Outcome[outcome]] ?? 0), 0)
const formatOf = ({ formats }: StoredSource): string =>
  Object.entries(formats).sort(([, a], [, b]) => b - a)[0]?.[0] ?? ''

/** Of the messages, those that were understood; null without any. */
function understoodShare(source: StoredSource): number | null {
  const { received } = source
  return received === 0 ? null : (received - countOf(source, 'rejected', 'unknown', 'unauthorized')) / received
}

/** Rounded down: 100 % means that every message was understood. */
function percentText(share: unknown): string {
  return typeof share === 'number' ? `${Math.floor(share * 100)} %` : ''
}

function sources(rows: readonly SourceRow[], showsOrganization: boolean): Shown {
  const hasNode = rows.some(({ node = '' }) => node !== '')
  return table<SourceRow>([
    [showsOrganization ? 'Organization' : null, 'organization', { hide: 4 }],
    ['Address', 'address'],
    ['Host', 'host', { hide: 6 }],
    ['Listener', 'listener', { hide: 9 }],
    [hasNode ? 'Node' : null, 'node', { hide: 11, of: ({ node }) => node || undefined }],
    ['Token', 'token_label', { hide: 7, of: ({ label }) => label }],
    ['Format', 'format', { hide: 1, of: formatOf }],
    [null, 'formats'],
    ['Messages', 'messages', { of: ({ received }) => received }],
    ['Understood', 'understood_share', { hide: 2, text: percentText, of: understoodShare }],
    ['Matched', 'matched', { hide: 3, of: (source) => countOf(source, 'stored', 'duplicate') }],
    ['Not understood', 'unparsed', { hide: 10, of: (source) => countOf(source, 'rejected', 'unknown') }],
    ...OUTCOMES.map(
      (outcome) => [null, snake(outcome), { of: (source: StoredSource) => countOf(source, outcome) }] as const,
    ),
    [null, 'first_seen'],
    ['Last seen', 'last_seen', { hide: 5 }],
    [
      null,
      'framing',
      {
        of: ({ framing }) =>
          framing && Object.fromEntries(Object.entries(framing).map(([fault, count]) => [snake(fault), count])),
      },
    ],
    ['Remark', 'remark', { wrap: true, of: remarkOf }],
    ['Redacted sample', 'sample', { hide: 8, wrap: true }],
  ])(rows)
}

function remarkOf(source: StoredSource): string {
  const { zoneMinutes, timesUnread } = source
  const framing = framingRemark(source.framing)
  if (countOf(source, 'unauthorized') > 0) return ['no known token', framing].filter(Boolean).join('; ')
  const hasNames = countOf(source, 'stored', 'duplicate', 'unmatched', 'ambiguous') > 0
  if (!hasNames && countOf(source, 'noDomain') > 0) return `no host names: ${nameLoggingHint(formatOf(source))}`
  const unread = timesUnread > 0 ? `${timesUnread} times not understood` : ''
  return [framing, unread, clockRemark(zoneMinutes)].filter(Boolean).join('; ')
}

/** How far the clock of a sender is from UTC, as `clock +01:00`. */
function clockRemark(zoneMinutes: number): string {
  if (zoneMinutes === 0) return ''
  const [hours, minutes] = [Math.floor(Math.abs(zoneMinutes) / 60), Math.abs(zoneMinutes) % 60].map((part) =>
    String(part).padStart(2, '0'),
  )
  return `clock ${zoneMinutes < 0 ? '-' : '+'}${hours}:${minutes}; see token set --zone`
}

const rejects = table<Reject>([
  ['Time', 'time', { hide: 1, of: ({ timeMs }) => timeText(timeMs) }],
  [null, 'listener'],
  ['Address', 'address', { hide: 2 }],
  ['Host', 'host', { hide: 4 }],
  ['Format', 'format', { hide: 3 }],
  ['Reason', 'reason', { wrap: true }],
  ['Redacted message', 'sample', { wrap: true }],
])

/** What a listener received, by outcome. */
interface Counters {
  readonly listener: string
  received: number
  readonly counts: number[]
}

const counters = table<Counters>([
  ['Listener', 'listener'],
  ['Messages', 'messages', { of: ({ received }) => received }],
  ...OUTCOMES.map(
    (outcome, index) =>
      [
        heading(outcome),
        snake(outcome),
        { hide: index + 1, of: ({ counts }: Counters) => counts[index] ?? 0 },
      ] as const,
  ),
  // Not on disk yet, or lost because the service was killed.
  [
    'In progress',
    'in_progress',
    { hide: OUTCOMES.length + 1, of: ({ received, counts }) => received - totalOf(counts) },
  ],
])

function heading(name: string): string {
  const words = snake(name).replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function countersOf(store: Store): readonly Counters[] {
  const sums = new Map<string, Counters>()
  for (const { id } of [...store.organizations.all(), { id: NO_ORGANIZATION }]) {
    for (const { listener, counts, received } of store.sources.ofOrganization(id)) {
      const sum = sums.get(listener) ?? { listener, received: 0, counts: OUTCOMES.map(() => 0) }
      for (const [index, count] of counts.entries()) sum.counts[index] = (sum.counts[index] ?? 0) + count
      sum.received += received
      sums.set(listener, sum)
    }
  }
  return [...sums.values()]
}

export const commands: Commands = {
  file: query('Read log files of firewalls, proxies and DNS servers, plain or compressed with gzip or zstd', {
    organization: false,
    params: {
      paths: argument('<file...>', 'Log files; - is standard input', z.array(z.string())),
      ...tokenSettings,
      dryRun: flag('--dry-run', 'Store nothing, and report what would be stored'),
      rule: option('--rule <file>', "Read by the rule of a custom format in this YAML file, instead of the token's"),
      names: flag('--names', 'Print what was understood of each line as a JSON object, with --dry-run'),
      rejects: option(
        '--rejects <count>',
        'Show this many lines of each file that were not understood',
        wholeNumber(0, 1e9).default(10),
      ),
    },
    around(given, work: (input: Input) => Promise<void>, command) {
      assertNames(given)
      return withInput(given, command, work)
    },
    run(context, given, input) {
      const read = (): Promise<void> => ingestFiles(context, input, given)
      // Two concurrent runs would both count the lines of the same file.
      return given.dryRun ? read() : exclusively(context.store.environment.path, 'ingest file', read)
    },
  }),
  sources: query('Show who sends logs, in which format, and how much was understood', {
    organization: false,
    params: {
      org: option(
        '--org <name>',
        'Select one organization by name or id; by default all, and senders without a known token',
      ),
    },
    run({ store, administration }, { org }) {
      const organizations =
        org === undefined
          ? [...store.organizations.all(), { id: NO_ORGANIZATION, name: '' }]
          : [administration.organization(org)]
      const rows = organizations.flatMap(({ id, name }) => {
        const labels = new Map(store.monitoringTokens.ofOrganization(id).map((token) => [token.id, token.label]))
        return store.sources
          .ofOrganization(id)
          .sort((a, b) => b.lastSeenMs - a.lastSeenMs)
          .map((source) => ({ ...source, organization: name, label: labels.get(source.tokenId) ?? '' }))
      })
      return sources(rows, org === undefined)
    },
  }),
  rejects: query('Show the last messages that were not understood, with secrets redacted', {
    run: ({ store, organization }) => rejects(store.sources.rejectsOf(organization.id)),
  }),
  counters: query('Show how many messages had each outcome, by listener', {
    organization: false,
    run: ({ store }) => counters(countersOf(store)),
  }),
}
