import { z } from 'zod'
import { type Contact, USES, type Use, useOf } from '../../registry/contact.ts'
import type { Platform } from '../../registry/platform.ts'
import { scoreOf } from '../../registry/risk-sum.ts'
import type { PlatformDay, PlatformUse, SourceUse } from '../admin/client-use.ts'
import { managerDraft } from '../admin/managers.ts'
import { USE_NAMES } from '../admin/platform-rows.ts'
import { dayText } from '../kernel/process/clock.ts'
import { duration } from '../kernel/process/duration.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { oneOf } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import { Evidence } from '../scan/evidence.ts'
import { type PublishedPlatform, publishedPlatform } from '../scan/listed-discovery.ts'
import type { PlatformGroup } from '../scan/platform-groups.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import type { AddressNames, NamesOf } from '../store/client-names.ts'
import { contactFields } from '../store/client-records.ts'
import type { ClientUse } from '../store/client-sum.ts'
import { spanText } from '../store/name-spans.ts'
import { argument, type Commands, change, flag, limitOption, option, query, table, timeText } from './command.ts'
import type { AdminContext } from './context.ts'

const CLIENTS_SHOWN = 100
const CLIENTS_SHOWN_MAX = 100_000
/** Clients, names and sources of the summary. */
const TOP = 5

const useText = (value: unknown): string => USE_NAMES[value as Use]
export const listText = (value: unknown): string => (value as readonly string[]).join(', ')
const countText = (count: unknown): string => (count === null ? 'not known' : String(count))

interface ListRow {
  readonly id: string
  readonly platform: Platform | undefined
  readonly risk: number | null
  readonly sum: Evidence
  readonly foundAtMs: number
  readonly decision: string
}

const list = table<ListRow>([
  [null, 'id'],
  ['Platform', 'platform_name', { of: ({ id, platform }) => platform?.name ?? id }],
  ['First found', 'first_found_at', { hide: 1, of: ({ foundAtMs }) => timeText(foundAtMs) }],
  ['Last seen', 'last_seen', { hide: 3, of: ({ sum }) => timeText(sum.lastSeenMs) }],
  ['Kind', 'use', { hide: 4, text: useText, of: ({ sum }) => useOf(sum) }],
  ['Decision', 'decision'],
  ['Risk', 'risk', { hide: 2 }],
  ['Clients', 'clients', { of: ({ sum }) => sum.clients.estimate }],
  [null, 'matches', { of: ({ sum }) => sum.matches }],
  ['Used', 'used_matches', { of: ({ sum }) => sum.used }],
  ['Blocked', 'blocked_matches', { of: ({ sum }) => sum.blocked }],
  ['Touched', 'touched_matches', { hide: 5, of: ({ sum }) => sum.touched }],
])

interface Summary {
  readonly platform: Platform
  readonly use: PlatformUse
  /** The finding of the last scan. */
  readonly metadata: PublishedPlatform['metadata'] | undefined
}

const total = ({ use: { days } }: Summary, contact: Contact): number => days.reduce((sum, day) => sum + day[contact], 0)

/** `web 1500 (chatgpt.com), api 340 (api.openai.com)` */
function accessText(access: unknown): string {
  return (access as PublishedPlatform['metadata']['access'])
    .map(({ kind, matches, domains }) => `${kind} ${matches} (${domains.join(', ')})`)
    .join(', ')
}

const summary = table<Summary>(
  [
    [null, 'id', { of: ({ platform }) => platform.id }],
    ['Platform', 'platform_name', { of: ({ platform }) => platform.name }],
    ['First found', 'first_found_at', { of: ({ use }) => timeText(use.detectedAtMs) }],
    ['First seen', 'first_seen', { of: ({ use }) => timeText(use.firstSeenMs) }],
    ['Last seen', 'last_seen', { of: ({ use }) => timeText(use.lastSeenMs) }],
    ['Days', 'days', { of: ({ use }) => use.days.filter(({ used }) => used > 0).length }],
    ['Kind', 'use', { text: useText, of: ({ metadata }) => metadata?.use ?? null }],
    ['Access', 'access', { text: accessText, of: ({ metadata }) => metadata?.access ?? [] }],
    ['Programmatic clients', 'programmatic_clients', { of: ({ metadata }) => metadata?.programmatic_clients ?? null }],
    ['Matches', 'matches', { of: ({ use }) => use.matches }],
    ['Used', 'used_matches', { of: (row) => total(row, 'used') }],
    ['Blocked', 'blocked_matches', { of: (row) => total(row, 'blocked') }],
    ['Touched', 'touched_matches', { of: (row) => total(row, 'touched') }],
    ['Clients', 'clients_total', { of: ({ use }) => use.clientsTotal }],
    ['Clients listed', 'clients_listed', { of: ({ use }) => use.clients.length }],
    ['Matches of unlisted clients', 'unlisted_matches', { of: ({ use }) => use.otherMatches }],
    ['Most matches', 'top_clients', { text: listText, of: ({ use }) => topClients(use) }],
    [
      'Names',
      'names',
      { text: listText, of: ({ use }) => use.names.slice(0, TOP).map(([name, matches]) => `${name} (${matches})`) },
    ],
    [
      'Sources',
      'sources',
      {
        text: listText,
        of: ({ use }) => use.sources.slice(0, TOP).map(({ kind, name, matches }) => `${kind} ${name} (${matches})`),
      },
    ],
  ],
  { vertical: true },
)

function topClients({ clients }: PlatformUse): string[] {
  return clients
    .filter(({ used }) => used !== 0)
    .slice(0, TOP)
    .map(({ client, used, matches }) => `${client} (${Number.isNaN(used) ? matches : used})`)
}

/** A client as commands print it. */
export function clientRow(use: ClientUse, names: NamesOf) {
  return {
    client: use.client,
    ...nameFields(names(use.client, use.firstSeenMs, use.lastSeenMs)),
    user: use.user,
    matches: use.matches,
    ...contactFields(use),
    first_seen: timeText(use.firstSeenMs),
    last_seen: timeText(use.lastSeenMs),
    methods: use.methods,
    access: use.access,
    bytes_sent: use.bytesSent,
    bytes_received: use.bytesReceived,
    days: use.days,
  }
}

const clients = table<ReturnType<typeof clientRow>>([
  ['Client', 'client'],
  ['Name', 'name', { hide: 3, wrap: true }],
  [null, 'name_from'],
  [null, 'name_to'],
  ['Network', 'network', { hide: 4, wrap: true }],
  ['User', 'user', { wrap: true }],
  ['Matches', 'matches', { hide: 4 }],
  ['Used', 'used_matches', { text: countText }],
  ['Blocked', 'blocked_matches', { text: countText }],
  ['Touched', 'touched_matches', { hide: 6, text: countText }],
  ['First seen', 'first_seen', { hide: 5 }],
  ['Last seen', 'last_seen', { hide: 1 }],
  ['Methods', 'methods', { hide: 6, text: listText }],
  ['Access', 'access', { hide: 9, text: listText }],
  ['Sent', 'bytes_sent', { hide: 7 }],
  ['Received', 'bytes_received', { hide: 8 }],
  ['Days', 'days', { hide: 2 }],
  ['Earlier names', 'earlier_names', { hide: 9, text: listText }],
])

/** The fields of the names of an address. A time that is not known is null. */
export function nameFields({ current, earlier, network }: AddressNames) {
  const { name = null, fromMs, toMs } = current ?? {}
  const name_to = timeText(toMs === Number.POSITIVE_INFINITY ? undefined : toMs)
  return { name, name_from: timeText(fromMs), name_to, earlier_names: earlier.map(spanText), network }
}

const days = table<PlatformDay>([
  ['Day', 'day', { of: ({ day }) => dayText(day) }],
  ['Clients', 'clients'],
  ['Used', 'used_matches', { of: ({ used }) => used }],
  ['Blocked', 'blocked_matches', { of: ({ blocked }) => blocked }],
  ['Touched', 'touched_matches', { of: ({ touched }) => touched }],
])
const names = table<readonly [name: string, matches: number]>([
  ['Name', 'name', { of: ([name]) => name }],
  ['Matches', 'matches', { of: ([, matches]) => matches }],
])
const sources = table<SourceUse>([
  ['Source', 'kind'],
  ['Name', 'name', { wrap: true }],
  ['Matches', 'matches'],
])

const mails = table<PlatformGroup>([
  ['Group', 'name', { wrap: true }],
  ['Manager', 'manager', { wrap: true, of: ({ manager }) => manager || null }],
  ['People', 'people', { of: ({ people }) => people.length }],
])

export const commands: Commands = {
  list: query('List the platforms in the evidence that were used, most matches first', {
    params: {
      use: option('--use <kind>', 'List these platforms: blocked and touched were not used', oneOf(USES).optional()),
      isNew: flag('--new', 'Show only platforms that were first found within --since'),
      since: option(
        '--since <duration>',
        'Limit --new to this time before now',
        duration('1h', '400d').prefault('7d'),
        {
          defaultAbout: '7d',
        },
      ),
    },
    run(context, { use, isNew, since }) {
      const foundSinceMs = isNew ? context.clock.nowMs() - since : 0
      const isListed = (sum: Evidence): boolean => (use === undefined ? sum.used > 0 : useOf(sum) === use)
      return list(
        rowsOf(context)
          .filter(({ sum, foundAtMs }) => isListed(sum) && foundAtMs >= foundSinceMs)
          .sort((a, b) => b.sum.used - a.sum.used || b.sum.matches - a.sum.matches),
      )
    },
  }),
  show: change('Show since when a platform is used, and by whom', {
    params: {
      platform: argument('<platform>', 'Id or name of the platform'),
      byClient: flag('--clients', 'List the clients, most matches first', { conflicts: ['days', 'names', 'sources'] }),
      byDay: flag('--days', 'List the use by day', { conflicts: ['names', 'sources'] }),
      byName: flag('--names', 'List the names that clients requested', { conflicts: ['sources'] }),
      bySource: flag('--sources', 'List the log sources and sensors that saw the use'),
      limit: limitOption('--limit <count>', 'Limit the list to this many rows', CLIENTS_SHOWN, CLIENTS_SHOWN_MAX),
    },
    run({ administration, organization, registry, store }, { platform: named, limit, ...by }): Shown {
      const platform = platformOf(registry.catalogOf(organization.id).platforms, named)
      const use = administration.clients.ofPlatform(organization, platform.id, platform.name)
      if (use.days.length === 0) throw new Fault('NOT_FOUND', `no match of ${platform.name} in the evidence window`)
      if (by.byClient) {
        reportClientsLeft(use, limit)
        const namesOfClient = store.clientNames.names(organization.id)
        return clients(use.clients.slice(0, limit).map((each) => clientRow(each, namesOfClient)))
      }
      if (by.byDay) return days(use.days.slice(-limit))
      if (by.byName) return names(use.names.slice(0, limit))
      if (by.bySource) return sources(use.sources.slice(0, limit))
      const published = store.environment.read(() => publishedPlatform(store, organization, platform.name))
      return summary([{ platform, use, metadata: published?.metadata }])
    },
  }),
  'notify-managers': change('Send a mail to the managers of the groups that used a platform in the evidence window', {
    params: {
      platform: argument('<platform>', 'Id or name of the platform'),
      channel: option(
        '--channel <channel>',
        'Send through this alert channel of the kind smtp, if there are several',
        z.string().optional(),
      ),
      text: option('--text <text>', 'Set the text that the mails begin with'),
      dryRun: flag('--dry-run', 'List the groups and their managers, and send nothing'),
    },
    run({ administration, organization, registry, store, clock }, { platform: named, channel, dryRun, ...given }) {
      const platform = platformOf(registry.catalogOf(organization.id).platforms, named)
      administration.clients.note(organization, { platform: platform.name })
      const nowMs = clock.nowMs()
      const draft = managerDraft(store, organization, platform, nowMs)
      if (dryRun) return mails(draft.groups)
      const { range, notified } = draft
      const { text = draft.text } = given
      const groups = notified.map(({ name }) => name)
      administration.managers.notifyManagers(organization, { platform, groups, range, text, channel })
      return mails(notified)
    },
  }),
}

/** @throws Fault NOT_FOUND */
function platformOf(platforms: readonly Platform[], named: string): Platform {
  const name = named.toLowerCase()
  const found = platforms.find((platform) => platform.id === name || platform.name.toLowerCase() === name)
  if (found !== undefined) return found
  throw new Fault('NOT_FOUND', `no platform ${JSON.stringify(named)}; find ids with posture-admin registry search`)
}

/** The evidence window, summed by platform. */
function rowsOf({ store, registry, clock, organization }: AdminContext): ListRow[] {
  const nowMs = clock.nowMs()
  const { id } = organization
  const catalog = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.id, platform]))
  const { states, plans } = store.decisions.inForce(id, nowMs)
  const sums = new Map<string, Evidence>()
  return store.environment.read(() => {
    for (const { platformId, evidence } of store.evidence.since(id, firstDayOfWindow(organization, nowMs))) {
      const sum = sums.get(platformId) ?? new Evidence()
      sum.addDay(evidence)
      sums.set(platformId, sum)
    }
    return [...sums].map(([platformId, sum]) => {
      const platform = catalog.get(platformId)
      const risk = platform === undefined ? null : scoreOf(platform, plans)
      const foundAtMs = store.evidence.detection(id, platformId)?.createdAtMs ?? 0
      return { id: platformId, sum, platform, risk, foundAtMs, decision: states.get(platformId) ?? 'waiting' }
    })
  })
}

/** Says that the list stops. On standard error, so that JSON stays JSON. */
function reportClientsLeft({ clients, clientsTotal }: PlatformUse, countMax: number): void {
  const shown = Math.min(clients.length, countMax)
  if (shown >= clientsTotal) return
  const [part, all] = [shown, clientsTotal].map((count) => count.toLocaleString('en-US'))
  const more = clients.length > shown ? `; for more: --limit ${Math.min(clients.length, CLIENTS_SHOWN_MAX)}` : ''
  const kept = clients.length < clientsTotal ? `; details of ${clients.length.toLocaleString('en-US')} are kept` : ''
  process.stderr.write(`${part} of ${all} clients${more}${kept}\n`)
}
