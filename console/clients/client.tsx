import { isClientKnown, storedClient, type UseOfClient, useOfClient } from '../../engine/admin/client-use.ts'
import type { ClientReading, Revealed } from '../../engine/admin/clients.ts'
import { type PersonRow, personOf, personRows } from '../../engine/admin/persons.ts'
import { isPseudonym } from '../../engine/kernel/event/client.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENTS_PER_DAY_MAX } from '../../engine/limits.ts'
import { groupsOf } from '../../engine/scan/group-use.ts'
import { firstDayOfWindow } from '../../engine/scan/prepare.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { type NameSpan, namesText, spanTimes } from '../../engine/store/name-spans.ts'
import { DAY_COLUMNS, type DayBar, daysText, Key, Timeline } from '../design/chart.tsx'
import { ClientLink, clientText, useColumns } from '../design/client-columns.tsx'
import { Form } from '../design/form.tsx'
import { CsvLink } from '../design/list.tsx'
import {
  Card,
  countOf,
  lastDays,
  Notice,
  PageHead,
  PlatformLink,
  SecretText,
  StateTag,
  Tag,
  Time,
  volumeText,
} from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvTable } from '../http/csv.ts'
import { auditedPage, changeForm, form, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { groupPath } from './groups.tsx'

/** The use of one platform by the client. */
interface UseRow extends ClientUse {
  readonly platform: string
  readonly state: DecisionState
  /** The platform is in the registry, so it has a page. */
  readonly isRegistered: boolean
}

/**
 * The client as it is stored: an address is one in its canonical form, or its pseudonym.
 *
 * @throws Fault NOT_FOUND if there is no use by it
 */
function knownClient(visit: Visit, text: string): string {
  const { site, organization, nowMs } = visit
  const client = storedClient(site.store, organization, text)
  if (isClientKnown(site.store, organization, client, nowMs)) return client
  const { clientSummaries } = site.store
  const isListed = [true, false].some((isUser) => clientSummaries.get(organization.id, client, isUser))
  const kept = `The platforms of ${JSON.stringify(text)} are not kept: of each platform and day, those of the ${CLIENTS_PER_DAY_MAX} clients with the most matches are`
  throw new Fault('NOT_FOUND', isListed ? kept : `No use by ${JSON.stringify(text)} in the evidence window`)
}

/** What a client uses. `client` is the text that is stored. */
function clientView(visit: Visit, client: string) {
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
    /** The names of the address in the time of its use; '' if it had none. */
    name: namesText(names),
    spans: store.clientNames.spansOf(organization.id, client).toReversed(),
    network: network ?? '',
    /** Of a user: the addresses that it used last. */
    addresses,
    /** Of an address: the users that logs name there, those of the last days first, with the days. */
    users: [...use.users].sort(([, first], [, second]) => (second.at(-1) ?? 0) - (first.at(-1) ?? 0)),
    group: groupsOf(store, organization).groupOf({ client, isUser: summary !== undefined, addresses }) ?? '',
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
  readonly visit: Visit
  readonly view: ReturnType<typeof clientView>
  readonly form: FormState
  /** The pseudonym that was just revealed. One page shows it, once. */
  readonly revealed: Revealed | undefined
}

/** What one client uses. */
function Client(props: ClientProps) {
  const { visit, view, form, revealed } = props
  const { client, name, network, group, rows, days, spans, users } = view
  const { nowMs, organization } = visit
  const path = clientPath(client)
  const sumOf = (key: 'bytesSent' | 'bytesReceived'): number => rows.reduce((sum, row) => sum + row[key], 0)
  const platforms = new Set(rows.map(({ platform }) => platform)).size
  const named = users.length > USERS_SHOWN_MAX ? `${USERS_SHOWN_MAX} of ${countOf(users.length, 'user')}` : 'them'
  return (
    <>
      <PageHead
        crumb={<a href={CLIENTS_PATH}>Clients</a>}
        title={client}
        about={
          <span class="facts">
            {isPseudonym(client) && <Tag>pseudonym</Tag>}
            {name !== '' && <span>{name}</span>}
            {network !== '' && <span>{network}</span>}
            {group !== '' && group !== network && <a href={groupPath(group)}>{group}</a>}
            <span>
              {countOf(platforms, 'platform')} in the {lastDays(organization.evidenceWindowDays)}
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
      {revealed !== undefined && (
        <Notice title={`This ${revealed.kind} is`}>
          <SecretText id="revealed" value={revealed.text} />
          <p class="small">The audit log has who revealed it, and when.</p>
        </Notice>
      )}
      {isPseudonym(client) && visit.may('client.reveal') && revealed === undefined && (
        <Card title="Reveal the pseudonym" note="for owners, once in each answer">
          <Form action={`${path}/reveal`} form={form} submit="Reveal" look="plain">
            <p class="muted">This shows the address or the name of a person. The audit log records it.</p>
          </Form>
        </Card>
      )}
      <Card title="Platforms" bare>
        <Table visit={visit} id="platforms" label="Platforms" columns={COLUMNS} rows={rows} />
      </Card>
      {spans.length > 0 && (
        <Card title="Names of this address" bare>
          <Table visit={visit} id="names" label="Names" columns={SPAN_COLUMNS} rows={spans} />
        </Card>
      )}
      {users.length > 0 && (
        <Card title="Users at this address" note={`logs named ${named} on these days (UTC)`} bare>
          <Table
            {...{ visit, id: 'users', label: 'Users', columns: USER_COLUMNS }}
            rows={users.slice(0, USERS_SHOWN_MAX)}
          />
        </Card>
      )}
      {visit.may('client.erase') && <PersonData path={path} addresses={view.addresses} />}
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
function PersonData({ path, addresses }: { readonly path: string; readonly addresses: readonly string[] }) {
  const also = addresses.length > 0 && (
    <label class="check">
      <input type="checkbox" name="addresses" value="yes" />
      Also the addresses {addresses.join(', ')}
    </label>
  )
  return (
    <Card title="Data of this person" note="for owners, in the audit log">
      <div class="stack">
        <Form action={`${path}/export`} submit="Export" look="plain">
          <p class="muted">A file with use, events that wait, names, groups, and who looked it up.</p>
          {also}
        </Form>
        <details>
          <summary>Erase</summary>
          <Form action={`${path}/erase`} submit="Erase permanently" look="danger">
            <p class="muted">
              This cannot be undone. Counts stay the same. Backups, saved reports, and events in outboxes of collectors
              keep their data. The list of clients returns with the next scan.
            </p>
            {also}
          </Form>
        </details>
      </div>
    </Card>
  )
}

/** Of a CSV file. */
const PERSON_COLUMNS: readonly Column<PersonRow>[] = [
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

const COLUMNS: readonly Column<UseRow>[] = [
  {
    id: 'platform',
    name: 'Platform',
    cell: ({ platform, isRegistered }) => (isRegistered ? PlatformLink({ name: platform }) : platform),
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
  ...useColumns<UseRow>(),
]

const CLIENTS_PATH = '/clients'
const PATH = `${CLIENTS_PATH}/:client` as const

function clientPath(client: string): string {
  return `${CLIENTS_PATH}/${encodeURIComponent(client)}`
}

/** That there is no use by a client is an answer, too, so it is recorded before the search. */
export function clientReading({ site, organization }: Visit, { client }: { readonly client: string }): ClientReading {
  return { client: storedClient(site.store, organization, client) }
}

export const CLIENT_ROUTES: readonly Route[] = [
  auditedPage(PATH, clientReading, (visit, { client }) => clientPage(visit, client, EMPTY_FORM)),
  auditedPage(`${PATH}/platforms.csv`, clientReading, (visit, { client }) =>
    csvTable('client-platforms', COLUMNS, clientView(visit, knownClient(visit, client)).rows),
  ),
  auditedPage(`${PATH}/days.csv`, clientReading, (visit, { client }) =>
    csvTable('client-days', DAY_COLUMNS, clientView(visit, knownClient(visit, client)).days),
  ),
  form(`${PATH}/reveal`, 'client.reveal', reveal, {
    confirmed: true,
    again: (visit, state, { client }) => clientPage(visit, client, state),
  }),
  form(
    `${PATH}/export`,
    'client.export',
    async (visit, given) => {
      const { site, organization } = visit
      const person = personIn(visit, given.client)
      await visit.change('client.export', { person })
      const rows = site.store.environment.read(() => personRows(site.store, organization, person))
      return csvTable('person', PERSON_COLUMNS, rows)
    },
    { confirmed: true },
  ),
  changeForm(
    `${PATH}/erase`,
    'client.erase',
    ({ client }, visit) => ({ person: personIn(visit, client) }),
    `${CLIENTS_PATH}?done=erased`,
    { confirmed: true },
  ),
]

/** The client of the page, and its addresses if the form says so. */
function personIn(visit: Visit, client: string): string[] {
  const { site, organization, request } = visit
  return site.store.environment.read(() => {
    const known = knownClient(visit, client)
    return personOf(site.store, organization, [known], request.fields.text('addresses') !== '')
  })
}

async function reveal(visit: Visit, given: { readonly client: string }): Promise<Answer> {
  await visit.change('client.read', clientReading(visit, given))
  // Only pseudonyms of this organization that its evidence has.
  const pseudonym = visit.site.store.environment.read(() => knownClient(visit, given.client))
  const revealed = await visit.change('client.reveal', { pseudonym })
  return visit.redirectToShow(clientPath(pseudonym), revealed satisfies Revealed)
}

function clientPage(visit: Visit, text: string, form: FormState): Answer {
  const revealed = visit.shownOnce<Revealed>()
  const client = knownClient(visit, text)
  const content = Client({ visit, view: clientView(visit, client), form, revealed })
  return visit.page(client, CLIENTS_PATH, content, { form, showsSecret: revealed !== undefined })
}
