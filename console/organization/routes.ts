import { z } from 'zod'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { RETENTION_DAYS_MAX } from '../../engine/limits.ts'
import { nextScanMs } from '../../engine/scan/period.ts'
import {
  CLIENT_MODES,
  clientModeOf,
  keepsLess,
  type Organization,
  type Retention,
  SCAN_FREQUENCIES,
} from '../../engine/store/organizations.ts'
import { expiredNow, RETENTION_DAYS_MIN, retentionOf } from '../../engine/store/retention.ts'
import { CSV_ROWS_MAX } from '../design/list.tsx'
import { EMPTY_FORM, FormFields, type FormState, readForm, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { AUDIT_ENTRIES_PER_PAGE, Audit, auditColumns, auditView } from './audit.tsx'
import { CLIENT_SETTINGS_PATH, EraseClients, OrganizationPage } from './organization.tsx'
import { RetentionPage } from './retention.tsx'
import { ScanFrequencyPage, scanColumns } from './scan-frequency.tsx'

const PATH = '/organization-settings'

export const ORGANIZATION_ROUTES: readonly Route[] = [
  page(PATH, 'organization.read', (visit) => organizationPage(visit, {}, 200)),
  form(`${PATH}/name`, 'organization.rename', async (visit) => {
    const { fields } = visit.request
    const name = fields.text('name').trim()
    if (name === visit.organization.name) return redirect(PATH)
    if (name === '') {
      return organizationPage(visit, { name: { values: fields, errors: { name: 'Enter a name' } } }, 400)
    }
    try {
      await visit.change('organization.rename', { name })
      return redirect(`${PATH}?done=renamed`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return organizationPage(visit, { name: state }, status)
    }
  }),
  form(PATH, 'organization.set', async (visit) => {
    const { fields } = visit.request
    const read = readForm(settings, fields)
    if ('state' in read) return organizationPage(visit, { settings: read.state }, 400)
    try {
      await visit.change('organization.set', read.data)
      return redirect(`${PATH}?done=set`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return organizationPage(visit, { settings: state }, status)
    }
  }),
  form(CLIENT_SETTINGS_PATH, 'client.set', setClients, { confirmed: true }),
]

async function setClients(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const clients = CLIENT_MODES.find((each) => each === fields.text('mode'))
  const switches = { apiClients: fields.text('api') === 'on', alertPeople: fields.text('alerts') === 'on' }
  if (clients === undefined) {
    return organizationPage(visit, { clients: { values: fields, errors: { '': 'Choose what is kept' } } }, 400)
  }
  const before = stored(visit)
  if (keepsLess(before, { clients }) && fields.text('erase') !== 'yes') {
    return visit.page('Erase clients', PATH, EraseClients({ mode: clients, ...switches }))
  }
  const isSameMode = clientModeOf(before) === clients
  const { apiClients = false, alertPeople = false } = before
  const isSame = switches.apiClients === apiClients && switches.alertPeople === alertPeople
  if (isSameMode && isSame) return redirect(PATH)
  try {
    // Setting the mode again would be an entry in the audit log that nothing follows.
    await visit.change('client.set', isSameMode ? switches : { clients, ...switches })
    return redirect(`${PATH}?done=clients`)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return organizationPage(visit, { clients: state }, status)
  }
}

const settings = z.object({
  domain: z.string('Enter a domain').trim().min(1, 'Enter a domain'),
  evidenceWindowDays: z.coerce.number('Enter a number of days').int('Enter a whole number'),
})

interface Forms {
  readonly name?: FormState
  readonly settings?: FormState
  readonly clients?: FormState
}

function organizationPage(visit: Visit, { name, settings, clients }: Forms, status: number): Answer {
  const content = OrganizationPage({
    organization: stored(visit),
    nameForm: name ?? EMPTY_FORM,
    settingsForm: settings ?? EMPTY_FORM,
    clientsForm: clients ?? EMPTY_FORM,
    mayRename: visit.may('organization.rename'),
    maySet: visit.may('organization.set'),
    maySetClients: visit.may('client.set'),
    nowMs: visit.nowMs,
    done: visit.request.query.get('done') ?? '',
  })
  return visit.page('Organization', PATH, content, { status })
}

/** @throws Fault NOT_FOUND if the organization was removed meanwhile. */
function stored({ site, organization }: Visit): Organization {
  const found = site.store.environment.read(() => site.store.organizations.get(organization.id))
  if (found === undefined) throw new Fault('NOT_FOUND', 'The organization no longer exists')
  return found
}

export const AUDIT_ROUTES: readonly Route[] = [
  page('/audit-log', 'audit.read', (visit) => {
    const { nowMs, request } = visit
    const view = auditView(visit, AUDIT_ENTRIES_PER_PAGE)
    return visit.page('Audit log', '/audit-log', Audit({ view, query: request.query, nowMs }))
  }),
  csvFile({
    path: '/audit-log',
    access: 'audit.read',
    columns: ({ nowMs }) => auditColumns(nowMs),
    rows: (visit) => auditView(visit, CSV_ROWS_MAX + 1).rows,
  }),
]

const SCAN_FREQUENCY_PATH = '/scan-frequency'
const SCANS_SHOWN = 20

export const SCAN_FREQUENCY_ROUTES: readonly Route[] = [
  page(SCAN_FREQUENCY_PATH, 'organization.read', (visit) => {
    const { site, organization, nowMs, request } = visit
    const content = ScanFrequencyPage({
      frequency: organization.scanFrequency,
      nextScanMs: nextScanMs(organization, nowMs),
      scans: site.store.scans.newest(organization.id, SCANS_SHOWN),
      nowMs,
      maySet: visit.may('organization.set'),
      mayScan: visit.may('scan.request'),
      done: request.query.get('done') ?? '',
    })
    return visit.page('Scan Frequency', SCAN_FREQUENCY_PATH, content)
  }),
  csvFile({
    path: SCAN_FREQUENCY_PATH,
    access: 'organization.read',
    columns: ({ nowMs }) => scanColumns(nowMs),
    rows: ({ site, organization }) => site.store.scans.newest(organization.id, CSV_ROWS_MAX + 1),
  }),
  form(SCAN_FREQUENCY_PATH, 'organization.set', async (visit) => {
    const named = visit.request.fields.text('frequency')
    const scanFrequency = SCAN_FREQUENCIES.find((each) => each === named)
    if (scanFrequency === undefined) {
      throw new Fault(
        'USAGE',
        `Scan frequency: expected ${SCAN_FREQUENCIES.join(', ')}, found ${JSON.stringify(named)}`,
      )
    }
    await visit.change('organization.set', { scanFrequency })
    return redirect(`${SCAN_FREQUENCY_PATH}?done=set`)
  }),
]

const RETENTION_PATH = '/retention'

const days = (name: keyof Retention) => {
  const min = RETENTION_DAYS_MIN[name]
  const problem = `Enter a whole number from ${min} to ${RETENTION_DAYS_MAX}`
  return z.coerce.number(problem).int(problem).min(min, problem).max(RETENTION_DAYS_MAX, problem)
}
const retention = z.object({
  scanDays: days('scanDays'),
  auditDays: days('auditDays'),
  sourceDays: days('sourceDays'),
  clientDays: days('clientDays'),
})

export const RETENTION_ROUTES: readonly Route[] = [
  page(RETENTION_PATH, 'organization.read', (visit) => {
    const fields = new FormFields([...visit.request.query].filter(([name]) => name in RETENTION_DAYS_MIN))
    if (fields.without().length === 0) return retentionPage(visit, EMPTY_FORM, 200)
    const read = readForm(retention, fields)
    if ('state' in read) return retentionPage(visit, read.state, 400)
    return retentionPage(visit, { values: fields, errors: {} }, 200, read.data)
  }),
  form(RETENTION_PATH, 'retention.set', async (visit) => {
    const { fields } = visit.request
    const read = readForm(retention, fields)
    if ('state' in read) return retentionPage(visit, read.state, 400)
    try {
      const { clientDays, ...others } = read.data
      // Unchanged, clients are kept as long as the evidence, whatever its window is later.
      const isChanged = clientDays !== retentionOf(visit.organization).clientDays
      await visit.change('retention.set', isChanged ? read.data : others)
      return redirect(`${RETENTION_PATH}?done=set`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return retentionPage(visit, state, status)
    }
  }),
]

/** @param preview the retention whose effect the page shows */
function retentionPage(visit: Visit, state: FormState, status: number, preview?: Partial<Retention>): Answer {
  const { site, nowMs, request } = visit
  const { store } = site
  return site.store.environment.read(() => {
    const organization: Organization = store.organizations.get(visit.organization.id) ?? visit.organization
    const content = RetentionPage({
      retention: retentionOf(organization),
      form: state,
      preview: preview && expiredNow(store, organization.id, { ...retentionOf(organization), ...preview }, nowMs),
      maySet: visit.may('retention.set'),
      done: request.query.get('done') ?? '',
    })
    return visit.page('Retention', RETENTION_PATH, content, { status })
  })
}
