import { type Command, Option } from 'commander'
import { EVIDENCE_WINDOW_DAYS_MAX } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Column } from '../../process/table.ts'
import {
  CLIENT_MODES,
  type ClientMode,
  clientModeOf,
  isDomainConfirmed,
  type Organization,
  PLANS,
  type Plan,
  SCAN_FREQUENCIES,
  type ScanFrequency,
} from '../../store/organizations.ts'
import type { Store } from '../../store/store.ts'
import { changeOptions, countOption, sharedOptions, show, timeText, withStore } from './context.ts'
import { addOrganizationRemove } from './organization-remove.ts'

interface Settings {
  readonly plan?: Plan
  readonly domain?: string
  readonly scans?: ScanFrequency
  readonly window?: number
  readonly clients?: ClientMode
  readonly apiClients?: 'on' | 'off'
}

/** posture-admin organization create | show | set | rename | list | remove */
export function addOrganizationCommands(organization: Command): void {
  const create = sharedOptions(
    organization.command('create').description('Create an organization').argument('<name>', 'Name of the organization'),
  )
    .requiredOption('--domain <domain>', 'Set the domain that scans report')
    .addOption(
      new Option('--plan <plan>', 'Set the plan; the API requires enterprise').choices(PLANS).default('enterprise'),
    )
  create.action((name: string, options: { domain: string; plan: Plan }) =>
    withStore(
      create,
      ({ administration }) => {
        print(create, [administration.organizations.create({ name, domain: options.domain, plan: options.plan })])
      },
      { create: true },
    ),
  )

  const set = changeOptions(
    organization
      .command('set')
      .description('Change the plan, domain, scan frequency, evidence window or what is kept of clients')
      .argument('<name>', 'Name or id of the organization'),
  )
    .addOption(new Option('--plan <plan>', 'Set the plan, from the next API request on').choices(PLANS))
    .option('--domain <domain>', 'Set the domain that scans report')
    .addOption(new Option('--scans <frequency>', 'Set how often scans run').choices(SCAN_FREQUENCIES))
    .addOption(
      new Option('--window <days>', 'Count evidence of this many days in a scan').argParser(
        countOption(1, EVIDENCE_WINDOW_DAYS_MAX),
      ),
    )
    .addOption(
      new Option('--clients <mode>', 'Keep clients in full, as pseudonyms or not at all; erases what is kept').choices(
        CLIENT_MODES,
      ),
    )
    .addOption(new Option('--api-clients <switch>', 'Name clients in API responses').choices(['on', 'off']))
  set.action((name: string, { plan, domain, scans, window, clients, apiClients }: Settings) =>
    withStore(set, ({ administration }) => {
      const settings = {
        ...(plan === undefined ? {} : { plan }),
        ...(domain === undefined ? {} : { domain }),
        ...(scans === undefined ? {} : { scanFrequency: scans }),
        ...(window === undefined ? {} : { evidenceWindowDays: window }),
        ...(clients === undefined ? {} : { clients }),
        ...(apiClients === undefined ? {} : { apiClients: apiClients === 'on' }),
      }
      if (Object.keys(settings).length === 0) {
        throw new Fault(
          'USAGE',
          'nothing to change: give --plan, --domain, --scans, --window, --clients or --api-clients',
        )
      }
      const changed = administration.organizations.set(administration.organization(name), settings)
      if (clients !== undefined) for (const _step of administration.organizations.eraseClients(changed));
      print(set, [changed])
    }),
  )

  const one = sharedOptions(
    organization
      .command('show')
      .description('Show an organization, its keys, tokens, members and last scan')
      .argument('[name]', 'Name or id of the organization; by default the only one'),
  )
  one.action((name: string | undefined) =>
    withStore(one, ({ store, administration, clock }) => {
      const found = administration.organization(name ?? (process.env['POSTURE_ORG'] || undefined))
      show(one, {
        vertical: true,
        columns: [...COLUMNS, ...DETAIL_COLUMNS],
        rows: [{ ...rowOf(found), ...store.environment.read(() => detailsOf(store, found, clock.nowMs())) }],
      })
    }),
  )

  const rename = changeOptions(
    organization
      .command('rename')
      .description('Rename an organization without any other change')
      .argument('<name>', 'Name or id of the organization')
      .argument('<new-name>', 'New name'),
  )
  rename.action((name: string, newName: string) =>
    withStore(rename, ({ administration }) => {
      print(rename, [administration.organizations.rename(administration.organization(name), newName)])
    }),
  )

  addOrganizationRemove(organization)

  const list = sharedOptions(organization.command('list').description('List all organizations'))
  list.action(() => withStore(list, ({ store }) => print(list, store.organizations.all())))
}

const COLUMNS: readonly Column[] = [
  ['Name', 'name', { wrap: true }],
  ['Domain', 'domain', { hide: 2, wrap: true }],
  ['Plan', 'plan', { hide: 1 }],
  ['Scans', 'scan_frequency', { hide: 3 }],
  ['Window (days)', 'evidence_window_days', { hide: 4 }],
  ['Clients', 'clients', { hide: 7 }],
  ['Created', 'created_at', { hide: 6 }],
  ['Id', 'id', { hide: 5 }],
]

const DETAIL_COLUMNS: readonly Column[] = [
  ['Domain confirmed', 'domain_confirmed'],
  ['Members', 'members'],
  ['Active API keys', 'active_api_keys'],
  ['Active tokens', 'active_tokens'],
  ['Approved platforms', 'approved_platforms'],
  ['Rejected platforms', 'rejected_platforms'],
  ['Assessments', 'assessments'],
  ['Buffered events', 'buffered_events'],
  ['Clients in API responses', 'api_clients'],
  ['Client records (bytes)', 'client_bytes'],
  ['Client records removed', 'client_records_removed'],
  ['Last scan', 'last_completed_at'],
]

function print(command: Command, organizations: readonly Organization[]): void {
  show(command, { columns: COLUMNS, rows: organizations.map(rowOf) })
}

function rowOf(organization: Organization) {
  return {
    id: organization.id,
    name: organization.name,
    domain: organization.domain,
    plan: organization.plan,
    scan_frequency: organization.scanFrequency,
    evidence_window_days: organization.evidenceWindowDays,
    clients: clientModeOf(organization),
    created_at: timeText(organization.createdAtMs),
  }
}

function detailsOf(store: Store, organization: Organization, nowMs: number) {
  const { id, apiClients = false } = organization
  const clients = store.clientDays.totals(id)
  const decided = [...store.decisions.inForce(id, nowMs).states.values()]
  const lastScan = store.scans.last(id, ({ status }) => status === 'completed')
  return {
    domain_confirmed: isDomainConfirmed(organization),
    members: store.members.ofOrganization(id).length,
    active_api_keys: store.apiKeys.activeCount(id, nowMs),
    active_tokens: store.monitoringTokens.activeCount(id, nowMs),
    approved_platforms: decided.filter((state) => state === 'approved').length,
    rejected_platforms: decided.filter((state) => state === 'rejected').length,
    assessments: store.assessments.ofOrganization(id).length,
    buffered_events: store.buffer.count(id),
    api_clients: apiClients,
    client_bytes: clients.bytes,
    client_records_removed: clients.removed,
    last_completed_at: timeText(lastScan?.completedAtMs ?? 0),
  }
}
