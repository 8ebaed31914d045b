import { readGroups, storedGroups } from '../../engine/admin/client-groups.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { CLIENT_GROUP_MEMBERS_MAX, GROUP_PEOPLE_MIN } from '../../engine/limits.ts'
import { type GroupUse, groupUse } from '../../engine/scan/group-use.ts'
import { type ClientMode, clientModeOf } from '../../engine/store/organizations.ts'
import { bytesColumn } from '../design/client-columns.tsx'
import { FileContent, FormError } from '../design/form.tsx'
import { CsvLink, Filters, NumberedPages, type Paged, paged } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead } from '../design/parts.tsx'
import { type ChosenRange, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import {
  type Column,
  countColumn,
  csvOnly,
  type Sorting,
  sorted,
  sortingOf,
  Table,
  textColumn,
} from '../design/table.tsx'
import { EMPTY_FORM, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvTable } from '../http/csv.ts'
import { auditedPage, form, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { columnsOfRange } from './list.tsx'

const CLIENT_GROUPS_PATH = '/client-groups'
/** posture-admin client groups import reads larger files. */
const GROUPS_BYTES_MAX = 512 * 1024
/** In a form, one byte takes up to three. */
const GROUPS_FORM_BYTES_MAX = 3 * GROUPS_BYTES_MAX + 1024

const MOST_MATCHES: Sorting = { by: 'matches', direction: 'descending' }

export const GROUP_ROUTES: readonly Route[] = [
  auditedPage(CLIENT_GROUPS_PATH, listReading, (visit) => groupsPage(visit, EMPTY_FORM, 200)),
  auditedPage(`${CLIENT_GROUPS_PATH}.csv`, listReading, (visit) => {
    const { columns, all } = groupsView(visit)
    return csvTable('client-groups', columns, all)
  }),
  form(CLIENT_GROUPS_PATH, 'client.name', importGroups, { bodyBytesMax: GROUPS_FORM_BYTES_MAX }),
]

function listReading(): { readonly list: 'groups' } {
  return { list: 'groups' }
}

async function importGroups(visit: Visit): Promise<Answer> {
  const { site, organization, request } = visit
  const { fields } = request
  const text = fields.text('text')
  const again = (problem: string): Answer =>
    site.store.environment.read(() => groupsPage(visit, { values: fields, errors: { text: problem } }, 400))
  if (Buffer.byteLength(text) > GROUPS_BYTES_MAX) return again(`At most ${GROUPS_BYTES_MAX / 1024} KiB`)
  try {
    await visit.change('client.name', await storedGroups(site.store, organization, readGroups(text, 'groups')))
    return redirect(`${CLIENT_GROUPS_PATH}?done=imported`)
  } catch (error) {
    if (isFault(error, 'USAGE')) return again(error.message)
    const { state, status } = refusedForm(error, fields)
    return site.store.environment.read(() => groupsPage(visit, state, status))
  }
}

interface GroupsView {
  readonly all: readonly GroupUse[]
  readonly rows: Paged<GroupUse>
  readonly sorting: Sorting
  readonly columns: readonly Column<GroupUse>[]
  readonly range: ChosenRange | undefined
  readonly mode: ClientMode
}

function groupsView({ site, organization, request: { query }, nowMs }: Visit): GroupsView {
  const range = rangeOf(query, organization.evidenceWindowDays, nowMs)
  const columns = columnsOfRange(groupColumns(range), range, nowMs)
  const sorting = sortingOf(columns, query, MOST_MATCHES)
  const all = sorted(groupUse(site.store, organization, nowMs, range), columns, sorting)
  return { all, rows: paged(all, query), sorting, columns, range, mode: clientModeOf(organization) }
}

function groupsPage(visit: Visit, state: FormState, status: number): Answer {
  const { request, organization } = visit
  const content = Groups({
    ...groupsView(visit),
    windowDays: organization.evidenceWindowDays,
    nowMs: visit.nowMs,
    query: request.query,
    form: state,
    mayImport: visit.may('client.name'),
    done: request.query.get('done') ?? '',
  })
  return visit.page('Groups of clients', CLIENT_GROUPS_PATH, content, { status })
}

interface GroupsProps extends GroupsView {
  readonly windowDays: number
  readonly nowMs: number
  readonly query: URLSearchParams
  readonly form: FormState
  readonly mayImport: boolean
  readonly done: string
}

/** The list of the clients of a group. */
export function groupPath(group: string, range?: ChosenRange): string {
  return `/clients?${new URLSearchParams({ group, ...range?.query })}`
}

const groupColumns = (range: ChosenRange | undefined): readonly Column<GroupUse>[] => [
  {
    ...textColumn('group', 'Group', ({ name }: GroupUse) => name),
    cell: ({ name, isNetwork }) => (
      <>
        <a class="break" href={groupPath(name, range)}>
          {name}
        </a>
        {isNetwork && <p class="small muted">network</p>}
      </>
    ),
  },
  csvOnly(textColumn('kind', 'Kind', ({ isNetwork }) => (isNetwork ? 'network' : 'group'))),
  { ...textColumn('manager', 'Manager', ({ manager }: GroupUse) => manager), wide: true },
  { ...countColumn('members', 'Members', ({ members }) => members), wide: true },
  countColumn('clients', 'Clients', ({ clients }) => clients),
  countColumn('platforms', 'Platforms', ({ platformIds }) => platformIds.size),
  { ...countColumn('matches', 'Matches', ({ matches }) => matches), wide: true },
  { ...countColumn('blocked', 'Blocked', ({ blocked }) => blocked), wide: true },
  bytesColumn('sent', 'Sent', ({ bytesSent }) => bytesSent),
  { ...bytesColumn('received', 'Received', ({ bytesReceived }) => bytesReceived), wide: true },
]

/** The use of each group, and the form that replaces the groups. */
function Groups(props: GroupsProps) {
  const { rows, sorting, columns, range, query, mode, mayImport, done, windowDays, nowMs } = props
  return (
    <>
      <PageHead
        title="Groups of clients"
        about={`Departments, teams and named networks ${(range ?? lastDaysRange(windowDays, nowMs)).text}`}
      >
        {rows.total > 0 && <CsvLink path={CLIENT_GROUPS_PATH} query={query} />}
      </PageHead>
      {done === 'imported' && <Notice title="The groups are imported. They replace the ones before" />}
      {rows.total === 0 ? (
        <Empty title={mode === 'off' ? 'This organization keeps no clients' : 'There is no group yet'}>
          <p class="muted">
            {mode === 'off'
              ? 'Use is counted without who it was, so there are no groups.'
              : 'Import your departments or teams, or name your networks.'}
          </p>
        </Empty>
      ) : (
        <>
          <Filters action={CLIENT_GROUPS_PATH}>
            <RangeFields range={range} windowDays={windowDays} nowMs={nowMs} />
          </Filters>
          <div class="card">
            <Table id="groups" label="Groups" columns={columns} rows={rows.rows} sorting={sorting} query={query} />
          </div>
        </>
      )}
      <NumberedPages of={rows} query={query} />
      {mode === 'pseudonym' && (
        <p class="small muted">
          Members are stored as pseudonyms. Groups of fewer than {GROUP_PEOPLE_MIN} people are not shown.
        </p>
      )}
      {mayImport && mode !== 'off' && <ImportGroups {...props} />}
    </>
  )
}

function ImportGroups({ form: state }: GroupsProps) {
  return (
    <Card title="Import groups" note={`at most ${countText(CLIENT_GROUP_MEMBERS_MAX)} members`}>
      <form class="stack" method="post" action={CLIENT_GROUPS_PATH}>
        <FormError form={state} />
        <p class="small muted">
          A CSV line for each member: user or address as your logs write it, group, and optionally the mail address of
          its manager. An import replaces all groups. A change of what is kept of clients deletes them.
        </p>
        <FileContent
          form={state}
          accept=".csv,.txt"
          hint={`At most ${GROUPS_BYTES_MAX / 1024} KiB. posture-admin client groups import reads larger files.`}
        />
        <div>
          <button type="submit">Import Groups</button>
        </div>
      </form>
    </Card>
  )
}
