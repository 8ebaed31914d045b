import {
  type ClientList,
  clientList,
  type ListedClient,
  type ListedNames,
  listedNames,
  newSinceMs,
  searchedText,
} from '../../engine/admin/client-list.ts'
import { isPseudonym } from '../../engine/kernel/event/client.ts'
import { CLIENT_SUMMARIES_MAX, CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import { groupNamesOf } from '../../engine/scan/group-use.ts'
import { listedDiscovery } from '../../engine/scan/listed-discovery.ts'
import { namesText, spanText } from '../../engine/store/name-spans.ts'
import { type ClientMode, clientModeOf } from '../../engine/store/organizations.ts'
import { isUsed } from '../../registry/contact.ts'
import type { Platform } from '../../registry/platform.ts'
import { bytesColumn, ClientLink, namesColumns } from '../design/client-columns.tsx'
import { html } from '../design/html.ts'
import { CsvLink, FilterSearch, FilterSelect, Filters, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { countOf, countText, Empty, NO_VOLUME, Notice, PageHead, Risk } from '../design/parts.tsx'
import { type ChosenRange, isPast, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import {
  type Column,
  countColumn,
  csvOnly,
  type Sorting,
  sorted,
  sortingOf,
  Table,
  textColumn,
  timeColumn,
} from '../design/table.tsx'
import type { Visit } from '../http/visit.ts'

export const CLIENTS_PATH = '/clients'

/** A client of the list, with the names of its address. */
interface ClientListRow extends ListedClient {
  readonly names: ListedNames
}

interface ClientsView extends Omit<ClientList, 'clients'> {
  /** All that match, sorted. */
  readonly all: readonly ListedClient[]
  readonly rows: Paged<ClientListRow>
  readonly columns: readonly Column<ListedClient | ClientListRow>[]
  readonly sorting: Sorting
  readonly filters: ClientFilters
  readonly mode: ClientMode
  readonly windowDays: number
  /** The platforms in use, for the filter. */
  readonly platformNames: readonly string[]
  readonly groupNames: readonly string[]
  readonly query: URLSearchParams
}

interface ClientFilters {
  readonly search: string
  readonly platform: Platform | undefined
  readonly group: string
  readonly isNew: boolean
  readonly range: ChosenRange | undefined
}

/** The filters of the query: `q`, the range, `platform`, `group`, `new`. */
export function clientFilters(visit: Visit): ClientFilters {
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
export function clientsView(visit: Visit): ClientsView {
  const { site, organization, request, nowMs } = visit
  const { query } = request
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
  const columns = columnsOfRange(clientListColumns(nowMs), filters.range, nowMs)
  const sorting = sortingOf(columns, query, MOST_MATCHES)
  const all = sorted(clients, columns, sorting)
  const page = paged(all, query)
  const used = listedDiscovery(site.store, organization).platforms.filter(({ use }) => isUsed(use))
  return {
    ...{ ...rest, all, columns, sorting, filters, query },
    rows: { ...page, rows: withNames(visit, page.rows) },
    mode: clientModeOf(organization),
    windowDays: organization.evidenceWindowDays,
    platformNames: used.map(({ name }) => name).sort(),
    groupNames: groupNamesOf(site.store, organization),
  }
}

const MOST_MATCHES: Sorting = { by: 'matches', direction: 'descending' }

/** Of a range in the past, it is not known which platforms a client used in it: only the last use is stored. */
export function columnsOfRange<Row>(
  columns: readonly Column<Row>[],
  range: ChosenRange | undefined,
  nowMs: number,
): readonly Column<Row>[] {
  return isPast(range, nowMs) ? columns.filter(({ id }) => !OF_LAST_USE.has(id)) : columns
}

const OF_LAST_USE: ReadonlySet<string> = new Set(['platforms', 'risk', 'riskiest'])

export function withNames(visit: Visit, clients: readonly ListedClient[]): ClientListRow[] {
  const names = listedNames(visit.site.store, visit.organization.id, clientFilters(visit).search)
  return clients.map((each) => ({ ...each, names: names(each) }))
}

function clientListColumns(nowMs: number): readonly Column<ListedClient | ClientListRow>[] {
  const text = (id: string, name: string, of: (row: ClientListRow) => string) =>
    csvOnly(textColumn<ListedClient | ClientListRow>(id, name, (row) => ('names' in row ? of(row) : '')))
  return [
    {
      id: 'client',
      name: 'Client',
      cell: ClientCell,
      sort: ({ client }) => client,
      csv: ({ client }) => client,
    },
    text('kind', 'Kind', ({ isUser }) => (isUser ? 'user' : 'address')),
    text('addresses', 'Addresses', ({ addresses }) => addresses.join(' ')),
    ...namesColumns<ListedClient | ClientListRow>((row) => ('names' in row ? row.names : undefined)),
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
    { ...countColumn('matches', 'Matches', ({ matches }) => matches), wide: true },
    { ...countColumn('blocked', 'Blocked', ({ blocked }) => blocked), wide: true },
    bytesColumn('sent', 'Sent', ({ bytesSent }) => bytesSent),
    { ...bytesColumn('received', 'Received', ({ bytesReceived }) => bytesReceived), wide: true },
    csvOnly(timeColumn('first', 'First seen', nowMs, ({ firstSeenMs }) => firstSeenMs)),
    { ...timeColumn('last', 'Last seen', nowMs, ({ lastSeenMs }) => lastSeenMs), number: true, wide: true },
  ]
}

const NO_NAMES: ListedNames = { current: undefined, earlier: [], network: null, found: undefined }

/** The client, and in a second line its names and addresses. */
function ClientCell(row: ListedClient | ClientListRow) {
  const { client, isUser, addresses } = row
  const { found, network, ...names } = 'names' in row ? row.names : NO_NAMES
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

interface ClientsProps extends ClientsView {
  readonly nowMs: number
  /** The member may change what is kept of clients. */
  readonly maySet: boolean
}

/** The list of clients. */
export function Clients(props: ClientsProps) {
  const { rows, columns, sorting, query, nowMs, windowDays, mode, isMade, total } = props
  const { platform, range } = props.filters
  const isEmpty = !isMade || (total === 0 && platform === undefined && range === undefined)
  return (
    <>
      <PageHead title="Clients" about={`Who used AI platforms ${(range ?? lastDaysRange(windowDays, nowMs)).text}`}>
        {!isEmpty && <CsvLink path={CLIENTS_PATH} query={query} />}
      </PageHead>
      {query.get('done') === 'erased' && (
        <Notice title="The person is being erased">
          <p class="small">The scan that finishes it is requested. Until then, no page shows clients.</p>
        </Notice>
      )}
      {isEmpty ? (
        <NoClients mode={mode} isMade={isMade} maySet={props.maySet} />
      ) : (
        <>
          <ClientFiltersForm {...props} />
          {rows.total === 0 ? (
            <NothingFound {...props} />
          ) : (
            <div class="card">
              <Table id="clients" label="Clients" columns={columns} rows={rows.rows} sorting={sorting} query={query} />
            </div>
          )}
          <NumberedPages of={rows} query={query} />
          <Remarks {...props} />
        </>
      )}
    </>
  )
}

function NoClients({ mode, isMade, maySet }: Pick<ClientsProps, 'mode' | 'isMade' | 'maySet'>) {
  const reason =
    mode === 'off'
      ? 'Use is counted without who it was.'
      : isMade
        ? 'No event of the evidence window has a client.'
        : 'The next scan makes the list.'
  return (
    <Empty title={mode === 'off' ? 'This organization keeps no clients' : 'No client is listed yet'}>
      <p class="muted">{reason}</p>
      {mode !== 'off' && (
        <a class="button first" href="/sources">
          See what arrives
        </a>
      )}
      {maySet && (
        <a class="button" href="/organization-settings#clients">
          Change what is kept of clients
        </a>
      )}
    </Empty>
  )
}

function ClientFiltersForm({
  filters,
  rows,
  total,
  sorting,
  query,
  platformNames,
  groupNames,
  windowDays,
  nowMs,
}: ClientsProps) {
  const { search, platform, group, isNew, range } = filters
  const found = rows.total === total ? `all ${countText(total)}` : `${countText(rows.total)} of ${countText(total)}`
  const chosen = platform?.name ?? ''
  const names = chosen === '' || platformNames.includes(chosen) ? platformNames : [chosen, ...platformNames]
  return (
    <Filters action={CLIENTS_PATH} found={found}>
      {query.has('sort') && (
        <input type="hidden" name="sort" value={`${sorting.direction === 'descending' ? '-' : ''}${sorting.by}`} />
      )}
      <FilterSearch value={search} label="User, host, address or network" />
      <RangeFields range={range} windowDays={windowDays} nowMs={nowMs} />
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

function NothingFound({ filters: { search, platform, group, isNew, range }, total }: ClientsProps) {
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

function Remarks({ all, filters: { platform }, others, mode }: ClientsProps) {
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
      {mode === 'pseudonym' && <p>Clients are pseudonyms. A whole address or user name finds its own.</p>}
    </div>
  )
}
