import { Argument, type Command, Option } from 'commander'
import { type Member, ROLES, type Role } from '../../store/members.ts'
import type { RemovedMember } from '../../store/removed-members.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'
import { addInviteCommand } from './setup-link.ts'

/** posture-admin member add | role | remove | allow | invite | withdraw | list */
export function addMemberCommands(member: Command): void {
  const add = ofOrganization(
    changeOptions(
      member.command('add').description('Add a member').argument('<name>', 'E-mail address or another name'),
    ),
  ).addOption(new Option('--role <role>', 'Grant this role').choices(ROLES).default('member'))
  add.action((name: string, options: { org?: string; role: Role }) =>
    withStore(add, ({ administration }) => {
      print(add, [administration.members.add(administration.organization(options.org), name, options.role)])
    }),
  )

  const role = ofOrganization(
    changeOptions(
      member.command('role').description('Change the role of a member').argument('<name>', 'Name of the member'),
    ),
  ).addArgument(new Argument('<role>', 'New role').choices(ROLES))
  role.action((name: string, given: Role, options: { org?: string }) =>
    withStore(role, ({ administration }) => {
      print(role, [administration.members.setRole(administration.organization(options.org), name, given)])
    }),
  )

  const remove = ofOrganization(
    changeOptions(member.command('remove').description('Remove a member').argument('<name>', 'Name of the member')),
  )
  remove.action((name: string, options: { org?: string }) =>
    withStore(remove, ({ administration }) => {
      print(remove, [administration.members.remove(administration.organization(options.org), name)])
    }),
  )

  const allow = ofOrganization(
    changeOptions(
      member
        .command('allow')
        .description('Allow a removed member to sign in with the identity provider again')
        .argument('<name>', 'Name of the removed member'),
    ),
  )
  allow.action((name: string, options: { org?: string }) =>
    withStore(allow, ({ administration }) => {
      printRemoved(allow, [administration.members.allow(administration.organization(options.org), name)])
    }),
  )

  addInviteCommand(member)

  const withdraw = ofOrganization(
    changeOptions(
      member
        .command('withdraw')
        .description('Withdraw the invitation of a member, who can be invited again')
        .argument('<name>', 'Name of the member'),
    ),
  )
  withdraw.action((name: string, options: { org?: string }) =>
    withStore(withdraw, ({ store, administration }) => {
      const organization = administration.organization(options.org)
      administration.accountLinks.withdraw(organization, name)
      const member = store.members.get(organization.id, name)
      print(withdraw, member === undefined ? [] : [member])
    }),
  )

  const list = ofOrganization(
    sharedOptions(member.command('list').description('List the members of an organization')),
  ).option('--removed', 'List removed members, whom the identity provider does not bring back, instead')
  list.action((options: { org?: string; removed?: boolean }) =>
    withStore(list, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      if (options.removed) printRemoved(list, store.removedMembers.ofOrganization(id))
      else print(list, store.members.ofOrganization(id))
    }),
  )
}

function printRemoved(command: Command, removed: readonly RemovedMember[]): void {
  show(command, {
    columns: [
      ['Name', 'name', { wrap: true }],
      ['Role before', 'role'],
      ['Removed', 'removed_at', { hide: 1 }],
    ],
    rows: removed.map(({ name, role, removedAtMs }) => ({ name, role, removed_at: timeText(removedAtMs) })),
  })
}

function print(command: Command, members: readonly Member[]): void {
  show(command, {
    columns: [
      ['Name', 'name', { wrap: true }],
      ['Role', 'role'],
      ['Can sign in', 'can_sign_in', { hide: 2 }],
      ['Added', 'created_at', { hide: 1 }],
    ],
    rows: members.map(({ name, role, createdAtMs, userId }) => {
      return { name, role, can_sign_in: userId !== undefined, created_at: timeText(createdAtMs) }
    }),
  })
}
