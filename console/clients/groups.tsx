import { readGroups, storedGroups } from '../../engine/admin/client-groups.ts'
import { CLIENT_GROUP_MEMBERS_MAX, GROUP_PEOPLE_MIN } from '../../engine/limits.ts'
import { type GroupUse, groupUse } from '../../engine/scan/group-use.ts'
import { clientModeOf } from '../../engine/store/organizations.ts'
import { bytesColumn } from '../design/client-columns.tsx'
import { FileContent, Form } from '../design/form.tsx'
import { CsvLink, Filters, PagedTable, paged } from '../design/list.tsx'
import { Card, countText, Empty, PageHead } from '../design/parts.tsx'
import { type ChosenRange, columnsOfRange, lastDaysRange, RangeFields, rangeOf } from '../design/range.tsx'
import { type Column, countColumn, csvOnly, type Sorting, sorted, sortingOf, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, fileText, formBytesMax } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvTable } from '../http/csv.ts'
import { auditedPage, form, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/client-groups'
/** posture-admin client groups import reads larger files. */
const GROUPS_BYTES_MAX = 512 * 1024

const MOST_MATCHES: Sorting = { by: 'matches', direction: 'descending' }

export const GROUP_ROUTES: readonly Route[] = [
  auditedPage(PATH, listReading, (visit) => groupsPage(visit, EMPTY_FORM)),
  auditedPage(`${PATH}.csv`, listReading, (visit) => {
    const { columns, all } = groupsView(visit)
    return csvTable('client-groups', columns, all)
  }),
  form(
    PATH,
    'client.name',
    async (visit) => {
      const { site, organization, request } = visit
      const text = fileText(request.fields, GROUPS_BYTES_MAX)
      const groups = await storedGroups(site.store, organization, readGroups(text, 'groups'))
      await visit.change('client.name', groups)
      return redirect(`${PATH}?done=imported`)
    },
    { bodyBytesMax: formBytesMax(GROUPS_BYTES_MAX), again: (visit, state) => groupsPage(visit, state) },
  ),
]

function listReading(): { readonly list: 'groups' } {
  return { list: 'groups' }
}

function groupsView({ site, organization, request: { query }, nowMs }: Visit) {
  const range = rangeOf(query, organization.evidenceWindowDays, nowMs)
  const columns = columnsOfRange(groupColumns(range), range, nowMs)
  const sorting = sortingOf(columns, query, MOST_MATCHES)
  return { all: sorted(groupUse(site.store, organization, nowMs, range), columns, sorting), columns, sorting, range }
}

function groupsPage(visit: Visit, form: FormState): Answer {
  const done = { imported: 'The groups are imported. They replace the ones before' }
  return visit.page('Groups of clients', PATH, Groups({ visit, form }), { form, done })
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
function Groups({ visit, form }: { readonly visit: Visit; readonly form: FormState }) {
  const { organization, nowMs } = visit
  const { query } = visit.request
  const { all, columns, sorting, range } = groupsView(visit)
  const rows = paged(all, query)
  const mode = clientModeOf(organization)
  const windowDays = organization.evidenceWindowDays
  return (
    <>
      <PageHead
        title="Groups of clients"
        about={`Departments, teams and named networks ${(range ?? lastDaysRange(windowDays, nowMs)).text}`}
      >
        {rows.total > 0 && <CsvLink path={PATH} query={query} />}
      </PageHead>
      {rows.total > 0 && (
        <Filters action={PATH}>
          <RangeFields range={range} windowDays={windowDays} nowMs={nowMs} />
        </Filters>
      )}
      <PagedTable
        {...{ visit, id: 'groups', label: 'Groups', columns, rows, sorting }}
        empty={
          <Empty title={mode === 'off' ? 'This organization keeps no clients' : 'There is no group yet'}>
            <p class="muted">
              {mode === 'off'
                ? 'Use is counted without who it was, so there are no groups.'
                : 'Import your departments or teams, or name your networks.'}
            </p>
          </Empty>
        }
      />
      {mode === 'pseudonym' && (
        <p class="small muted">
          Members are stored as pseudonyms. Groups of fewer than {GROUP_PEOPLE_MIN} people are not shown.
        </p>
      )}
      {visit.may('client.name') && mode !== 'off' && (
        <Card title="Import groups" note={`at most ${countText(CLIENT_GROUP_MEMBERS_MAX)} members`}>
          <Form action={PATH} form={form} submit="Import Groups" look="plain">
            <p class="small muted">
              A CSV line for each member: user or address as your logs write it, group, and optionally the mail address
              of its manager. An import replaces all groups. A change of what is kept of clients deletes them.
            </p>
            <FileContent
              form={form}
              accept=".csv,.txt"
              hint={`At most ${GROUPS_BYTES_MAX / 1024} KiB. posture-admin client groups import reads larger files.`}
            />
          </Form>
        </Card>
      )}
    </>
  )
}
