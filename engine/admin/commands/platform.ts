import { type Command, Option } from 'commander'
import type { Platform } from '../../../registry/platform.ts'
import { DAY_MS, isoSeconds } from '../../process/clock.ts'
import { durationOption } from '../../process/duration.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Column } from '../../process/table.ts'
import { Evidence } from '../../scan/evidence.ts'
import { firstDayOfWindow } from '../../scan/prepare.ts'
import type { ClientUse } from '../../store/client-sum.ts'
import type { Organization } from '../../store/organizations.ts'
import type { Store } from '../../store/store.ts'
import type { PlatformUse } from '../clients.ts'
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
  readonly clients?: boolean
  readonly last: number
  readonly new?: boolean
  readonly since?: number
}

/** posture-admin platform list | show */
export function addPlatformCommands(program: Command): void {
  const platform = program.command('platform').description('Show the platforms in use, and who uses them')

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
    .addOption(new Option('--clients', 'List the clients, most matches first').conflicts(['days', 'names']))
    .addOption(new Option('--days', 'List the use by day').conflicts(['names']))
    .option('--names', 'List the names that clients requested')
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
      if (use.matches === 0) throw new Fault('NOT_FOUND', `no use of ${found.name} in the evidence window`)
      if (options.clients) show(one, clientTable(use.clients.slice(0, options.last), namesOf(store, organization.id)))
      else if (options.days) show(one, dayTable(use, options.last))
      else if (options.names) show(one, nameTable(use, options.last))
      else show(one, { vertical: true, columns: SUMMARY_COLUMNS, rows: [summaryRow(found, use)] })
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
      .map(([each, sum]) => ({ each, sum, foundAtMs: store.evidence.detection(id, each)?.createdAtMs ?? 0 }))
      .filter(({ foundAtMs }) => options.new !== true || foundAtMs >= nowMs - (options.since ?? 0))
      .sort((a, b) => b.sum.matches - a.sum.matches)
      .map(({ each, sum, foundAtMs }) => ({
        id: each,
        platform_name: catalog.get(each)?.name ?? each,
        first_found_at: timeText(foundAtMs),
        last_seen: timeText(sum.lastSeenMs),
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
  ['Matches', 'matches'],
  ['Clients', 'clients_total'],
  ['Clients kept', 'clients_kept'],
  ['Matches of others', 'other_matches'],
  ['Most matches', 'top_clients', { text: (value) => (value as string[]).join(', ') }],
  ['Names', 'names', { text: (value) => (value as string[]).join(', ') }],
]

const TOP = 5

function summaryRow(platform: Platform, use: PlatformUse) {
  return {
    id: platform.id,
    platform_name: platform.name,
    first_found_at: timeText(use.detectedAtMs),
    first_seen: isoSeconds(use.firstSeenMs),
    last_seen: isoSeconds(use.lastSeenMs),
    days: use.days.length,
    matches: use.matches,
    clients_total: use.clientsTotal,
    clients_kept: use.clients.length,
    other_matches: use.otherMatches,
    top_clients: use.clients.slice(0, TOP).map(({ client, matches }) => `${client} (${matches})`),
    names: use.names.slice(0, TOP).map(([name, matches]) => `${name} (${matches})`),
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
  ['Sent', 'bytes_sent', { hide: 7 }],
  ['Received', 'bytes_received', { hide: 8 }],
  ['Days', 'days', { hide: 2 }],
]

function clientTable(clients: readonly ClientUse[], names: NamesOf) {
  return { columns: CLIENT_COLUMNS, rows: clients.map((use) => clientRow(use, names)) }
}

/** The names of an address. */
export type NamesOf = (address: string) => { readonly name: string | null; readonly network: string | null }

export function namesOf({ clientNames }: Store, organizationId: string): NamesOf {
  const networks = clientNames.networks(organizationId)
  return (address) => ({
    name: clientNames.hostOf(organizationId, address) ?? null,
    network: clientNames.networkOf(networks, address) ?? null,
  })
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
