import { type PlatformDay, type PlatformUse, platformUse } from '../../engine/admin/client-use.ts'
import type { ClientReading } from '../../engine/admin/clients.ts'
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
import { CsvLink, FilterSearch, Filters, type Paged, PagedTable, paged } from '../design/list.tsx'
import { Card, countOf, countText, Empty, Notice, PageHead, PlatformLink, Time } from '../design/parts.tsx'
import { type ChosenRange, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import { type Column, type Sorting, sorted, sortingOf, textColumn } from '../design/table.tsx'
import { csvTable } from '../http/csv.ts'
import { auditedPage, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { NoClients } from './list.tsx'

/** A client of a platform, with the names of its address in the time of its use. */
interface ClientRow extends ClientUse {
  readonly names: AddressNames
}

/** @throws Fault NOT_FOUND. */
export function registeredPlatform({ site, organization }: Visit, name: string): Platform {
  const platform = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (platform !== undefined) return platform
  throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the registry`)
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
function clientsOfPlatform(visit: Visit, name: string): ClientRow[] {
  const { clients, otherMatches } = useOf(visit, name)
  const search = searchOf(visit)
  const rows = filtered(clientRows(visit, clients), search)
  return search === '' && otherMatches > 0 ? [...rows, { ...OTHERS, matches: otherMatches }] : rows
}

const OTHERS: ClientRow = {
  names: { current: undefined, earlier: [], network: null },
  ...{ client: 'others', user: '', methods: [], access: [], matches: 0 },
  ...{ used: Number.NaN, blocked: Number.NaN, touched: Number.NaN },
  ...{ firstSeenMs: 0, lastSeenMs: 0, bytesSent: 0, bytesReceived: 0, days: 0 },
}

function searchOf({ request }: Visit): string {
  return (request.query.get('q') ?? '').trim().slice(0, 100)
}

function rangeOfVisit({ organization, request, nowMs }: Visit): ChosenRange | undefined {
  return rangeOf(request.query, organization.evidenceWindowDays, nowMs)
}

function useOf(visit: Visit, name: string): PlatformUse {
  const { site, organization, nowMs } = visit
  return platformUse(site.store, organization, registeredPlatform(visit, name).id, nowMs, rangeOfVisit(visit))
}

/** The order of PlatformUse. */
const MOST_MATCHES: Sorting = { by: '', direction: 'descending' }

/** Only a search needs the names of all clients. */
function pageOfClients(visit: Visit, use: PlatformUse, search: string): Paged<ClientRow> {
  const { query } = visit.request
  const sorting = sortingOf(COLUMNS, query, MOST_MATCHES)
  if (search !== '') return paged(sorted(filtered(clientRows(visit, use.clients), search), COLUMNS, sorting), query)
  // Names are not sorted by.
  const page = paged(sorted(use.clients as ClientRow[], COLUMNS, sorting), query)
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
  readonly visit: Visit
  readonly platform: Platform
  readonly use: PlatformUse
}

/** Who uses a platform. The query's `q` filters the clients. */
function PlatformClients(props: PlatformClientsProps) {
  const { visit, platform, use } = props
  const { site, organization, nowMs } = visit
  const { name } = platform
  const range = rangeOfVisit(visit)
  const when = (range ?? lastDaysRange(organization.evidenceWindowDays, nowMs)).text
  const isApproved = site.store.decisions.inForce(organization.id, nowMs).states.get(platform.id) === 'approved'
  const blocked = use.days.reduce((sum, day) => sum + day.blocked, 0)
  const mode = clientModeOf(organization)
  const path = platformClientsPath(name)
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href="/platforms">Platforms</a> / <PlatformLink name={name} />
          </>
        }
        title={`Who uses ${name}`}
        about={
          use.matches === 0 ? undefined : (
            <span class="facts">
              <span>
                {clientsText(use, mode)}, {countOf(use.matches, 'match', 'matches')} {when}
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
        {use.clients.length > 0 && <CsvLink path={path} query={visit.request.query} />}
      </PageHead>
      {mode === 'pseudonym' && use.clients.length > 0 && (
        <Notice tone="warn" title="This organization stores clients as pseudonyms">
          <p class="small">The page of a pseudonym reveals it to owners. The audit log records that.</p>
        </Notice>
      )}
      {use.matches === 0 ? (
        <Empty title={`Nobody used ${name} ${when}`}>
          <p class="muted">Use appears here after the next scan that finds it.</p>
          <a class="button" href={range === undefined ? '/platforms' : path}>
            {range === undefined ? 'Show all platforms' : 'Show all days'}
          </a>
        </Empty>
      ) : (
        <>
          {use.clients.length === 0 ? (
            <NoClients
              visit={visit}
              reason="The next scan of new events stores clients. The retention may have removed them."
            />
          ) : (
            <Clients {...props} />
          )}
          <Card title="Matches per day" note={<CsvLink path={`${path}-days`} />}>
            <figure>
              <Timeline
                days={daysOf(use, isApproved, dayOf(nowMs))}
                label={`Matches of ${name} per day`}
                unit="match"
                units="matches"
              />
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

function clientsText({ clientsTotal, clients }: PlatformUse, mode: ClientMode): string {
  const users = clients.filter(({ used }) => used !== 0).length
  const isEstimate = clientsTotal > users && clientsTotal > 256
  // The estimate may be less than the list has.
  const total = Math.max(clientsTotal, users)
  return mode === 'off' ? 'clients are not kept' : `${isEstimate ? 'about ' : ''}${countOf(total, 'client')}`
}

function Clients({ visit, platform, use }: PlatformClientsProps) {
  const { organization, nowMs } = visit
  const path = platformClientsPath(platform.name)
  const search = searchOf(visit)
  const rows = pageOfClients(visit, use, search)
  const all = search === '' ? 'all ' : ''
  return (
    <>
      <Filters
        action={path}
        found={`${all}${countText(rows.total)}${search === '' ? '' : ` of ${countText(use.clients.length)}`}`}
      >
        <FilterSearch value={search} />
        <RangeFields range={rangeOfVisit(visit)} windowDays={organization.evidenceWindowDays} nowMs={nowMs} />
      </Filters>
      <PagedTable
        {...{ visit, id: 'clients', label: 'Clients', columns: COLUMNS, rows }}
        sorting={sortingOf(COLUMNS, visit.request.query, MOST_MATCHES)}
        empty={
          <Empty title="No client matches">
            <p>
              <a href={path}>Show all clients</a>
            </p>
          </Empty>
        }
      />
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

const COLUMNS: readonly Column<ClientRow>[] = [
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
  ...useColumns<ClientRow>(),
]

const USE_DAY_COLUMNS: readonly Column<PlatformDay>[] = [
  { id: 'day', name: 'Day', csv: ({ day }) => dayText(day) },
  { id: 'clients', name: 'Clients', csv: ({ clients }) => clients },
  { id: 'used', name: 'Used', csv: ({ used }) => used },
  { id: 'blocked', name: 'Blocked', csv: ({ blocked }) => blocked },
  { id: 'touched', name: 'Touched', csv: ({ touched }) => touched },
]

const PATH = '/platforms/:name/clients'

export const PLATFORM_CLIENT_ROUTES: readonly Route[] = [
  auditedPage(PATH, platformReading, (visit, { name }) => {
    const platform = registeredPlatform(visit, name)
    const content = PlatformClients({ visit, platform, use: useOf(visit, name) })
    return visit.page(`Who uses ${name}`, '/platforms', content)
  }),
  auditedPage(`${PATH}.csv`, platformReading, (visit, { name }) =>
    csvTable('platform-clients', COLUMNS, clientsOfPlatform(visit, name)),
  ),
  auditedPage(`${PATH}-days.csv`, platformReading, (visit, { name }) =>
    csvTable('platform-days', USE_DAY_COLUMNS, useOf(visit, name).days),
  ),
]

/** @throws Fault NOT_FOUND. */
export function platformReading(visit: Visit, { name }: { readonly name: string }): ClientReading {
  return { platform: registeredPlatform(visit, name).name }
}
