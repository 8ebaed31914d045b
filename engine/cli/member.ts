import { oneOf } from '../kernel/process/settings.ts'
import { type Member, type RemovedMember, ROLES } from '../store/members.ts'
import { invite } from './account-link.ts'
import { argument, type Commands, change, flag, option, query, table } from './command.ts'

const members = table<Member>([
  ['Name', 'name', { wrap: true }],
  ['Role', 'role'],
  ['Can sign in', 'can_sign_in', { hide: 2, of: ({ userId }) => userId !== undefined }],
  ['Added', 'created_at', { hide: 1 }],
])
const removedMembers = table<RemovedMember>([
  ['Name', 'name', { wrap: true }],
  ['Role before', 'role'],
  ['Removed', 'removed_at', { hide: 1 }],
])
const NAME = argument('<name>', 'Name of the member')

export const commands: Commands = {
  add: change('Add a member', {
    params: {
      name: argument('<name>', 'E-mail address or another name'),
      role: option('--role <role>', 'Grant this role', oneOf(ROLES).default('member')),
    },
    run: ({ administration, organization }, { name, role }) =>
      members([administration.members.add(organization, name, role)]),
  }),
  role: change('Change the role of a member', {
    params: { name: NAME, role: argument('<role>', 'New role', oneOf(ROLES)) },
    run: ({ administration, organization }, { name, role }) =>
      members([administration.members.setRole(organization, name, role)]),
  }),
  remove: change('Remove a member', {
    params: { name: NAME },
    run: ({ administration, organization }, { name }) => members([administration.members.remove(organization, name)]),
  }),
  allow: change('Allow a removed member to sign in with the identity provider again', {
    params: { name: argument('<name>', 'Name of the removed member') },
    run: ({ administration, organization }, { name }) =>
      removedMembers([administration.members.allow(organization, name)]),
  }),
  invite,
  withdraw: change('Withdraw the invitation of a member, who can be invited again', {
    params: { name: NAME },
    run({ store, administration, organization }, { name }) {
      administration.accountLinks.withdraw(organization, name)
      return members([store.members.get({ organizationId: organization.id, name }) ?? []].flat())
    },
  }),
  list: query('List the members of an organization', {
    params: {
      removed: flag('--removed', 'List removed members, whom the identity provider does not bring back, instead'),
    },
    run: ({ store, organization: { id } }, { removed }) =>
      removed ? removedMembers(store.removedMembers.ofOrganization(id)) : members(store.members.ofOrganization(id)),
  }),
}
