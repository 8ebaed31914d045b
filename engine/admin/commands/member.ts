import { Argument, type Command, Option } from 'commander'
import { type Member, ROLES, type Role } from '../../store/members.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin member add | role | remove | list */
export function addMemberCommands(program: Command): void {
  const member = program.command('member').description('the people of an organization, and what they may change')

  const add = ofOrganization(
    changeOptions(member.command('add <name>').description('add a member, by an e-mail address or another name')),
  ).addOption(new Option('--role <role>', 'what the member may do').choices(ROLES).default('member'))
  add.action((name: string, options: { org: string; role: Role }) =>
    withStore(add, ({ administration }) => {
      print(add, [administration.members.add(administration.organization(options.org), name, options.role)])
    }),
  )

  const role = ofOrganization(
    changeOptions(member.command('role <name>').description('give a member another role')),
  ).addArgument(new Argument('<role>', 'the new role').choices(ROLES))
  role.action((name: string, given: Role, options: { org: string }) =>
    withStore(role, ({ administration }) => {
      print(role, [administration.members.setRole(administration.organization(options.org), name, given)])
    }),
  )

  const remove = ofOrganization(changeOptions(member.command('remove <name>').description('remove a member')))
  remove.action((name: string, options: { org: string }) =>
    withStore(remove, ({ administration }) => {
      print(remove, [administration.members.remove(administration.organization(options.org), name)])
    }),
  )

  const list = ofOrganization(sharedOptions(member.command('list').description('show the members of an organization')))
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.members.ofOrganization(administration.organization(options.org).id))
    }),
  )
}

function print(command: Command, members: readonly Member[]): void {
  show(command, {
    columns: [
      ['Name', 'name'],
      ['Role', 'role'],
      ['Since', 'created_at'],
    ],
    rows: members.map(({ name, role, createdAtMs }) => ({ name, role, created_at: timeText(createdAtMs) })),
  })
}
