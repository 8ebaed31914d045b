import {
  clientList,
  type ListedClient,
  type ListedNames,
  listedNames,
  newSinceMs,
  searchedText,
} from '../../engine/admin/client-list.ts'
import type { ClientReading } from '../../engine/admin/clients.ts'
import { isPseudonym } from '../../engine/kernel/event/client.ts'
import { CLIENT_SUMMARIES_MAX, CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import { groupNamesOf } from '../../engine/scan/group-use.ts'
import { listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import { namesText, spanText } from '../../engine/store/name-spans.ts'
import { clientModeOf } from '../../engine/store/organizations.ts'
import { isUsed } from '../../registry/contact.ts'
import { bytesColumn, ClientLink, namesColumns } from '../design/client-columns.tsx'
import { html } from '../design/html.ts'
import { CsvLink, FilterSearch, FilterSelect, Filters, PagedTable, paged } from '../design/list.tsx'
import { countOf, countText, Empty, NO_VOLUME, PageHead, Risk } from '../design/parts.tsx'
import { columnsOfRange, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import { type Column, countColumn, csvOnly, type Sorting, sorted, sortingOf, timeColumn } from '../design/table.tsx'
import { csvTable } from '../http/csv.ts'
import { auditedPage, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { clientReading } from './client.tsx'

const CLIENTS_PATH = '/clients'

/** A client of the list, with the names of its address. */
interface ClientListRow extends ListedClient {
  readonly names: ListedNames
}

/** The filters of the query: `q`, the range, `platform`, `group`, `new`. */
function clientFilters(visit: Visit) {
  const { site, organization, request } = visit
  const { query } = request
  const name = query.get('platform') ?? ''
  return {
    search: (query.get('q') ?? '').trim().slice(0, 255),
    platform: site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name),
    group: query.get('group') ?? '',
    isNew: query.get('new') === '7',
    range: rangeOf(query, organization.evidenceWindowDays, visit.nowMs),
  }
}

/** The clients of an organization, filtered and sorted by the query. */
function clientsView(visit: Visit) {
  const { site, organization, request, nowMs } = visit
  const filters = clientFilters(visit)
  const filter = {
    search: filters.search,
    platformId: filters.platform?.id,
    sinceMs: filters.isNew ? newSinceMs(nowMs) : 0,
    range: filters.range,
    group: filters.group === '' ? undefined : filters.group,
  }
  const { platforms } = site.registry.catalogOf(organization.id)
  const { clients, ...rest } = clientList(site.store, organization, platforms, filter, nowMs)
  const columns = columnsOfRange(COLUMNS, filters.range, nowMs)
  const sorting = sortingOf(columns, request.query, MOST_MATCHES)
  return { ...rest, all: sorted(clients, columns, sorting), columns, sorting, filters }
}

type ClientsView = ReturnType<typeof clientsView>

const MOST_MATCHES: Sorting = { by: 'matches', direction: 'descending' }

function withNames(visit: Visit, clients: readonly ListedClient[]): ClientListRow[] {
  const names = listedNames(visit.site.store, visit.organization.id, clientFilters(visit).search)
  return clients.map((each) => ({ ...each, names: names(each) }))
}

/** Rows are sorted before they have names, which are read for one page. */
function text(id: string, name: string, of: (row: ClientListRow) => string): Column<ListedClient> {
  return { id, name, csv: (row) => of(row as ClientListRow) }
}

const COLUMNS: readonly Column<ListedClient>[] = [
  {
    id: 'client',
    name: 'Client',
    cell: (row) => ClientCell(row as ClientListRow),
    sort: ({ client }) => client,
    csv: ({ client }) => client,
  },
  text('kind', 'Kind', ({ isUser }) => (isUser ? 'user' : 'address')),
  text('addresses', 'Addresses', ({ addresses }) => addresses.join(' ')),
  ...namesColumns<ListedClient>((row) => (row as ClientListRow).names),
  countColumn('platforms', 'Platforms', ({ platforms }) => platforms),
  {
    id: 'risk',
    name: 'Highest risk',
    cell: ({ riskiest }) => {
      const platform = riskiest()
      return platform === undefined ? '' : Risk({ score: platform.score })
    },
    sort: ({ riskiest }) => riskiest()?.score ?? -1,
    csv: ({ riskiest }) => riskiest()?.score ?? '',
    number: true,
    wide: true,
  },
  text('riskiest', 'Platform with the highest risk', ({ riskiest }) => riskiest()?.name ?? ''),
  { ...countColumn('matches', 'Matches', ({ matches }: ListedClient) => matches), wide: true },
  { ...countColumn('blocked', 'Blocked', ({ blocked }: ListedClient) => blocked), wide: true },
  bytesColumn('sent', 'Sent', ({ bytesSent }) => bytesSent),
  { ...bytesColumn('received', 'Received', ({ bytesReceived }: ListedClient) => bytesReceived), wide: true },
  csvOnly(timeColumn('first', 'First seen', ({ firstSeenMs }) => firstSeenMs)),
  { ...timeColumn('last', 'Last seen', ({ lastSeenMs }: ListedClient) => lastSeenMs), number: true, wide: true },
]

/** The client, and in a second line its names and addresses. */
function ClientCell({ client, isUser, addresses, names: { found, network, ...names } }: ClientListRow) {
  const about = [
    namesText(names),
    found === undefined ? '' : `was ${spanText(found)}`,
    network,
    isUser && !isPseudonym(client) ? addressesText(addresses) : '',
  ]
    .filter(Boolean)
    .join(', ')
  return about === ''
    ? ClientLink({ client })
    : html`${ClientLink({ client })}<p class="small muted break">${about}</p>`
}

function addressesText(addresses: readonly string[]): string {
  const last = addresses.at(-1) ?? ''
  return addresses.length > 1 ? `${last} and ${addresses.length - 1} more` : last
}

interface ClientsProps {
  readonly visit: Visit
  readonly view: ClientsView
}

/** The list of clients. */
function Clients(props: ClientsProps) {
  const { visit, view } = props
  const { columns, sorting, isMade, total, all } = view
  const { platform, range } = view.filters
  const { organization, nowMs } = visit
  const { query } = visit.request
  const page = paged(all, query)
  const isEmpty = !isMade || (total === 0 && platform === undefined && range === undefined)
  const when = (range ?? lastDaysRange(organization.evidenceWindowDays, nowMs)).text
  return (
    <>
      <PageHead title="Clients" about={`Who used AI platforms ${when}`}>
        {!isEmpty && <CsvLink path={CLIENTS_PATH} query={query} />}
      </PageHead>
      {isEmpty ? (
        <NoClients
          visit={visit}
          reason={isMade ? 'No event of the evidence window has a client.' : 'The next scan makes the list.'}
        />
      ) : (
        <>
          <ClientFiltersForm {...props} />
          <PagedTable
            {...{ visit, id: 'clients', label: 'Clients', columns, sorting }}
            rows={{ ...page, rows: withNames(visit, page.rows) }}
            empty={<NothingFound {...view} />}
          />
          <Remarks {...props} />
        </>
      )}
    </>
  )
}

/** Why there are no clients, and what to do. */
export function NoClients({ visit, reason }: { readonly visit: Visit; readonly reason: string }) {
  const isOff = clientModeOf(visit.organization) === 'off'
  return (
    <Empty title={isOff ? 'This organization keeps no clients' : 'No client is listed yet'}>
      <p class="muted">{isOff ? 'Use is counted without who it was.' : reason}</p>
      {!isOff && (
        <a class="button first" href="/sources">
          See what arrives
        </a>
      )}
      {visit.may('client.set') && (
        <a class="button" href="/organization-settings#clients">
          Change what is kept of clients
        </a>
      )}
    </Empty>
  )
}

function ClientFiltersForm({ visit, view: { filters, all, total, sorting } }: ClientsProps) {
  const { site, organization, request, nowMs } = visit
  const used = listedDiscovery(site.store, organization).platforms.filter(({ use }) => isUsed(use))
  const platformNames = used.map(({ name }) => name).sort()
  const groupNames = groupNamesOf(site.store, organization)
  const { search, platform, group, isNew, range } = filters
  const found = all.length === total ? `all ${countText(total)}` : `${countText(all.length)} of ${countText(total)}`
  const chosen = platform?.name ?? ''
  const names = chosen === '' || platformNames.includes(chosen) ? platformNames : [chosen, ...platformNames]
  return (
    <Filters action={CLIENTS_PATH} found={found}>
      {request.query.has('sort') && (
        <input type="hidden" name="sort" value={`${sorting.direction === 'descending' ? '-' : ''}${sorting.by}`} />
      )}
      <FilterSearch value={search} label="User, host, address or network" />
      <RangeFields range={range} windowDays={organization.evidenceWindowDays} nowMs={nowMs} />
      <FilterSelect
        name="platform"
        label="Platform"
        value={chosen}
        options={[['', 'All'], ...names.map((name) => [name, name] as const)]}
      />
      {groupNames.length > 0 && (
        <FilterSelect
          name="group"
          label="Group"
          value={group}
          options={[['', 'All'], ...groupNames.map((name) => [name, name] as const)]}
        />
      )}
      <FilterSelect
        name="new"
        label="First seen"
        value={isNew ? '7' : ''}
        options={[
          ['', 'At any time'],
          ['7', 'In the last 7 days'],
        ]}
      />
    </Filters>
  )
}

function NothingFound({ filters: { search, platform, group, isNew, range }, total }: ClientsView) {
  const conditions = [
    search === '' ? '' : `matches ${JSON.stringify(search)}`,
    platform === undefined ? '' : `has a match of ${platform.name}`,
    group === '' ? '' : `is in the group ${JSON.stringify(group)}`,
    isNew ? 'was first seen in the last 7 days' : '',
    range === undefined ? '' : `was seen ${range.text}`,
  ]
  return (
    <Empty title={`No client ${conditions.filter((each) => each !== '').join(' and ')}`}>
      <p class="muted">
        {searchedText(total)}.
        {platform !== undefined &&
          ` Of each platform and day, the ${CLIENTS_PER_DAY_MAX} clients with the most matches are kept.`}
      </p>
      <p>
        <a href={CLIENTS_PATH}>Show all clients</a>
      </p>
    </Empty>
  )
}

function Remarks({ visit, view: { all, filters, others } }: ClientsProps) {
  const { platform } = filters
  const hasBytes = all.some(({ bytesSent, bytesReceived }) => bytesSent + bytesReceived > 0)
  return (
    <div class="small muted">
      {all.length > 0 && !hasBytes && <p>{NO_VOLUME}: no bytes of these clients are known.</p>}
      {platform !== undefined && (
        <p>Matches, blocked, bytes and times are those of {platform.name}; platforms and risk those of the client.</p>
      )}
      {others.matches > 0 && (
        <p>
          Others: {countOf(others.matches, 'match', 'matches')} of clients that are not listed. At most{' '}
          {countText(CLIENT_SUMMARIES_MAX)} clients are listed, those with the most matches.
        </p>
      )}
      {clientModeOf(visit.organization) === 'pseudonym' && (
        <p>Clients are pseudonyms. A whole address or user name finds its own.</p>
      )}
    </div>
  )
}

export const CLIENTS_ROUTES: readonly Route[] = [
  auditedPage(CLIENTS_PATH, listReading, (visit) => {
    const done = {
      erased: 'The person is being erased. The requested scan finishes it. Until then, no page shows clients',
    }
    return visit.page('Clients', CLIENTS_PATH, Clients({ visit, view: clientsView(visit) }), { done })
  }),
  auditedPage(`${CLIENTS_PATH}.csv`, listReading, (visit) => {
    const { all, columns } = clientsView(visit)
    return csvTable('clients', columns, withNames(visit, all))
  }),
]

function listReading(visit: Visit): ClientReading {
  const { search, platform } = clientFilters(visit)
  if (search !== '') return clientReading(visit, { client: search })
  return platform === undefined ? { list: 'clients' } : { platform: platform.name }
}
