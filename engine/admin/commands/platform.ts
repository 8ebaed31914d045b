import { type Command, Option } from 'commander'
import type { Platform } from '../../../registry/platform.ts'
import { type Use, useOf } from '../../../registry/use.ts'
import { DAY_MS, isoSeconds } from '../../process/clock.ts'
import { durationOption } from '../../process/duration.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Column } from '../../process/table.ts'
import { Evidence } from '../../scan/evidence.ts'
import { type PublishedPlatform, publishedPlatform } from '../../scan/listed-discovery.ts'
import { firstDayOfWindow } from '../../scan/prepare.ts'
import type { ClientUse } from '../../store/client-sum.ts'
import type { Organization } from '../../store/organizations.ts'
import { type NamesOf, namesOf, type PlatformUse } from '../client-use.ts'
import { useText } from '../platform-rows.ts'
import {
  type AdminContext,
  changeOptions,
  countOption,
  ofOrganization,
  sharedOptions,
  show,
  timeText,
  withStore,
} from './context.ts'

const CLIENTS_SHOWN = 100
const CLIENTS_SHOWN_MAX = 100_000

interface Options {
  readonly org?: string
  readonly days?: boolean
  readonly names?: boolean
  readonly sources?: boolean
  readonly clients?: boolean
  readonly last: number
  readonly new?: boolean
  readonly since?: number
}

/** posture-admin platform list | show */
export function addPlatformCommands(platform: Command): void {
  const list = ofOrganization(
    sharedOptions(platform.command('list').description('List the platforms in the evidence, most matches first')),
  )
    .option('--new', 'Show only platforms that were first found within --since')
    .addOption(
      new Option('--since <duration>', 'Limit --new to this time before now')
        .default(7 * DAY_MS, '7d')
        .argParser(durationOption('1h', '400d')),
    )
  list.action((options: Options) =>
    withStore(list, (context) => {
      const organization = context.administration.organization(options.org)
      show(list, { columns: LIST_COLUMNS, rows: listRows(context, organization, options) })
    }),
  )

  const one = ofOrganization(
    changeOptions(
      platform
        .command('show')
        .description('Show since when a platform is used, and by whom')
        .argument('<platform>', 'Id or name of the platform'),
    ),
  )
    .addOption(new Option('--clients', 'List the clients, most matches first').conflicts(['days', 'names', 'sources']))
    .addOption(new Option('--days', 'List the use by day').conflicts(['names', 'sources']))
    .addOption(new Option('--names', 'List the names that clients requested').conflicts(['sources']))
    .option('--sources', 'List the log sources and sensors that saw the use')
    .addOption(
      new Option('--last <count>', 'Limit the list to this many rows')
        .default(CLIENTS_SHOWN)
        .argParser(countOption(1, CLIENTS_SHOWN_MAX)),
    )
  one.action((named: string, options: Options) =>
    withStore(one, (context) => {
      const { administration, registry, store } = context
      const organization = administration.organization(options.org)
      const found = platformOf(registry.catalogOf(organization.id).platforms, named)
      const use = administration.clients.ofPlatform(organization, found.id, found.name)
      if (use.days.length === 0) throw new Fault('NOT_FOUND', `no use of ${found.name} in the evidence window`)
      if (options.clients) show(one, clientTable(use.clients.slice(0, options.last), namesOf(store, organization.id)))
      else if (options.days) show(one, dayTable(use, options.last))
      else if (options.names) show(one, nameTable(use, options.last))
      else if (options.sources) show(one, sourceTable(use, options.last))
      else {
        const published = store.environment.read(() => publishedPlatform(store, organization, found.name))
        show(one, { vertical: true, columns: SUMMARY_COLUMNS, rows: [summaryRow(found, use, published)] })
      }
    }),
  )
}

/** @throws Fault NOT_FOUND */
export function platformOf(platforms: readonly Platform[], named: string): Platform {
  const name = named.toLowerCase()
  const found = platforms.find((platform) => platform.id === name || platform.name.toLowerCase() === name)
  if (found !== undefined) return found
  throw new Fault('NOT_FOUND', `no platform ${JSON.stringify(named)}; find ids with posture-admin registry search`)
}

const LIST_COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['First found', 'first_found_at', { hide: 1 }],
  ['Last seen', 'last_seen', { hide: 3 }],
  ['Use', 'use', { hide: 4, text: (value) => useText(value as Use) }],
  ['Decision', 'decision'],
  ['Risk', 'risk', { hide: 2 }],
  ['Clients', 'clients'],
  ['Matches', 'matches'],
]

function listRows({ store, registry, clock }: AdminContext, organization: Organization, options: Options) {
  const nowMs = clock.nowMs()
  const { id } = organization
  const catalog = new Map(registry.catalogOf(id).platforms.map((platform) => [platform.id, platform]))
  const { states } = store.decisions.inForce(id, nowMs)
  const sums = new Map<string, Evidence>()
  return store.environment.read(() => {
    for (const { platformId: each, evidence } of store.evidence.since(id, firstDayOfWindow(organization, nowMs))) {
      const sum = sums.get(each) ?? new Evidence()
      sum.addDay(evidence)
      sums.set(each, sum)
    }
    return [...sums]
      .filter(([, sum]) => sum.useMatches > 0)
      .map(([each, sum]) => ({ each, sum, foundAtMs: store.evidence.detection(id, each)?.createdAtMs ?? 0 }))
      .filter(({ foundAtMs }) => options.new !== true || foundAtMs >= nowMs - (options.since ?? 0))
      .sort((a, b) => b.sum.matches - a.sum.matches)
      .map(({ each, sum, foundAtMs }) => ({
        id: each,
        platform_name: catalog.get(each)?.name ?? each,
        first_found_at: timeText(foundAtMs),
        last_seen: timeText(sum.lastSeenMs),
        use: useOf(sum.specificity),
        decision: states.get(each) ?? 'waiting',
        risk: catalog.get(each)?.risk.score ?? null,
        clients: sum.clients.estimate,
        matches: sum.matches,
      }))
  })
}

const SUMMARY_COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['First found', 'first_found_at'],
  ['First seen', 'first_seen'],
  ['Last seen', 'last_seen'],
  ['Days', 'days'],
  ['Use', 'use', { text: (value) => useText(value as Use) }],
  ['Access', 'access', { text: (value) => accessText(value as FoundAccess) }],
  ['Programmatic clients', 'programmatic_clients'],
  ['Matches', 'matches'],
  ['Clients', 'clients_total'],
  ['Clients kept', 'clients_kept'],
  ['Matches of others', 'other_matches'],
  ['Most matches', 'top_clients', { text: (value) => (value as string[]).join(', ') }],
  ['Names', 'names', { text: (value) => (value as string[]).join(', ') }],
  ['Sources', 'sources', { text: (value) => (value as string[]).join(', ') }],
]

const TOP = 5

type FoundAccess = PublishedPlatform['metadata']['access']

/** `web 1500 (chatgpt.com), api 340 (api.openai.com)` */
function accessText(access: FoundAccess): string {
  return access.map(({ kind, matches, domains }) => `${kind} ${matches} (${domains.join(', ')})`).join(', ')
}

/** @param published the finding of the last scan */
function summaryRow(platform: Platform, use: PlatformUse, published: PublishedPlatform | undefined) {
  const { metadata } = published ?? {}
  return {
    id: platform.id,
    platform_name: platform.name,
    first_found_at: timeText(use.detectedAtMs),
    first_seen: isoSeconds(use.firstSeenMs),
    last_seen: isoSeconds(use.lastSeenMs),
    days: use.days.length,
    use: metadata?.use ?? null,
    access: metadata?.access ?? [],
    programmatic_clients: metadata?.programmatic_clients ?? null,
    matches: use.matches,
    clients_total: use.clientsTotal,
    clients_kept: use.clients.length,
    other_matches: use.otherMatches,
    top_clients: use.clients.slice(0, TOP).map(({ client, matches }) => `${client} (${matches})`),
    names: use.names.slice(0, TOP).map(([name, matches]) => `${name} (${matches})`),
    sources: use.sources.slice(0, TOP).map(({ kind, name, matches }) => `${kind} ${name} (${matches})`),
  }
}

const CLIENT_COLUMNS: readonly Column[] = [
  ['Client', 'client'],
  ['Name', 'name', { hide: 3, wrap: true }],
  ['Network', 'network', { hide: 4, wrap: true }],
  ['User', 'user', { wrap: true }],
  ['Matches', 'matches'],
  ['First seen', 'first_seen', { hide: 5 }],
  ['Last seen', 'last_seen', { hide: 1 }],
  ['Methods', 'methods', { hide: 6, text: (value) => (value as string[]).join(', ') }],
  ['Access', 'access', { hide: 9, text: (value) => (value as string[]).join(', ') }],
  ['Sent', 'bytes_sent', { hide: 7 }],
  ['Received', 'bytes_received', { hide: 8 }],
  ['Days', 'days', { hide: 2 }],
]

function clientTable(clients: readonly ClientUse[], names: NamesOf) {
  return { columns: CLIENT_COLUMNS, rows: clients.map((use) => clientRow(use, names)) }
}

/** A client as commands print it. */
export function clientRow(use: ClientUse, names: NamesOf) {
  return {
    client: use.client,
    ...names(use.client),
    user: use.user,
    matches: use.matches,
    first_seen: isoSeconds(use.firstSeenMs),
    last_seen: isoSeconds(use.lastSeenMs),
    methods: use.methods,
    access: use.access,
    bytes_sent: use.bytesSent,
    bytes_received: use.bytesReceived,
    days: use.days,
  }
}

function dayTable({ days }: PlatformUse, countMax: number) {
  const columns: readonly Column[] = [
    ['Day', 'day'],
    ['Clients', 'clients'],
    ['Matches', 'matches'],
    ['Blocked', 'blocked'],
  ]
  const rows = days.slice(-countMax).map(({ day, ...use }) => ({ day: isoSeconds(day * DAY_MS).slice(0, 10), ...use }))
  return { columns, rows }
}

function nameTable({ names }: PlatformUse, countMax: number) {
  const columns: readonly Column[] = [
    ['Name', 'name'],
    ['Matches', 'matches'],
  ]
  return { columns, rows: names.slice(0, countMax).map(([name, matches]) => ({ name, matches })) }
}

function sourceTable({ sources }: PlatformUse, countMax: number) {
  const columns: readonly Column[] = [
    ['Source', 'kind'],
    ['Name', 'name', { wrap: true }],
    ['Matches', 'matches'],
  ]
  return { columns, rows: sources.slice(0, countMax).map((source) => ({ ...source })) }
}
