import type { PlatformDay } from '../../engine/admin/client-use.ts'
import { dayText } from '../../engine/admin/scan-diff.ts'
import { CLIENTS_LISTED_MAX, CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import { Key, Timeline } from '../design/chart.tsx'
import { ClientLink, clientText, useColumns } from '../design/client-columns.tsx'
import { textColumn } from '../design/columns.tsx'
import { CsvLink } from '../design/csv-link.tsx'
import { FilterSearch, Filters } from '../design/filters.tsx'
import { NumberedPages } from '../design/pages-links.tsx'
import { Card, countOf, countText, Empty, lastDays, Notice, PageHead, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import type { ClientRow, PlatformClientsView } from '../views/platform-clients.ts'

export interface PlatformClientsProps {
  readonly view: PlatformClientsView
  readonly query: URLSearchParams
  readonly nowMs: number
  readonly maySet: boolean
}

export function platformClientsPath(platform: string): string {
  return `/platforms/${encodeURIComponent(platform)}/clients`
}

/** Who uses a platform. */
export function PlatformClients(props: PlatformClientsProps) {
  const { view, query, nowMs } = props
  const { platform, use, windowDays, mode, days, isApproved } = view
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
                  {clientsText(view)}, {countOf(use.matches, 'match', 'matches')} in the {lastDays(windowDays)}
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
        <Empty title={`Nobody used ${platform} in the ${lastDays(windowDays)}`}>
          <p class="muted">Use appears here after the next scan that finds it.</p>
          <a class="button" href="/platforms">
            Show all platforms
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
      </Filters>
      {rows.total === 0 ? (
        <Empty title="No client matches">
          <p>
            <a href={platformClientsPath(platform)}>Show all clients</a>
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table id="clients" label="Clients" columns={clientColumns(nowMs)} rows={rows.rows} />
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
      cell: ({ client, name, network }) => (
        <>
          {ClientLink({ client })}
          {name + network !== '' && (
            <p class="small muted break">{[name, network].filter((each) => each !== '').join(', ')}</p>
          )}
        </>
      ),
      csv: clientText,
    },
    { id: 'name', name: 'Name', csv: ({ name }) => name },
    { id: 'network', name: 'Network', csv: ({ network }) => network },
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
