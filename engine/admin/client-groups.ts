import { parse } from 'csv-parse/sync'
import { Fault } from '../kernel/process/error-codes.ts'
import { CLIENT_GROUP_MEMBERS_MAX, CLIENT_GROUPS_MAX } from '../limits.ts'
import type { ClientGroup } from '../store/client-groups.ts'
import { type ClientSettings, clientModeOf, NAME_BYTES_MAX, type Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { Changes } from './changes.ts'
import { storedClients } from './client-use.ts'

/** One line without control characters. */
const TEXT = /^[^\p{Cc}\p{Cf}\u2028\u2029]+$/u
const MAIL = /^[^\s@]{1,64}@[^\s@]{1,190}$/
const LINE_SHOWN_CHARS = 60

/** Groups with members as they are stored, and the setting that they were made for. */
export interface StoredGroups extends ClientSettings {
  readonly groups: readonly ClientGroup[]
}

/**
 * Reads a CSV file with a row for each member: user or address, group, and optionally the mail
 * address of the manager. A header is optional. A later row replaces the group of a member.
 *
 * @throws Fault USAGE with the row that is wrong
 */
export function readGroups(text: string, where: string): ClientGroup[] {
  let rows: string[][]
  try {
    rows = parse(text, { bom: true, relax_column_count: true, skip_empty_lines: true, trim: true, comment: '#' })
  } catch (error) {
    throw new Fault('USAGE', `${where}: ${(error as Error).message}`)
  }
  const groupOf = new Map<string, string>()
  const groups = new Map<string, { readonly name: string; manager: string; readonly members: string[] }>()
  for (const [index, row] of rows.entries()) {
    const [member = '', name = '', manager = ''] = row
    if (index === 0 && name.toLowerCase() === 'group') continue
    const wrong = (expected: string): Fault => {
      const found = JSON.stringify(row.join(',').slice(0, LINE_SHOWN_CHARS))
      return new Fault('USAGE', `${where}: row ${index + 1}: expected ${expected}; found ${found}`)
    }
    if (!isText(member) || !isText(name) || (manager !== '' && !MAIL.test(manager)))
      throw wrong('user or address,group,manager such as jdoe,Finance,ada@acme.example')
    const group = groups.get(name.toLowerCase()) ?? { name, manager, members: [] }
    if (manager !== '' && group.manager !== '' && group.manager !== manager)
      throw wrong(`one manager of ${group.name}, ${group.manager}`)
    if (group.manager === '') group.manager = manager
    groups.set(name.toLowerCase(), group)
    groupOf.set(member, name.toLowerCase())
  }
  for (const [member, name] of groupOf) groups.get(name)?.members.push(member)
  if (groupOf.size > CLIENT_GROUP_MEMBERS_MAX || groups.size > CLIENT_GROUPS_MAX) {
    const most = `${CLIENT_GROUP_MEMBERS_MAX} members and ${CLIENT_GROUPS_MAX} groups`
    throw new Fault('USAGE', `${where}: expected at most ${most}, found ${groupOf.size} and ${groups.size}`)
  }
  return [...groups.values()].filter(({ members }) => members.length > 0)
}

function isText(text: string): boolean {
  return TEXT.test(text) && Buffer.byteLength(text.toLowerCase()) <= NAME_BYTES_MAX
}

/**
 * The groups with members as clients are stored. Pseudonyms of many members take a second, so this
 * is not for a write transaction.
 *
 * @throws Fault SECRETS_KEY
 */
export function storedGroups(store: Store, organization: Organization, groups: readonly ClientGroup[]): StoredGroups {
  const stored = storedClients(store, organization)
  return {
    mode: clientModeOf(organization),
    keyId: organization.clientKeyId ?? '',
    groups: groups.map((group) => ({ ...group, members: [...new Set(group.members.map(stored))] })),
  }
}

export class ClientGroupChanges extends Changes {
  /** Replaces all groups. @throws Fault CONFLICT with another setting of clients, NOT_ALLOWED. */
  replace({ id }: Organization, { groups, mode, keyId }: StoredGroups): void {
    const { store } = this
    this.audited('client.name', id, () => {
      const now = store.organizations.clientSettings(id)
      if (now.mode === 'off' && groups.length > 0) {
        throw new Fault('CONFLICT', 'groups are kept only with clients "full" or "pseudonym", not with "off"')
      }
      if (now.mode !== mode || now.keyId !== keyId)
        throw new Fault('CONFLICT', 'the storage of clients has changed meanwhile; import the groups again')
      store.clientGroups.removeAll(id)
      for (const group of groups) store.clientGroups.put(id, group)
      const members = groups.reduce((sum, group) => sum + group.members.length, 0)
      const details = { groups: groups.length, members }
      return { organizationId: id, subject: 'groups of clients', details, result: undefined }
    })
  }
}
