import { isClientKnown, storedClient, type UseOfClient, useOfClient } from '../../engine/admin/client-use.ts'
import type { Revealed } from '../../engine/admin/clients.ts'
import type { PersonRow } from '../../engine/admin/persons.ts'
import { isPseudonym } from '../../engine/kernel/event/client.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import { groupsOf } from '../../engine/scan/group-use.ts'
import { firstDayOfWindow } from '../../engine/scan/prepare.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { type NameSpan, namesText, spanTimes } from '../../engine/store/name-spans.ts'
import { type DayBar, daysText, Key, Timeline } from '../design/chart.tsx'
import { ClientLink, clientText, useColumns } from '../design/client-columns.tsx'
import { StateTag } from '../design/decision.tsx'
import { FormError } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import { Card, countOf, lastDays, Notice, PageHead, SecretText, Tag, Time, volumeText } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn } from '../design/table.tsx'
import type { FormState } from '../form.ts'
import type { Visit } from '../http/visit.ts'
import { groupPath } from './groups.tsx'

/** The use of one platform by the client. */
interface UseRow extends ClientUse {
  readonly platform: string
  readonly state: DecisionState
  /** The platform is in the registry, so it has a page. */
  readonly isRegistered: boolean
}

interface ClientView {
  /** An address, a pseudonym or a user name, as it is stored. */
  readonly client: string
  readonly isPseudonym: boolean
  /** The names of the address in the time of its use; '' if it had none. */
  readonly name: string
  /** All names of the address, the newest first. */
  readonly spans: readonly NameSpan[]
  readonly network: string
  /** '' if it is in none. */
  readonly group: string
  /** Of a user: the addresses that it used last. */
  readonly addresses: readonly string[]
  /** Of an address: the users that logs name there, those of the last days first, with the days. */
  readonly users: readonly UserDays[]
  readonly windowDays: number
  /** Most matches first. */
  readonly rows: readonly UseRow[]
  /** Platforms that the client used, on each day of the evidence window. */
  readonly days: readonly DayBar[]
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

/**
 * The client as it is stored: an address is one in its canonical form, or its pseudonym.
 *
 * @throws Fault NOT_FOUND if there is no use by it
 */
export function knownClient(visit: Visit, text: string): string {
  const { site, organization, nowMs } = visit
  const client = storedClient(site.store, organization, text)
  if (isClientKnown(site.store, organization, client, nowMs)) return client
  const { clientSummaries } = site.store
  const isListed = [true, false].some((isUser) => clientSummaries.get(organization.id, client, isUser))
  const kept = `The platforms of ${JSON.stringify(text)} are not kept: of each platform and day, those of the ${CLIENTS_PER_DAY_MAX} clients with the most matches are`
  throw new Fault('NOT_FOUND', isListed ? kept : `No use by ${JSON.stringify(text)} in the evidence window`)
}

/** What a client uses. `client` is the text that is stored. */
export function clientView(visit: Visit, client: string): ClientView {
  const { site, organization, nowMs } = visit
  const { store, registry } = site
  const use = useOfClient(store, organization, client, nowMs)
  const platforms = new Map(registry.catalogOf(organization.id).platforms.map(({ id, name }) => [id, name]))
  const { states } = store.decisions.inForce(organization.id, nowMs)
  const stateOf = (id: string): DecisionState => states.get(id) ?? 'waiting'
  const firstSeenMs = Math.min(...use.platforms.map((each) => each.firstSeenMs))
  const lastSeenMs = Math.max(...use.platforms.map((each) => each.lastSeenMs))
  const { network, ...names } = store.clientNames.names(organization.id)(client, firstSeenMs, lastSeenMs)
  const summary = store.clientSummaries.get(organization.id, client, true)
  const addresses = summary?.addresses ?? []
  return {
    client,
    isPseudonym: isPseudonym(client),
    name: namesText(names),
    spans: store.clientNames.spansOf(organization.id, client).toReversed(),
    network: network ?? '',
    addresses,
    users: [...use.users].sort(([, first], [, second]) => (second.at(-1) ?? 0) - (first.at(-1) ?? 0)),
    group: groupsOf(store, organization).groupOf({ client, isUser: summary !== undefined, addresses }) ?? '',
    windowDays: organization.evidenceWindowDays,
    rows: use.platforms.map(({ platformId, ...row }) => ({
      ...row,
      platform: platforms.get(platformId) ?? platformId,
      state: stateOf(platformId),
      isRegistered: platforms.has(platformId),
    })),
    days: daysOf(visit, use, (id) => stateOf(id) === 'approved'),
    firstSeenMs,
    lastSeenMs,
  }
}

/** One bar for each day since the first use. */
function daysOf(
  { organization, nowMs }: Visit,
  { days }: UseOfClient,
  isApproved: (platformId: string) => boolean,
): readonly DayBar[] {
  const used = new Map(days.map((each) => [each.day, each.platformIds]))
  const bars: DayBar[] = []
  const first = Math.max(firstDayOfWindow(organization, nowMs), days[0]?.day ?? 0)
  for (let day = first; day <= dayOf(nowMs); day++) {
    const ids = used.get(day) ?? []
    const approved = ids.filter(isApproved).length
    bars.push({ day, approved, notApproved: ids.length - approved })
  }
  return bars
}

/** The file of platforms has all users. */
const USERS_SHOWN_MAX = 100

type UserDays = readonly [user: string, days: readonly number[]]

const USER_COLUMNS: readonly Column<UserDays>[] = [
  { id: 'user', name: 'User', cell: ([user]) => ClientLink({ client: user }) },
  { id: 'days', name: 'Days', cell: ([, days]) => daysText(days) },
]

const SPAN_COLUMNS: readonly Column<NameSpan>[] = [
  { id: 'name', name: 'Name', cell: ({ name }) => <span class="break">{name}</span> },
  { id: 'time', name: 'Time (UTC)', cell: (span) => spanTimes(span) || 'not limited' },
]

interface ClientProps {
  readonly view: ClientView
  readonly form: FormState
  readonly nowMs: number
  readonly mayReveal: boolean
  /** The member may export and erase what is stored about a person. */
  readonly mayErase: boolean
  /** The pseudonym that was just revealed. One page shows it, once. */
  readonly revealed: Revealed | undefined
}

/** What one client uses. */
export function Client(props: ClientProps) {
  const { view, nowMs, mayReveal, revealed } = props
  const { client, name, network, windowDays, rows, days } = view
  const path = `/clients/${encodeURIComponent(client)}`
  const sumOf = (key: 'bytesSent' | 'bytesReceived'): number => rows.reduce((sum, row) => sum + row[key], 0)
  const platforms = new Set(rows.map(({ platform }) => platform)).size
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/clients">Clients</a>
        </p>
        <PageHead
          title={client}
          about={
            <span class="facts">
              {view.isPseudonym && <Tag>pseudonym</Tag>}
              {name !== '' && <span>{name}</span>}
              {network !== '' && <span>{network}</span>}
              {view.group !== '' && view.group !== network && <a href={groupPath(view.group)}>{view.group}</a>}
              <span>
                {countOf(platforms, 'platform')} in the {lastDays(windowDays)}
              </span>
              <span>{volumeText({ bytesSent: sumOf('bytesSent'), bytesReceived: sumOf('bytesReceived') })}</span>
              <span>
                first seen <Time ms={view.firstSeenMs} nowMs={nowMs} />
              </span>
              <span>
                last seen <Time ms={view.lastSeenMs} nowMs={nowMs} />
              </span>
            </span>
          }
        >
          <CsvLink path={`${path}/platforms`} />
        </PageHead>
      </div>
      {revealed !== undefined && (
        <Notice title={`This ${revealed.kind} is`}>
          <SecretText id="revealed" value={revealed.text} />
          <p class="small">The audit log has who revealed it, and when.</p>
        </Notice>
      )}
      {view.isPseudonym && mayReveal && revealed === undefined && <Reveal {...props} path={path} />}
      <Card title="Platforms" bare>
        <Table id="platforms" label="Platforms" columns={useOfClientColumns(nowMs)} rows={rows} />
      </Card>
      {view.spans.length > 0 && (
        <Card title="Names of this address" bare>
          <Table id="names" label="Names" columns={SPAN_COLUMNS} rows={view.spans} />
        </Card>
      )}
      {view.users.length > 0 && (
        <Card
          title="Users at this address"
          note={`logs named ${view.users.length > USERS_SHOWN_MAX ? `${USERS_SHOWN_MAX} of ${countOf(view.users.length, 'user')}` : 'them'} on these days (UTC)`}
          bare
        >
          <Table id="users" label="Users" columns={USER_COLUMNS} rows={view.users.slice(0, USERS_SHOWN_MAX)} />
        </Card>
      )}
      {props.mayErase && <PersonData path={path} view={view} />}
      <Card title="Platforms per day" note={<CsvLink path={`${path}/days`} />}>
        <figure>
          <Timeline days={days} label="Platforms that the client used per day" unit="platform" />
          <figcaption>
            <Key tone="shadow">not approved</Key>
            <Key tone="approved">approved</Key>
          </figcaption>
        </figure>
      </Card>
    </>
  )
}

/** Exports and erases the person. The page asks once more before it erases. */
function PersonData({ path, view: { addresses } }: { readonly path: string; readonly view: ClientView }) {
  const also = addresses.length > 0 && (
    <label class="check">
      <input type="checkbox" name="addresses" value="yes" />
      Also the addresses {addresses.join(', ')}
    </label>
  )
  return (
    <Card title="Data of this person" note="for owners, in the audit log">
      <div class="stack">
        <form class="stack" method="post" action={`${path}/export`}>
          <p class="muted">A file with use, events that wait, names, groups, and who looked it up.</p>
          {also}
          <div>
            <button type="submit">Export</button>
          </div>
        </form>
        <details>
          <summary>Erase</summary>
          <form class="stack" method="post" action={`${path}/erase`}>
            <p class="muted">
              This cannot be undone. Counts stay the same. Backups, saved reports, and events in outboxes of collectors
              keep their data. The list of clients returns with the next scan.
            </p>
            {also}
            <div>
              <button class="danger" type="submit">
                Erase permanently
              </button>
            </div>
          </form>
        </details>
      </div>
    </Card>
  )
}

/** Of a CSV file. */
export const PERSON_COLUMNS: readonly Column<PersonRow>[] = [
  textColumn('kind', 'Kind', ({ kind }) => kind),
  textColumn('at', 'When', ({ at }) => at),
  textColumn('platform', 'Platform', ({ platform }) => platform),
  textColumn('client', 'Client', ({ client }) => client),
  textColumn('user', 'User', ({ user }) => user),
  countColumn('matches', 'Matches', ({ matches }) => matches),
  countColumn('sent', 'Bytes sent', ({ bytesSent }) => bytesSent),
  countColumn('received', 'Bytes received', ({ bytesReceived }) => bytesReceived),
  textColumn('text', 'About', ({ text }) => text),
]

function Reveal({ form, path }: ClientProps & { readonly path: string }) {
  return (
    <Card title="Reveal the pseudonym" note="for owners, once in each answer">
      <form class="stack" method="post" action={`${path}/reveal`}>
        <FormError form={form} />
        <p class="muted">This shows the address or the name of a person. The audit log records it.</p>
        <div>
          <button type="submit">Reveal</button>
        </div>
      </form>
    </Card>
  )
}

export function useOfClientColumns(nowMs: number): readonly Column<UseRow>[] {
  return [
    {
      id: 'platform',
      name: 'Platform',
      cell: ({ platform, isRegistered }) =>
        isRegistered ? <a href={`/platforms/${encodeURIComponent(platform)}`}>{platform}</a> : platform,
      csv: ({ platform }) => platform,
    },
    { id: 'decision', name: 'Decision', cell: StateTag, csv: ({ state }) => state, wide: true },
    {
      id: 'client',
      name: 'Client',
      cell: ({ client, user }) => (
        <div class="links">
          <p>{ClientLink({ client })}</p>
          {user !== '' && <p class="small break">{ClientLink({ client: user })}</p>}
        </div>
      ),
      csv: clientText,
      wide: true,
    },
    { id: 'user', name: 'User', csv: ({ user }) => user },
    ...useColumns<UseRow>(nowMs),
  ]
}
