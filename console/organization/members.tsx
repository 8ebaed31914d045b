import { z } from 'zod'
import { linkUrl } from '../../engine/admin/account-links.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import { type Member, ROLES, type Role } from '../../engine/store/members.ts'
import type { RemovedMember } from '../../engine/store/removed-members.ts'
import { Field, FormError, Select, TwoStep } from '../design/form.tsx'
import { CsvLink, FilterSearch, Filters, NumberedPages, type Paged, paged, ROWS_PER_PAGE } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead, SecretText, Tag, Time } from '../design/parts.tsx'
import { type Column, Table, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, readForm, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

interface MemberRow extends Member {
  readonly canSignIn: boolean
  /** When the link of the invitation expires, or has expired; 0 if there is none. */
  readonly invitedUntilMs: number
  /** The name of the identity provider that the member signs in with; '' if none. */
  readonly provider: string
}

interface MembersView {
  readonly members: Paged<MemberRow>
  /** Those who have not opened their link. */
  readonly waiting: Paged<MemberRow>
  /** Removed members, by name, whatever the search. */
  readonly removed: Paged<RemovedMember>
  /** The text that the names contain; '' for all. */
  readonly search: string
  /** The number of members, whatever the search. */
  readonly total: number
}

/** The members that the query's `q` finds, on the pages `page`, `waiting` and `removed`. */
function membersView(visit: Visit): MembersView {
  const { query } = visit.request
  const search = (query.get('q') ?? '').trim().slice(0, 100)
  const all = allMembers(visit)
  const found = all.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()))
  return {
    members: paged(found, query),
    waiting: paged(
      found.filter(({ canSignIn }) => !canSignIn),
      query,
      'waiting',
    ),
    removed: paged(visit.site.store.removedMembers.ofOrganization(visit.organization.id), query, 'removed'),
    search,
    total: all.length,
  }
}

/** Members by name, with their invitations. */
function allMembers({ site, organization }: Visit): readonly MemberRow[] {
  const { members, accountLinks, identityProviders, federatedIdentities } = site.store
  const provider = identityProviders.get(organization.id)?.name ?? ''
  const federated = new Set(federatedIdentities.ofOrganization(organization.id).map(({ userId }) => userId))
  const invitations = accountLinks.invitations(organization.id)
  return members.ofOrganization(organization.id).map((member) => {
    const invitedUntilMs = invitations.get(member.name)?.expiresAtMs ?? 0
    const { userId } = member
    return {
      ...member,
      canSignIn: userId !== undefined,
      invitedUntilMs,
      provider: userId !== undefined && federated.has(userId) ? provider : '',
    }
  })
}

const PATH = '/members'

/** A new invitation. One page shows its link, once. */
interface NewInvitation {
  readonly name: string
  readonly url: string
  readonly expiresAtMs: number
}

interface MembersProps {
  readonly view: MembersView
  readonly query: URLSearchParams
  /** The name of the member who views the page. */
  readonly self: string
  /** The name of the organization's identity provider; '' if none. */
  readonly provider: string
  readonly nowMs: number
  readonly mayInvite: boolean
  readonly maySetRole: boolean
  readonly mayRemove: boolean
  readonly mayAllow: boolean
  /** The form of the invitation. */
  readonly form: FormState
  readonly invitation: NewInvitation | undefined
  /** Why a change was rejected; '' if none was. */
  readonly error: string
  readonly done: string
}

const DONE: Readonly<Record<string, string>> = {
  role: 'The role is changed. It applies to the next request',
  removed: 'The member is removed, and sees nothing of this organization any more',
  allowed: 'The sign-in is allowed again. The next one adds the member, if their groups have access',
  withdrawn: 'The invitation is withdrawn. Its link is not valid any more',
}

/** What each role may do in addition to the one before. */
const ROLE_RIGHTS: Readonly<Record<Role, string>> = {
  viewer: 'reads findings, assessments and settings',
  member: 'answers assessments, updates recommendations, verifies senders, tries files',
  admin: 'decides on platforms; manages keys, tokens, settings and retention; reads the audit log',
  owner: 'manages members and sign-in',
}

const ROLE_OPTIONS = ROLES.map((role) => [role, titled(role)] as const)

function titled(role: Role): string {
  return role.charAt(0).toUpperCase() + role.slice(1)
}

function Members(props: MembersProps) {
  const { view, query, nowMs, mayInvite, form, invitation, error, done } = props
  const { members, waiting } = view
  const title = DONE[done]
  return (
    <>
      <PageHead title="Members" about="People of this organization, and what each may do">
        <CsvLink path={PATH} />
      </PageHead>
      {error !== '' && <Notice tone="bad" title={error} />}
      {error === '' && title !== undefined && <Notice title={title} />}
      {invitation !== undefined && (
        <Notice title={`Copy the link for ${invitation.name} now. It will not be shown again`}>
          <SecretText id="secret" value={invitation.url} />
          <p class="small">
            Send it only to {invitation.name}: the first person who opens it becomes this member. It works once, and
            expires <Time ms={invitation.expiresAtMs} nowMs={nowMs} />.
          </p>
        </Notice>
      )}
      <div class="wide">
        <div class="column">
          {view.total > ROWS_PER_PAGE && <MemberSearch view={view} />}
          {members.total === 0 ? (
            <Empty title="No member matches">
              <p>
                <a href={PATH}>Show all {countText(view.total)}</a>
              </p>
            </Empty>
          ) : (
            <Card title="Members" note={countText(members.total)} bare>
              <Table id="members" label="Members" columns={columns(props)} rows={members.rows} stacked />
            </Card>
          )}
          <NumberedPages of={members} query={query} />
          {waiting.total > 0 && (
            <Card title="Cannot sign in yet" note={countText(waiting.total)} bare>
              <Table id="waiting" label="Invitations" columns={waitingColumns(props)} rows={waiting.rows} stacked />
            </Card>
          )}
          <NumberedPages of={waiting} query={query} name="waiting" />
          <Removed {...props} />
          <NumberedPages of={view.removed} query={query} name="removed" />
        </div>
        <div class="column">
          {mayInvite && (
            <Card title="Invite member">
              <form class="stack" method="post" action={PATH}>
                <FormError form={form} />
                <Field name="name" label="Name or e-mail address" form={form} required maxLength={255} />
                <Select name="role" label="Role" form={form} options={ROLE_OPTIONS} value="member" />
                <button class="first" type="submit">
                  Invite
                </button>
                <p class="small muted">You get a link to send. This service sends no e-mail.</p>
              </form>
            </Card>
          )}
          <Card title="Roles">
            <ul class="lines">
              {ROLES.map((role, at) => (
                <li key={role}>
                  <div>
                    <strong>{titled(role)}</strong>
                    <p class="small muted">
                      {at > 0 && 'also '}
                      {ROLE_RIGHTS[role]}
                    </p>
                  </div>
                </li>
              ))}
            </ul>
            {props.provider !== '' && (
              <p class="small muted rule">With {props.provider}, a role follows the groups there, at each sign-in.</p>
            )}
          </Card>
        </div>
      </div>
    </>
  )
}

function MemberSearch({ view: { search, members, total } }: { readonly view: MembersView }) {
  return (
    <Filters action={PATH} found={`${countText(members.total)} of ${countText(total)}`}>
      <FilterSearch value={search} />
    </Filters>
  )
}

/** The columns of the CSV file. */
function memberColumns(nowMs: number): readonly Column<MemberRow>[] {
  return [
    textColumn('name', 'Name', ({ name }) => name),
    textColumn('role', 'Role', ({ role }) => role),
    timeColumn('added', 'Added', nowMs, ({ createdAtMs }) => createdAtMs),
    textColumn('sign-in', 'Can sign in', ({ canSignIn }) => (canSignIn ? 'yes' : 'no')),
    textColumn('provider', 'Provider', ({ provider }) => provider),
    timeColumn('invited', 'Invited until', nowMs, ({ invitedUntilMs }) => invitedUntilMs),
  ]
}

function columns({ self, nowMs, maySetRole, mayRemove }: MembersProps): readonly Column<MemberRow>[] {
  const all: Column<MemberRow>[] = [
    {
      id: 'name',
      name: 'Name',
      cell: ({ name, provider }) => (
        <>
          <strong>{name}</strong> {name === self && <Tag tone="good">you</Tag>}
          {provider !== '' && <Tag>{provider}</Tag>}
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
        <TwoStep action={pathOf(name, 'remove')} verb="Remove" label={name} effect="from the organization" />
      ),
      quiet: true,
    })
  }
  return all
}

function waitingColumns({ nowMs, mayInvite }: MembersProps): readonly Column<MemberRow>[] {
  const all: Column<MemberRow>[] = [
    { id: 'name', name: 'Name', cell: ({ name }) => <strong>{name}</strong> },
    { id: 'invitation', name: 'Invitation', cell: ({ invitedUntilMs }) => invitationText(invitedUntilMs, nowMs) },
  ]
  if (!mayInvite) return all
  return [
    ...all,
    {
      id: 'do',
      name: 'Change',
      quiet: true,
      cell: ({ name, invitedUntilMs }) => (
        <div class="row end">
          <form method="post" action={pathOf(name, 'invite')}>
            <button type="submit" aria-label={`New link for ${name}`}>
              New link
            </button>
          </form>
          {invitedUntilMs > nowMs && (
            <form method="post" action={pathOf(name, 'withdraw')}>
              <button class="danger" type="submit" aria-label={`Withdraw the invitation of ${name}`}>
                Withdraw
              </button>
            </form>
          )}
        </div>
      ),
    },
  ]
}

/** Whom the provider might bring back. */
function Removed({ view: { removed }, provider, nowMs, mayAllow }: MembersProps) {
  if (removed.total === 0) return null
  const columns: Column<RemovedMember>[] = [
    { id: 'name', name: 'Name', cell: ({ name }) => <strong>{name}</strong> },
    { id: 'role', name: 'Role before', cell: ({ role }) => role, wide: true },
    { id: 'removed', name: 'Removed', cell: ({ removedAtMs }) => <Time ms={removedAtMs} nowMs={nowMs} /> },
  ]
  if (mayAllow) {
    columns.push({
      id: 'allow',
      name: 'Change',
      quiet: true,
      cell: ({ name }) => (
        <form class="row end" method="post" action={pathOf(name, 'allow')}>
          <button type="submit" aria-label={`Allow again: the sign-in of ${name}`}>
            Allow again
          </button>
        </form>
      ),
    })
  }
  return (
    <Card
      title="Removed members"
      note={`A sign-in with ${provider === '' ? 'an identity provider' : provider} does not add them again`}
      bare
    >
      <Table id="removed" label="Removed members" columns={columns} rows={removed.rows} stacked />
    </Card>
  )
}

function invitationText(invitedUntilMs: number, nowMs: number) {
  if (invitedUntilMs === 0) return <span class="muted">not invited</span>
  return (
    <>
      {invitedUntilMs > nowMs ? 'expires' : 'expired'} <Time ms={invitedUntilMs} nowMs={nowMs} />
    </>
  )
}

function pathOf(name: string, what: string): string {
  return `${PATH}/${encodeURIComponent(name)}/${what}`
}

function RoleForm({ member: { name, role } }: { readonly member: MemberRow }) {
  return (
    <form class="inline status" method="post" action={pathOf(name, 'role')}>
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

export const MEMBER_ROUTES: readonly Route[] = [
  page(PATH, 'member.read', (visit) => membersPage(visit)),
  csvFile({ path: PATH, access: 'member.read', columns: ({ nowMs }) => memberColumns(nowMs), rows: allMembers }),
  form(PATH, 'member.invite', addAndInvite, { confirmed: true }),
  form(
    `${PATH}/:name/role`,
    'member.role',
    (visit, { name }) => {
      const named = visit.request.fields.text('role')
      const role = ROLES.find((each) => each === named)
      if (role === undefined) {
        throw new Fault('USAGE', `Role: expected ${ROLES.join(', ')}, found ${JSON.stringify(named)}`)
      }
      return changed(visit, async () => {
        await visit.change('member.role', { name, role })
        return redirect(`${PATH}?done=role`)
      })
    },
    { confirmed: true },
  ),
  form(
    `${PATH}/:name/remove`,
    'member.remove',
    (visit, { name }) =>
      changed(visit, async () => {
        await visit.change('member.remove', { name })
        return redirect(`${PATH}?done=removed`)
      }),
    { confirmed: true },
  ),
  form(
    `${PATH}/:name/allow`,
    'member.allow',
    async (visit, { name }) => {
      await visit.change('member.allow', { name })
      return redirect(`${PATH}?done=allowed`)
    },
    { confirmed: true },
  ),
  form(`${PATH}/:name/invite`, 'member.invite', (visit, { name }) => changed(visit, () => invite(visit, name)), {
    confirmed: true,
  }),
  form(
    `${PATH}/:name/withdraw`,
    'invitation.withdraw',
    async (visit, { name }) => {
      await visit.change('invitation.withdraw', { name })
      return redirect(`${PATH}?done=withdrawn`)
    },
    { confirmed: true },
  ),
]

const newMember = z.object({
  name: z.string('Enter a name').trim().min(1, 'Enter a name'),
  role: z.enum(ROLES, 'Choose a role'),
})

async function addAndInvite(visit: Visit): Promise<Answer> {
  const { fields } = visit.request
  const read = readForm(newMember, fields)
  if ('state' in read) return membersPage(visit, { form: read.state, status: 400 })
  try {
    const { name } = await visit.change('member.add', read.data)
    return await invite(visit, name)
  } catch (error) {
    const { state, status } = refusedForm(error, fields)
    return membersPage(visit, { form: state, status })
  }
}

async function invite(visit: Visit, name: string): Promise<Answer> {
  const { secret, expiresAtMs } = await visit.change('member.invite', { name })
  const url = linkUrl(visit.request.origin, secret)
  return visit.redirectToShow(PATH, { name, url, expiresAtMs } satisfies NewInvitation)
}

/** Makes a change. If it is in conflict with the members, the page shows an error. */
async function changed(visit: Visit, make: () => Promise<Answer>): Promise<Answer> {
  try {
    return await make()
  } catch (error) {
    if (!isFault(error, 'CONFLICT')) throw error
    return membersPage(visit, { error: error.message, status: 409 })
  }
}

interface Outcome {
  readonly form?: FormState
  readonly error?: string
  readonly status?: number
}

function membersPage(visit: Visit, outcome: Outcome = {}): Answer {
  const { site, identity, nowMs, request } = visit
  const { status = 200 } = outcome
  const invitation = visit.shownOnce<NewInvitation>()
  const content = Members({
    view: site.store.environment.read(() => membersView(visit)),
    query: request.query,
    self: identity.member.name,
    provider: site.store.identityProviders.get(visit.organization.id)?.name ?? '',
    nowMs,
    mayInvite: visit.may('member.invite'),
    maySetRole: visit.may('member.role'),
    mayRemove: visit.may('member.remove'),
    mayAllow: visit.may('member.allow'),
    form: outcome.form ?? EMPTY_FORM,
    invitation,
    error: outcome.error ?? '',
    done: request.query.get('done') ?? '',
  })
  return visit.page('Members', PATH, content, { status, showsSecret: invitation !== undefined })
}
