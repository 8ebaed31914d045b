import { z } from 'zod'
import { linkUrl } from '../../engine/admin/account-links.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import { ROLES } from '../../engine/store/members.ts'
import { EMPTY_FORM, type FormState, readForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Members, memberColumns, type NewInvitation } from '../pages/members.tsx'
import { allMembers, membersView } from '../views/members.ts'
import { csvFile } from './csv.ts'
import { refusedForm } from './refused-form.ts'

const PATH = '/members'

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
