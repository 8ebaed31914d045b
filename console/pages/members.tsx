import { type Member, ROLES } from '../../engine/store/members.ts'
import { Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, Table } from '../design/table.tsx'
import { TwoStep } from '../design/two-step.tsx'

export interface MembersProps {
  /** By name. */
  readonly members: readonly Member[]
  /** The name of the member who views the page. */
  readonly self: string
  readonly nowMs: number
  readonly maySetRole: boolean
  readonly mayRemove: boolean
  /** Why a change was rejected; '' if none was. */
  readonly error: string
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  role: 'The role is changed. It applies to the next request',
  removed: 'The member is removed, and sees nothing of this organization any more',
}

export function Members(props: MembersProps) {
  const { members, error, done } = props
  const title = DONE[done]
  return (
    <>
      <PageHead title="Members" about="People of this organization, and what each may do" />
      {error !== '' && <Notice tone="bad" title={error} />}
      {error === '' && title !== undefined && <Notice title={title} />}
      <div class="card">
        <Table id="members" label="Members" columns={columns(props)} rows={members} />
      </div>
      <p class="small muted">
        Viewers read findings. Members also answer assessments. Admins also approve platforms and manage keys, tokens
        and settings. Owners also manage members.
      </p>
    </>
  )
}

function columns({ self, nowMs, maySetRole, mayRemove }: MembersProps): readonly Column<Member>[] {
  const all: Column<Member>[] = [
    {
      id: 'name',
      name: 'Name',
      cell: ({ name, userId }) => (
        <>
          <strong>{name}</strong> {name === self && <Tag tone="good">you</Tag>}
          {userId === undefined && <p class="small muted">has not signed in</p>}
        </>
      ),
    },
    { id: 'added', name: 'Added', cell: ({ createdAtMs }) => <Time ms={createdAtMs} nowMs={nowMs} />, wide: true },
    {
      id: 'role',
      name: 'Role',
      cell: (member) => (maySetRole ? <RoleForm member={member} /> : member.role),
    },
  ]
  if (mayRemove) {
    all.push({
      id: 'remove',
      name: 'Remove',
      cell: ({ name }) => (
        <TwoStep
          action={`/members/${encodeURIComponent(name)}/remove`}
          verb="Remove"
          label={name}
          effect="from the organization"
        />
      ),
      quiet: true,
    })
  }
  return all
}

function RoleForm({ member: { name, role } }: { readonly member: Member }) {
  return (
    <form class="inline status" method="post" action={`/members/${encodeURIComponent(name)}/role`}>
      <select name="role" aria-label={`Role of ${name}`}>
        {ROLES.map((each) => (
          <option key={each} value={each} selected={each === role}>
            {each}
          </option>
        ))}
      </select>
      <button type="submit" aria-label={`Save the role of ${name}`}>
        Save
      </button>
    </form>
  )
}
