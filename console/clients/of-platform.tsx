import { type PlatformDay, type PlatformUse, platformUse } from '../../engine/admin/client-use.ts'
import { dayOf, dayText } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENTS_LISTED_MAX, CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import type { AddressNames } from '../../engine/store/client-names.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import { namesText } from '../../engine/store/name-spans.ts'
import { type ClientMode, clientModeOf } from '../../engine/store/organizations.ts'
import type { Platform } from '../../registry/platform.ts'
import { type DayBar, Key, Timeline } from '../design/chart.tsx'
import { ClientLink, clientText, namesColumns, platformClientsPath, useColumns } from '../design/client-columns.tsx'
import { CsvLink, FilterSearch, Filters, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { Card, countOf, countText, Empty, Notice, PageHead, Time } from '../design/parts.tsx'
import { type ChosenRange, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import { type Column, type Sorting, sorted, sortingOf, Table, textColumn } from '../design/table.tsx'
import type { Visit } from '../http/visit.ts'

/** A client of a platform, with the names of its address in the time of its use. */
interface ClientRow extends ClientUse {
  readonly names: AddressNames
}

interface PlatformClientsView {
  readonly platform: string
  readonly mode: ClientMode
  readonly windowDays: number
  readonly range: ChosenRange | undefined
  readonly use: PlatformUse
  /** Most matches first. */
  readonly rows: Paged<ClientRow>
  readonly search: string
  readonly isApproved: boolean
  /** Used and blocked matches on each day since the first. */
  readonly days: readonly DayBar[]
}

/** @throws Fault NOT_FOUND. */
export function registeredPlatform({ site, organization }: Visit, name: string): Platform {
  const platform = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (platform !== undefined) return platform
  throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the registry`)
}

/** Who uses a platform. The query's `q` filters the clients. */
export function platformClientsView(visit: Visit, name: string): PlatformClientsView {
  const { site, organization, request, nowMs } = visit
  const use = useOf(visit, name)
  const { states } = site.store.decisions.inForce(organization.id, nowMs)
  const isApproved = states.get(registeredPlatform(visit, name).id) === 'approved'
  const search = (request.query.get('q') ?? '').trim().slice(0, 100)
  return {
    platform: name,
    mode: clientModeOf(organization),
    windowDays: organization.evidenceWindowDays,
    range: rangeOfVisit(visit),
    use,
    rows: pageOfClients(visit, use, search),
    search,
    isApproved,
    days: daysOf(use, isApproved, dayOf(nowMs)),
  }
}

function daysOf({ days }: PlatformUse, isApproved: boolean, today: number): DayBar[] {
  const byDay = new Map(days.map((each) => [each.day, each]))
  const bars: DayBar[] = []
  for (let day = days[0]?.day ?? today; day <= today; day++) {
    const { used = 0, blocked = 0 } = byDay.get(day) ?? {}
    bars.push({ day, approved: isApproved ? used : 0, notApproved: isApproved ? 0 : used, blocked })
  }
  return bars
}

/**
 * All clients of a platform that the query's `q` finds. Without it, the last row is the sum of
 * those that are not listed.
 */
export function clientsOfPlatform(visit: Visit, name: string): ClientRow[] {
  const { clients, otherMatches } = useOf(visit, name)
  const search = (visit.request.query.get('q') ?? '').trim().slice(0, 100)
  const rows = filtered(clientRows(visit, clients), search)
  return search === '' && otherMatches > 0 ? [...rows, { ...OTHERS, matches: otherMatches }] : rows
}

const OTHERS: ClientRow = {
  names: { current: undefined, earlier: [], network: null },
  ...{ client: 'others', user: '', methods: [], access: [], matches: 0 },
  ...{ used: Number.NaN, blocked: Number.NaN, touched: Number.NaN },
  ...{ firstSeenMs: 0, lastSeenMs: 0, bytesSent: 0, bytesReceived: 0, days: 0 },
}

function rangeOfVisit({ organization, request, nowMs }: Visit): ChosenRange | undefined {
  return rangeOf(request.query, organization.evidenceWindowDays, nowMs)
}

export function useOf(visit: Visit, name: string): PlatformUse {
  const { site, organization, nowMs } = visit
  return platformUse(site.store, organization, registeredPlatform(visit, name).id, nowMs, rangeOfVisit(visit))
}

/** The order of PlatformUse. */
const MOST_MATCHES: Sorting = { by: '', direction: 'descending' }

/** Only a search needs the names of all clients. */
function pageOfClients(visit: Visit, use: PlatformUse, search: string): Paged<ClientRow> {
  const { query } = visit.request
  const columns = clientColumns(visit.nowMs)
  const sorting = sortingOf(columns, query, MOST_MATCHES)
  if (search !== '') return paged(sorted(filtered(clientRows(visit, use.clients), search), columns, sorting), query)
  // Names are not sorted by.
  const page = paged(sorted(use.clients as ClientRow[], columns, sorting), query)
  return { ...page, rows: clientRows(visit, page.rows) }
}

function clientRows({ site, organization }: Visit, clients: readonly ClientUse[]): ClientRow[] {
  const names = site.store.clientNames.names(organization.id)
  return clients.map((use) => ({ ...use, names: names(use.client, use.firstSeenMs, use.lastSeenMs) }))
}

function filtered(rows: readonly ClientRow[], search: string): ClientRow[] {
  const words = search.toLowerCase()
  return rows.filter(({ client, user, names: { current, earlier, network } }) => {
    const names = [current, ...earlier].map((span) => span?.name ?? '')
    return words === '' || [client, user, ...names, network].join(' ').toLowerCase().includes(words)
  })
}

interface PlatformClientsProps {
  readonly view: PlatformClientsView
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly maySet: boolean
}

/** Who uses a platform. */
export function PlatformClients(props: PlatformClientsProps) {
  const { view, query, nowMs } = props
  const { platform, use, windowDays, range, mode, days, isApproved } = view
  const when = (range ?? lastDaysRange(windowDays, nowMs)).text
  const blocked = use.days.reduce((sum, day) => sum + day.blocked, 0)
  const path = platformClientsPath(platform)
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/platforms">Platforms</a> / <a href={`/platforms/${encodeURIComponent(platform)}`}>{platform}</a>
        </p>
        <PageHead
          title={`Who uses ${platform}`}
          about={
            use.matches === 0 ? undefined : (
              <span class="facts">
                <span>
                  {clientsText(view)}, {countOf(use.matches, 'match', 'matches')} {when}
                </span>
                {use.detectedAtMs > 0 && (
                  <span>
                    first found <Time ms={use.detectedAtMs} nowMs={nowMs} />
                  </span>
                )}
                {use.lastSeenMs > 0 && (
                  <span>
                    last used <Time ms={use.lastSeenMs} nowMs={nowMs} />
                  </span>
                )}
              </span>
            )
          }
        >
          {use.clients.length > 0 && <CsvLink path={path} query={query} />}
        </PageHead>
      </div>
      {mode === 'pseudonym' && use.clients.length > 0 && (
        <Notice tone="warn" title="This organization stores clients as pseudonyms">
          <p class="small">The page of a pseudonym reveals it to owners. The audit log records that.</p>
        </Notice>
      )}
      {use.matches === 0 ? (
        <Empty title={`Nobody used ${platform} ${when}`}>
          <p class="muted">Use appears here after the next scan that finds it.</p>
          <a class="button" href={range === undefined ? '/platforms' : path}>
            {range === undefined ? 'Show all platforms' : 'Show all days'}
          </a>
        </Empty>
      ) : (
        <>
          <Clients {...props} />
          <Card title="Matches per day" note={<CsvLink path={`${path}-days`} />}>
            <figure>
              <Timeline days={days} label={`Matches of ${platform} per day`} unit="match" units="matches" />
              <figcaption>
                {isApproved ? <Key tone="approved">approved</Key> : <Key tone="shadow">not approved</Key>}
                {blocked > 0 && <Key tone="rest">blocked</Key>}
              </figcaption>
            </figure>
          </Card>
        </>
      )}
    </>
  )
}

function clientsText({ use: { clientsTotal, clients }, mode }: PlatformClientsView): string {
  const users = clients.filter(({ used }) => used !== 0).length
  const isEstimate = clientsTotal > users && clientsTotal > 256
  // The estimate may be less than the list has.
  const total = Math.max(clientsTotal, users)
  return mode === 'off' ? 'clients are not kept' : `${isEstimate ? 'about ' : ''}${countOf(total, 'client')}`
}

function Clients({ view, query, nowMs, maySet }: PlatformClientsProps) {
  const { platform, use, rows, search, mode } = view
  if (use.clients.length === 0) {
    return (
      <Empty title={mode === 'off' ? 'This organization keeps no clients' : 'No client is stored'}>
        <p class="muted">
          {mode === 'off'
            ? 'The use is counted without who it was.'
            : 'Clients are stored by the next scan of new events, or were removed by the retention.'}
        </p>
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
  return (
    <>
      <Filters
        action={platformClientsPath(platform)}
        found={
          search === ''
            ? `all ${countText(rows.total)}`
            : `${countText(rows.total)} of ${countText(use.clients.length)}`
        }
      >
        <FilterSearch value={search} />
        <RangeFields range={view.range} windowDays={view.windowDays} nowMs={nowMs} />
      </Filters>
      {rows.total === 0 ? (
        <Empty title="No client matches">
          <p>
            <a href={platformClientsPath(platform)}>Show all clients</a>
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table
            id="clients"
            label="Clients"
            columns={clientColumns(nowMs)}
            rows={rows.rows}
            sorting={sortingOf(clientColumns(nowMs), query, MOST_MATCHES)}
            query={query}
          />
        </div>
      )}
      <NumberedPages of={rows} query={query} />
      {use.otherMatches > 0 && (
        <p class="small muted">
          Others: {countOf(use.otherMatches, 'match', 'matches')} of clients that are not listed. At most{' '}
          {countText(CLIENTS_PER_DAY_MAX)} clients of a platform and day are kept, and {countText(CLIENTS_LISTED_MAX)}{' '}
          listed.
        </p>
      )}
    </>
  )
}

export function clientColumns(nowMs: number): readonly Column<ClientRow>[] {
  return [
    {
      id: 'client',
      name: 'Client',
      cell: ({ client, names }) => {
        const about = [namesText(names), names.network].filter(Boolean).join(', ')
        return (
          <>
            {ClientLink({ client })}
            {about !== '' && <p class="small muted break">{about}</p>}
          </>
        )
      },
      sort: ({ client }) => client,
      csv: clientText,
    },
    ...namesColumns<ClientRow>(({ names }) => names),
    {
      ...textColumn('user', 'User', ({ user }: ClientRow) => user),
      cell: ({ user }) => (user === '' ? '' : ClientLink({ client: user })),
    },
    ...useColumns<ClientRow>(nowMs),
  ]
}

export const USE_DAY_COLUMNS: readonly Column<PlatformDay>[] = [
  { id: 'day', name: 'Day', csv: ({ day }) => dayText(day) },
  { id: 'clients', name: 'Clients', csv: ({ clients }) => clients },
  { id: 'used', name: 'Used', csv: ({ used }) => used },
  { id: 'blocked', name: 'Blocked', csv: ({ blocked }) => blocked },
  { id: 'touched', name: 'Touched', csv: ({ touched }) => touched },
]
