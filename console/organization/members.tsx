import { z } from 'zod'
import { linkUrl } from '../../engine/admin/account-links.ts'
import { type Member, type RemovedMember, ROLES, type Role } from '../../engine/store/members.ts'
import { ActionButton, Field, Form, Select, TwoStep } from '../design/form.tsx'
import { CsvLink, FilterSearch, Filters, PagedTable, paged, ROWS_PER_PAGE } from '../design/list.tsx'
import { Card, countText, Empty, Notice, PageHead, SecretText, Tag, Time } from '../design/parts.tsx'
import { type Column, csvOnly, textColumn, timeColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import type { Answer } from '../http/answer.ts'
import { csvFile } from '../http/csv.ts'
import { changeForm, form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

interface MemberRow extends Member {
  readonly canSignIn: boolean
  /** When the link of the invitation expires, or has expired; 0 if there is none. */
  readonly invitedUntilMs: number
  /** The name of the identity provider that the member signs in with; '' if none. */
  readonly provider: string
  readonly isSelf: boolean
}

/** Members by name, with their invitations. */
function allMembers(visit: Visit): readonly MemberRow[] {
  const { site, organization, identity } = visit
  const { members, accountLinks, federatedIdentities } = site.store
  const provider = providerName(visit)
  const federated = new Set(federatedIdentities.ofOrganization(organization.id).map(({ userId }) => userId))
  const invitations = accountLinks.invitations(organization.id)
  return members.ofOrganization(organization.id).map((member) => ({
    ...member,
    canSignIn: member.userId !== undefined,
    invitedUntilMs: invitations.get(member.name)?.expiresAtMs ?? 0,
    provider: member.userId !== undefined && federated.has(member.userId) ? provider : '',
    isSelf: member.name === identity.member.name,
  }))
}

/** The name of the organization's identity provider; '' if none. */
function providerName({ site, organization }: Visit): string {
  return site.store.identityProviders.get(organization.id)?.name ?? ''
}

const PATH = '/members'

/** A new invitation. One page shows its link, once. */
interface NewInvitation {
  readonly name: string
  readonly url: string
  readonly expiresAtMs: number
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

function titled(role: Role): string {
  return role.charAt(0).toUpperCase() + role.slice(1)
}

interface MembersProps {
  readonly visit: Visit
  readonly form: FormState
  readonly invitation: NewInvitation | undefined
}

/** The members that the query's `q` finds, on the pages `page`, `waiting` and `removed`. */
function Members({ visit, form, invitation }: MembersProps) {
  const { site, organization, nowMs, request } = visit
  const { query } = request
  const search = (query.get('q') ?? '').trim().slice(0, 100)
  const all = allMembers(visit)
  const found = all.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()))
  const waiting = found.filter(({ canSignIn }) => !canSignIn)
  const removed = site.store.removedMembers.ofOrganization(organization.id)
  const provider = providerName(visit)
  return (
    <>
      <PageHead title="Members" about="People of this organization, and what each may do">
        <CsvLink path={PATH} />
      </PageHead>
      {invitation !== undefined && (
        <Notice title={`Copy the link for ${invitation.name} now. It will not be shown again`}>
          <SecretText id="secret" value={invitation.url} />
          <p class="small">
            Send it only to {invitation.name}: the first person who opens it becomes this member. It works once, and
            expires <Time ms={invitation.expiresAtMs} nowMs={nowMs} />.
          </p>
        </Notice>
      )}
      {form.errors[''] !== undefined && <Notice tone="bad" title={form.errors['']} />}
      <div class="wide">
        <div class="column">
          {all.length > ROWS_PER_PAGE && (
            <Filters action={PATH} found={`${countText(found.length)} of ${countText(all.length)}`}>
              <FilterSearch value={search} />
            </Filters>
          )}
          <PagedTable
            {...{ visit, id: 'members', label: 'Members', title: 'Members', columns: COLUMNS, stacked: true }}
            rows={paged(found, query)}
            empty={
              <Empty title="No member matches">
                <p>
                  <a href={PATH}>Show all {countText(all.length)}</a>
                </p>
              </Empty>
            }
          />
          <PagedTable
            {...{ visit, id: 'waiting', label: 'Invitations', title: 'Cannot sign in yet', name: 'waiting' }}
            {...{ columns: WAITING_COLUMNS, rows: paged(waiting, query, 'waiting'), empty: null, stacked: true }}
          />
          <PagedTable
            {...{ visit, id: 'removed', label: 'Removed members', title: 'Removed members', name: 'removed' }}
            {...{ columns: REMOVED_COLUMNS, rows: paged(removed, query, 'removed'), empty: null, stacked: true }}
            note={`A sign-in with ${provider || 'an identity provider'} does not add them again`}
          />
        </div>
        <div class="column">
          {visit.may('member.invite') && (
            <Card title="Invite member">
              <Form action={PATH} submit="Invite">
                <Field name="name" label="Name or e-mail address" form={form} required maxLength={255} />
                <Select
                  name="role"
                  label="Role"
                  form={form}
                  options={ROLES.map((role) => [role, titled(role)])}
                  value="member"
                />
                <p class="small muted">You get a link to send. This service sends no e-mail.</p>
              </Form>
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
            {provider !== '' && (
              <p class="small muted rule">With {provider}, a role follows the groups there, at each sign-in.</p>
            )}
          </Card>
        </div>
      </div>
    </>
  )
}

/** The columns of the page and of its CSV file. */
const COLUMNS: readonly Column<MemberRow>[] = [
  {
    id: 'name',
    name: 'Name',
    cell: ({ name, provider, isSelf }) => (
      <>
        <strong>{name}</strong> {isSelf && <Tag tone="good">you</Tag>}
        {provider !== '' && <Tag>{provider}</Tag>}
      </>
    ),
    csv: ({ name }) => name,
  },
  {
    ...textColumn('role', 'Role', ({ role }: MemberRow) => role),
    cell: (member, visit) => (visit.may('member.role') ? <RoleForm member={member} /> : member.role),
  },
  { ...timeColumn('added', 'Added', ({ createdAtMs }: MemberRow) => createdAtMs), wide: true },
  { id: 'sign-in', name: 'Can sign in', csv: ({ canSignIn }) => (canSignIn ? 'yes' : 'no') },
  { id: 'provider', name: 'Provider', csv: ({ provider }) => provider },
  csvOnly(timeColumn('invited', 'Invited until', ({ invitedUntilMs }) => invitedUntilMs)),
  {
    id: 'remove',
    name: 'Remove',
    action: 'member.remove',
    quiet: true,
    cell: ({ name }) => (
      <TwoStep action={pathOf(name, 'remove')} verb="Remove" label={name} effect="from the organization" />
    ),
  },
]

const WAITING_COLUMNS: readonly Column<MemberRow>[] = [
  { id: 'name', name: 'Name', cell: ({ name }) => <strong>{name}</strong> },
  {
    id: 'invitation',
    name: 'Invitation',
    cell: ({ invitedUntilMs }, { nowMs }) =>
      invitedUntilMs === 0 ? (
        <span class="muted">not invited</span>
      ) : (
        <>
          {invitedUntilMs > nowMs ? 'expires' : 'expired'} <Time ms={invitedUntilMs} nowMs={nowMs} />
        </>
      ),
  },
  {
    id: 'do',
    name: 'Change',
    action: 'member.invite',
    quiet: true,
    cell: ({ name, invitedUntilMs }, { nowMs }) => (
      <div class="row end">
        <ActionButton action={pathOf(name, 'invite')} label={`New link for ${name}`}>
          New link
        </ActionButton>
        {invitedUntilMs > nowMs && (
          <ActionButton action={pathOf(name, 'withdraw')} look="danger" label={`Withdraw the invitation of ${name}`}>
            Withdraw
          </ActionButton>
        )}
      </div>
    ),
  },
]

/** Whom the provider might bring back. */
const REMOVED_COLUMNS: readonly Column<RemovedMember>[] = [
  { id: 'name', name: 'Name', cell: ({ name }) => <strong>{name}</strong> },
  { id: 'role', name: 'Role before', cell: ({ role }) => role, wide: true },
  timeColumn('removed', 'Removed', ({ removedAtMs }) => removedAtMs),
  {
    id: 'allow',
    name: 'Change',
    action: 'member.allow',
    quiet: true,
    cell: ({ name }) => (
      <ActionButton action={pathOf(name, 'allow')} label={`Allow again: the sign-in of ${name}`}>
        Allow again
      </ActionButton>
    ),
  },
]

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

const role = z.object({ role: z.enum(ROLES, 'Choose a role') })
const newMember = role.extend({ name: z.string('Enter a name').trim().min(1, 'Enter a name') })
const OPTIONS = { confirmed: true, again: membersPage }

export const MEMBER_ROUTES: readonly Route[] = [
  page(PATH, 'member.read', (visit) => membersPage(visit, EMPTY_FORM)),
  csvFile(PATH, 'member.read', COLUMNS, allMembers),
  form(
    PATH,
    'member.invite',
    async (visit) => {
      const { name } = await visit.change('member.add', visit.read(newMember))
      return invite(visit, name)
    },
    OPTIONS,
  ),
  form(`${PATH}/:name/invite`, 'member.invite', (visit, { name }) => invite(visit, name), OPTIONS),
  changeForm(`${PATH}/:name/withdraw`, 'invitation.withdraw', (given) => given, `${PATH}?done=withdrawn`, OPTIONS),
  changeForm(
    `${PATH}/:name/role`,
    'member.role',
    ({ name }, visit) => ({ name, ...visit.read(role) }),
    `${PATH}?done=role`,
    OPTIONS,
  ),
  changeForm(`${PATH}/:name/remove`, 'member.remove', (given) => given, `${PATH}?done=removed`, OPTIONS),
  changeForm(`${PATH}/:name/allow`, 'member.allow', (given) => given, `${PATH}?done=allowed`, OPTIONS),
]

async function invite(visit: Visit, name: string): Promise<Answer> {
  const { secret, expiresAtMs } = await visit.change('member.invite', { name })
  const url = linkUrl(visit.request.origin, secret)
  return visit.redirectToShow(PATH, { name, url, expiresAtMs } satisfies NewInvitation)
}

function membersPage(visit: Visit, form: FormState): Answer {
  const invitation = visit.shownOnce<NewInvitation>()
  const content = Members({ visit, form, invitation })
  return visit.page('Members', PATH, content, { form, done: DONE, showsSecret: invitation !== undefined })
}
