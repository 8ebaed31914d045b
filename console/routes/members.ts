import { Fault, isFault } from '../../engine/process/error-codes.ts'
import { ROLES } from '../../engine/store/members.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { Members } from '../pages/members.tsx'

const PATH = '/members'

export const MEMBER_ROUTES: readonly Route[] = [
  page(PATH, 'member.read', (visit) => membersPage(visit, '', 200)),
  form(
    `${PATH}/:name/role`,
    'member.role',
    (visit, { name }) => {
      const named = visit.request.fields.text('role')
      const role = ROLES.find((each) => each === named)
      if (role === undefined) {
        throw new Fault('USAGE', `Role: expected ${ROLES.join(', ')}, found ${JSON.stringify(named)}`)
      }
      return changed(visit, 'role', () => visit.change('member.role', { name, role }))
    },
    { confirmed: true },
  ),
  form(
    `${PATH}/:name/remove`,
    'member.remove',
    (visit, { name }) => changed(visit, 'removed', () => visit.change('member.remove', { name })),
    { confirmed: true },
  ),
]

/** Makes a change. If the change would leave no owner, the page shows an error. */
async function changed(visit: Visit, done: string, make: () => Promise<unknown>): Promise<Answer> {
  try {
    await make()
    return redirect(`${PATH}?done=${done}`)
  } catch (error) {
    if (!isFault(error, 'CONFLICT')) throw error
    return membersPage(visit, error.message, 409)
  }
}

/** The provider, and the users who sign in with it. */
function providerMembers({ site, organization }: Visit) {
  const { identityProviders, federatedIdentities } = site.store
  return site.store.environment.read(() => ({
    provider: identityProviders.get(organization.id)?.name ?? '',
    providerUsers: new Set(federatedIdentities.ofOrganization(organization.id).map(({ userId }) => userId)),
  }))
}

function membersPage(visit: Visit, error: string, status: number): Answer {
  const { site, organization, identity, nowMs, request } = visit
  const content = Members({
    members: site.store.environment.read(() => site.store.members.ofOrganization(organization.id)),
    self: identity.member.name,
    ...providerMembers(visit),
    nowMs,
    maySetRole: visit.may('member.role'),
    mayRemove: visit.may('member.remove'),
    error,
    done: request.query.get('done') ?? '',
  })
  return visit.page('Members', PATH, content, { status })
}
