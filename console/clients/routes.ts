import type { SpansByAddress } from '../../engine/admin/client-names.ts'
import { storedClient } from '../../engine/admin/client-use.ts'
import type { ClientReading, Revealed } from '../../engine/admin/clients.ts'
import { readHostNames } from '../../engine/admin/host-names-file.ts'
import { personOf, personRows } from '../../engine/admin/persons.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { clientModeOf } from '../../engine/store/organizations.ts'
import { DAY_COLUMNS } from '../design/chart.tsx'
import { paged } from '../design/list.tsx'
import { EMPTY_FORM, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile, csvTable } from '../http/csv.ts'
import { auditedPage, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Client, clientView, knownClient, PERSON_COLUMNS, useOfClientColumns } from './client.tsx'
import { GROUP_ROUTES } from './groups.tsx'
import { CLIENTS_PATH, Clients, clientFilters, clientsView, withNames } from './list.tsx'
import {
  CLIENT_NAMES_PATH,
  ClientNames,
  type ClientNamesProps,
  NAMES_BYTES_MAX,
  NETWORK_COLUMNS,
  NETWORKS_PATH,
} from './names.tsx'
import {
  clientColumns,
  clientsOfPlatform,
  PlatformClients,
  platformClientsView,
  registeredPlatform,
  USE_DAY_COLUMNS,
  useOf,
} from './of-platform.tsx'

/** In a form, one byte takes up to three. */
const NAMES_FORM_BYTES_MAX = 3 * NAMES_BYTES_MAX + 1024

export const CLIENT_ROUTES: readonly Route[] = [
  ...GROUP_ROUTES,
  auditedPage('/platforms/:name/clients', platformOf, (visit, { name }) => {
    const { nowMs, request } = visit
    const view = platformClientsView(visit, name)
    const content = PlatformClients({ view, query: request.query, nowMs, maySet: visit.may('client.set') })
    return visit.page(`Who uses ${name}`, '/platforms', content)
  }),
  auditedPage('/platforms/:name/clients.csv', platformOf, (visit, { name }) =>
    csvTable('platform-clients', clientColumns(visit.nowMs), clientsOfPlatform(visit, name)),
  ),
  auditedPage('/platforms/:name/clients-days.csv', platformOf, (visit, { name }) =>
    csvTable('platform-days', USE_DAY_COLUMNS, useOf(visit, name).days),
  ),
  auditedPage(CLIENTS_PATH, listReading, (visit) => {
    const content = Clients({ ...clientsView(visit), nowMs: visit.nowMs, maySet: visit.may('client.set') })
    return visit.page('Clients', CLIENTS_PATH, content)
  }),
  auditedPage(`${CLIENTS_PATH}.csv`, listReading, (visit) => {
    const { all, columns } = clientsView(visit)
    return csvTable('clients', columns, withNames(visit, all))
  }),
  auditedPage('/clients/:client', clientOf, (visit, { client }) => clientPage(visit, client, EMPTY_FORM, 200)),
  auditedPage('/clients/:client/platforms.csv', clientOf, (visit, { client }) => {
    const { rows } = clientView(visit, knownClient(visit, client))
    return csvTable('client-platforms', useOfClientColumns(visit.nowMs), rows)
  }),
  auditedPage('/clients/:client/days.csv', clientOf, (visit, { client }) =>
    csvTable('client-days', DAY_COLUMNS, clientView(visit, knownClient(visit, client)).days),
  ),
  form('/clients/:client/reveal', 'client.reveal', reveal, { confirmed: true }),
  form('/clients/:client/export', 'client.export', exportPerson, { confirmed: true }),
  form('/clients/:client/erase', 'client.erase', erasePerson, { confirmed: true }),
  csvFile({
    path: NETWORKS_PATH,
    access: 'client.read',
    columns: () => NETWORK_COLUMNS,
    rows: ({ site, organization }) => site.store.clientNames.networks(organization.id),
  }),
  page(CLIENT_NAMES_PATH, 'client.read', (visit) => namesPage(visit, {}, 200)),
  form(NETWORKS_PATH, 'client.name', async (visit) => {
    const { fields } = visit.request
    const [network, name] = [fields.text('network').trim(), fields.text('name').trim()]
    const errors: Record<string, string> = {}
    if (network === '') errors['network'] = 'Enter a network'
    if (name === '') errors['name'] = 'Enter a name'
    if (network === '' || name === '') return namesPage(visit, { networkForm: { values: fields, errors } }, 400)
    try {
      await visit.change('client.name', { network, name })
      return redirect(`${CLIENT_NAMES_PATH}?done=named`)
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return namesPage(visit, { networkForm: state }, status)
    }
  }),
  form(`${NETWORKS_PATH}/remove`, 'client.name', async (visit) => {
    await visit.change('client.name', { network: visit.request.fields.text('network'), name: undefined })
    return redirect(`${CLIENT_NAMES_PATH}?done=removed`)
  }),
  form(`${CLIENT_NAMES_PATH}/hosts`, 'client.name', importNames, { bodyBytesMax: NAMES_FORM_BYTES_MAX }),
]

/** @throws Fault NOT_FOUND. */
function platformOf(visit: Visit, { name }: { readonly name: string }): ClientReading {
  return { platform: registeredPlatform(visit, name).name }
}

/** That there is no use by a client is an answer, too, so it is recorded before the search. */
function clientOf({ site, organization }: Visit, { client }: { readonly client: string }): ClientReading {
  return { client: storedClient(site.store, organization, client) }
}

function listReading(visit: Visit): ClientReading {
  const { search, platform } = clientFilters(visit)
  if (search !== '') return clientOf(visit, { client: search })
  return platform === undefined ? { list: 'clients' } : { platform: platform.name }
}

async function importNames(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const text = fields.text('text')
  const again = (problem: string): Answer =>
    namesPage(visit, { namesForm: { values: fields, errors: { text: problem } } }, 400)
  if (text.trim() === '') return again('Enter names, or choose a file')
  if (Buffer.byteLength(text) > NAMES_BYTES_MAX) return again(`At most ${NAMES_BYTES_MAX / 1024} KiB`)
  let names: SpansByAddress
  try {
    names = readHostNames(text, 'names').names
  } catch (error) {
    if (isFault(error, 'USAGE')) return again(error.message)
    throw error
  }
  if (names.size === 0) return again('No line has an address and a name')
  try {
    await visit.change('client.name', { hosts: names })
    return redirect(`${CLIENT_NAMES_PATH}?done=imported`)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return namesPage(visit, { namesForm: state }, status)
  }
}

/** The client of the page, and its addresses if the form says so. */
function personIn(visit: Visit, client: string): string[] {
  const { site, organization, request } = visit
  return site.store.environment.read(() => {
    const known = knownClient(visit, client)
    return personOf(site.store, organization, [known], request.fields.text('addresses') !== '')
  })
}

async function exportPerson(visit: Visit, { client }: { readonly client: string }): Promise<Answer> {
  const { site, organization } = visit
  const person = personIn(visit, client)
  await visit.change('client.export', { person })
  const rows = site.store.environment.read(() => personRows(site.store, organization, person))
  return csvTable('person', PERSON_COLUMNS, rows)
}

async function erasePerson(visit: Visit, { client }: { readonly client: string }): Promise<Answer> {
  await visit.change('client.erase', { person: personIn(visit, client) })
  return redirect(`${CLIENTS_PATH}?done=erased`)
}

async function reveal(visit: Visit, { client }: { readonly client: string }): Promise<Answer> {
  const { fields } = visit.request
  await visit.change('client.read', clientOf(visit, { client }))
  // Only pseudonyms of this organization that its evidence has.
  const pseudonym = visit.site.store.environment.read(() => knownClient(visit, client))
  try {
    const revealed = await visit.change('client.reveal', { pseudonym })
    return visit.redirectToShow(clientPath(pseudonym), revealed satisfies Revealed)
  } catch (error) {
    if (isFault(error, 'SECRETS_KEY')) {
      return clientPage(visit, pseudonym, { values: fields, errors: { '': error.message } }, 503)
    }
    const { state, status } = refusedForm(error, fields)
    return clientPage(visit, pseudonym, state, status)
  }
}

function clientPath(client: string): string {
  return `${CLIENTS_PATH}/${encodeURIComponent(client)}`
}

function clientPage(visit: Visit, text: string, state: FormState, status: number): Answer {
  const revealed = visit.shownOnce<Revealed>()
  return visit.site.store.environment.read(() => {
    const client = knownClient(visit, text)
    const content = Client({
      view: clientView(visit, client),
      form: state,
      nowMs: visit.nowMs,
      mayReveal: visit.may('client.reveal'),
      mayErase: visit.may('client.erase'),
      revealed,
    })
    return visit.page(client, CLIENTS_PATH, content, { status, showsSecret: revealed !== undefined })
  })
}

function namesPage(
  visit: Visit,
  forms: Partial<Pick<ClientNamesProps, 'networkForm' | 'namesForm'>>,
  status: number,
): Answer {
  const { site, organization, request } = visit
  const { clientNames, environment } = site.store
  const content = environment.read(() =>
    ClientNames({
      networks: paged(clientNames.networks(organization.id), request.query),
      namesTotal: clientNames.hostsCount(organization.id),
      mode: clientModeOf(organization),
      query: request.query,
      ...{ networkForm: EMPTY_FORM, namesForm: EMPTY_FORM, ...forms },
      mayName: visit.may('client.name'),
      done: request.query.get('done') ?? '',
    }),
  )
  return visit.page('Names of clients', CLIENT_NAMES_PATH, content, { status })
}
