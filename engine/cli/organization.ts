import { setImmediate as othersTurn } from 'node:timers/promises'
import { z } from 'zod'
import { systemClock } from '../kernel/process/clock.ts'
import { Fault, isFault } from '../kernel/process/error-codes.ts'
import { type NewFile, withNewFile } from '../kernel/process/new-file.ts'
import { canAsk, Questions } from '../kernel/process/questions.ts'
import { oneOf, wholeNumber } from '../kernel/process/settings.ts'
import { EVIDENCE_WINDOW_DAYS_MAX } from '../limits.ts'
import {
  CLIENT_MODES,
  clientModeOf,
  isDomainConfirmed,
  type Organization,
  PLANS,
  SCAN_FREQUENCIES,
} from '../store/organizations.ts'
import type { Removal } from '../store/removals.ts'
import type { Store } from '../store/store.ts'
import { auditLines } from './audit.ts'
import { argument, assertGiven, type Commands, change, defined, option, query, table, timeText } from './command.ts'
import type { AdminContext } from './context.ts'
import { longWork } from './long-work.ts'

const FIELDS = [
  ['Name', 'name', { wrap: true }],
  ['Domain', 'domain', { hide: 2, wrap: true }],
  ['Plan', 'plan', { hide: 1 }],
  ['Scans', 'scan_frequency', { hide: 3 }],
  ['Window (days)', 'evidence_window_days', { hide: 4, of: (each: Organization) => each.evidenceWindowDays }],
  ['Clients', 'clients', { hide: 7, of: clientModeOf }],
  ['Created', 'created_at', { hide: 6 }],
  ['Id', 'id', { hide: 5 }],
] as const

const organizations = table<Organization>(FIELDS)

function details({ store, clock }: AdminContext, organization: Organization) {
  const { id } = organization
  const nowMs = clock.nowMs()
  const clients = store.clientDays.totals(id)
  const decided = [...store.decisions.inForce(id, nowMs).states.values()]
  const lastScan = store.scans.last(id, ({ status }) => status === 'completed')
  return table<Organization>(
    [
      ...FIELDS,
      ['Domain confirmed', 'domain_confirmed', { of: isDomainConfirmed }],
      ['Members', 'members', { of: () => store.members.ofOrganization(id).length }],
      ['Active API keys', 'active_api_keys', { of: () => store.apiKeys.activeCount(id, nowMs) }],
      ['Active tokens', 'active_tokens', { of: () => store.monitoringTokens.activeCount(id, nowMs) }],
      [
        'Approved platforms',
        'approved_platforms',
        { of: () => decided.filter((state) => state === 'approved').length },
      ],
      [
        'Rejected platforms',
        'rejected_platforms',
        { of: () => decided.filter((state) => state === 'rejected').length },
      ],
      ['Assessments', 'assessments', { of: () => store.assessments.ofOrganization(id).length }],
      ['Buffered events', 'buffered_events', { of: () => store.buffer.count(id) }],
      ['Clients in API responses', 'api_clients', { of: ({ apiClients = false }) => apiClients }],
      ['People in alerts', 'alert_people', { of: ({ alertPeople = false }) => alertPeople }],
      ['Client records (bytes)', 'client_bytes', { of: () => clients.bytes }],
      ['Client records removed', 'client_records_removed', { of: () => clients.removed }],
      ['Last scan', 'last_completed_at', { of: () => timeText(lastScan?.completedAtMs) }],
    ],
    { vertical: true },
  )([organization])
}

const removals = table<Removal & { readonly records: number }>([
  ['Removed', 'name', { wrap: true }],
  ['Records', 'records'],
  ['Id', 'id', { hide: 1, of: ({ organizationId }) => organizationId }],
])

const SWITCH = oneOf(['on', 'off']).optional()
const NAME = argument('<name>', 'Name or id of the organization')

export const commands: Commands = {
  create: query('Create an organization', {
    organization: false,
    creates: true,
    params: {
      name: argument('<name>', 'Name of the organization'),
      domain: option('--domain <domain>', 'Set the domain that scans report', z.string()),
      plan: option('--plan <plan>', 'Set the plan; the API requires enterprise', oneOf(PLANS).default('enterprise')),
    },
    run: ({ administration }, { name, domain, plan }) =>
      organizations([administration.organizations.create({ name, domain, plan })]),
  }),
  set: change('Change the plan, domain, scan frequency, evidence window or what is kept of clients', {
    organization: false,
    params: {
      name: NAME,
      plan: option('--plan <plan>', 'Set the plan, from the next API request on', oneOf(PLANS).optional()),
      domain: option('--domain <domain>', 'Set the domain that scans report'),
      scanFrequency: option(
        '--scan-frequency <frequency>',
        'Set how often scans run',
        oneOf(SCAN_FREQUENCIES).optional(),
      ),
      evidenceWindowDays: option(
        '--window <days>',
        'Count evidence of this many days in a scan',
        wholeNumber(1, EVIDENCE_WINDOW_DAYS_MAX).optional(),
      ),
      clients: option(
        '--client-storage <mode>',
        'Keep clients in full, as pseudonyms or not at all; erases what is kept',
        oneOf(CLIENT_MODES).optional(),
      ),
      apiClients: option('--clients-in-api <switch>', 'Name clients in API responses', SWITCH),
      alertPeople: option('--people-in-alerts <switch>', 'Name people in alerts', SWITCH),
    },
    run({ administration }, { name, plan, domain, scanFrequency, evidenceWindowDays, clients, ...switches }) {
      const isOn = (word: 'on' | 'off' | undefined) => (word === undefined ? undefined : word === 'on')
      const [apiClients, alertPeople] = [isOn(switches.apiClients), isOn(switches.alertPeople)]
      const settings = defined({ plan, domain, scanFrequency, evidenceWindowDays, clients, apiClients, alertPeople })
      assertGiven(
        settings,
        '--plan, --domain, --scan-frequency, --window, --client-storage, --clients-in-api or --people-in-alerts',
      )
      const changed = administration.organizations.set(administration.organization(name), settings)
      if (clients !== undefined) for (const _step of administration.organizations.eraseClients(changed));
      return organizations([changed])
    },
  }),
  show: query('Show an organization, its keys, tokens, members and last scan', {
    organization: false,
    params: {
      name: argument('[name]', 'Name or id of the organization; by default the only one', z.string().optional()),
    },
    run(context, { name }) {
      const found = context.administration.organization(name ?? (process.env['POSTURE_ORG'] || undefined))
      return context.store.environment.read(() => details(context, found))
    },
  }),
  rename: change('Rename an organization without any other change', {
    organization: false,
    params: { name: NAME, newName: argument('<new-name>', 'New name') },
    run: ({ administration }, { name, newName }) =>
      organizations([administration.organizations.rename(administration.organization(name), newName)]),
  }),
  remove: change('Remove an organization with all its data, keys and tokens permanently', {
    organization: false,
    params: {
      name: NAME,
      confirm: option('--confirm <name>', 'Confirm the removal with the name of the organization, without a prompt'),
      auditFile: option(
        '--audit-file <file>',
        'Write the audit log to this new file first; by default audit-NAME-TIME.jsonl',
      ),
    },
    around({ name, auditFile }, work: (file: NewFile | undefined) => Promise<void>) {
      const time = timeText(systemClock.nowMs())?.replaceAll(':', '-')
      const path = auditFile ?? `audit-${name.replaceAll(/[^\w.-]+/g, '_')}-${time}.jsonl`
      return withNewFile('--audit-file', path, { mode: 0o600, exclusive: true, code: 'AUDIT_FILE' }, work)
    },
    async run(context, { name, confirm }, file) {
      const removal = unfinished(context, name) ?? (await removed(context, name, confirm, file as NewFile))
      const records = await deleteRecords(context.store, removal)
      return records === undefined ? undefined : removals([{ ...removal, records }])
    },
  }),
  list: query('List all organizations', {
    organization: false,
    run: ({ store }) => organizations(store.organizations.all()),
  }),
}

/**
 * A removal that was interrupted is finished without a question: its organization is gone already.
 */
function unfinished({ store, administration }: AdminContext, name: string): Removal | undefined {
  try {
    administration.organization(name)
    return undefined
  } catch (error) {
    if (!isFault(error, 'NOT_FOUND')) throw error
    const removal = store.removals.all().find((each) => each.name === name || each.organizationId === name)
    if (removal === undefined) throw error
    return removal
  }
}

async function removed(
  { store, administration }: AdminContext,
  name: string,
  confirm: string | undefined,
  file: NewFile,
): Promise<Removal> {
  const organization = administration.organization(name)
  if (confirm === undefined) await askForName(store, organization)
  else if (confirm !== organization.name) {
    throw new Fault('USAGE', `--confirm: expected the name ${JSON.stringify(organization.name)}; nothing was removed`)
  }
  const completed: Promise<void>[] = []
  try {
    const removal = administration.organizations.remove(organization, (entries) => {
      file.write(auditLines(entries, organization.name))
      completed.push(file.complete())
    })
    await Promise.all(completed)
    process.stderr.write(`posture-admin: the audit log is in ${file.path}\n`)
    return removal
  } catch (error) {
    // Nothing was removed, unless only the last lines of the export could not be written.
    if (!store.removals.has(organization.id)) await file.close({ isWanted: false })
    throw error
  }
}

async function askForName(store: Store, { id, name }: Organization): Promise<void> {
  if (!canAsk()) {
    throw new Fault('USAGE', `--confirm is required: the name of the organization, ${JSON.stringify(name)}`)
  }
  const counts = [
    `${store.apiKeys.ofOrganization(id).length} API keys`,
    `${store.monitoringTokens.ofOrganization(id).length} monitoring tokens`,
    `${store.scans.ofOrganization(id).length} scans`,
    `${store.assessments.ofOrganization(id).length} assessments`,
    `${store.buffer.count(id)} buffered events`,
  ]
  process.stderr.write(`${name} has ${counts.join(', ')}. All of it will be deleted permanently.\n`)
  const questions = new Questions()
  try {
    await questions.ask('Name of the organization, to confirm: ', (answer) => {
      return answer === name ? { value: undefined } : 'That is not its name; Ctrl-C cancels'
    })
  } finally {
    questions.close()
  }
}

/**
 * The organization is gone already; its records go in bounded transactions, while others write.
 * Returns how many, or undefined if it was canceled.
 */
function deleteRecords(store: Store, removal: Removal): Promise<number | undefined> {
  const canceled = `${removal.name} is removed; the service deletes the rest of its records within a day`
  const total = store.environment.read(() => store.removals.left(removal))
  return longWork(canceled, async (onStep, signal) => {
    let deleted = 0
    for (const step of store.removals.finish(removal)) {
      deleted += step
      onStep('delete', deleted, Math.max(total, deleted))
      await othersTurn()
      if (signal.aborted) return undefined
    }
    return deleted
  })
}
