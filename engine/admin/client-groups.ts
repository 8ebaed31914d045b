import { setImmediate as othersTurn } from 'node:timers/promises'
import { parse } from 'csv-parse/sync'
import { Fault } from '../kernel/process/error-codes.ts'
import { addressBytes, canonicalAddress } from '../kernel/process/network.ts'
import { CLIENT_GROUP_MEMBERS_MAX, CLIENT_GROUPS_MAX } from '../limits.ts'
import { personKey } from '../scan/group-use.ts'
import type { ClientGroup } from '../store/client-groups.ts'
import { type ClientSettings, clientModeOf, NAME_BYTES_MAX, type Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { isMailAddress } from './alert-settings.ts'
import { AuditedChanges, listText } from './audited-changes.ts'
import { storedClients } from './client-use.ts'

/** One line without control characters. */
const TEXT = /^[^\p{Cc}\p{Cf}\u2028\u2029]+$/u
/** The first cell of a header. */
const HEADER = /^(?:user|address|client)$/i
/** The address of `10.2.0.0/16`, `[2001:db8::1]` or `[2001:db8::1]:443`. */
const IN_NETWORK_OR_BRACKETS = /^\[?([^\]/]+)[\]/]/
const LINE_SHOWN_CHARS = 60
/** Members whose pseudonyms are made before others have their turn: about 5 ms. */
const MEMBERS_PER_TURN = 250

/** Groups with members as they are stored, and the setting that they were made for. */
export interface StoredGroups extends ClientSettings {
  readonly groups: readonly ClientGroup[]
}

/** A group as a file has it. */
type ReadGroup = Omit<ClientGroup, 'people'>

/**
 * Reads a CSV file with a row for each member: user or address, group, and optionally the mail
 * address of the group's manager. A header is optional. A later row replaces the group of a member.
 *
 * @throws Fault USAGE with the row that is wrong
 */
export function readGroups(text: string, where: string): ReadGroup[] {
  let rows: string[][]
  try {
    rows = parse(text, { bom: true, relax_column_count: true, skip_empty_lines: true, trim: true })
  } catch (error) {
    throw new Fault('USAGE', `${where}: ${(error as Error).message}`)
  }
  const groupOf = new Map<string, string>()
  const groups = new Map<string, { readonly name: string; readonly members: string[]; manager: string }>()
  for (const [index, row] of rows.entries()) {
    const [member = '', name = '', manager = '', ...others] = row
    if (index === 0 && HEADER.test(member)) continue
    const isWrong = !isText(member) || !isText(name) || others.some((cell) => cell !== '')
    const refuse = (expected: string): Fault => {
      const found = JSON.stringify(row.join(',').slice(0, LINE_SHOWN_CHARS))
      return new Fault('USAGE', `${where}: row ${index + 1}: expected ${expected}; found ${found}`)
    }
    if (isWrong || addressBytes(IN_NETWORK_OR_BRACKETS.exec(member)?.[1] ?? '') !== undefined) {
      throw refuse('user or address,group,manager such as jdoe,Finance or 10.20.1.21,Finance,grace@example.com')
    }
    if (manager !== '' && !(isText(manager) && isMailAddress(manager)))
      throw refuse('a mail address of the manager, or none')
    const key = name.toLowerCase()
    const group = groups.get(key) ?? { name, members: [], manager }
    groups.set(key, group)
    // A mail about people must not reach the wrong person.
    if (manager !== '' && group.manager !== '' && manager.toLowerCase() !== group.manager.toLowerCase())
      throw refuse(`the manager of ${name} in an earlier row, ${group.manager}`)
    if (group.manager === '') group.manager = manager
    groupOf.set(canonicalAddress(member), key)
  }
  for (const [member, name] of groupOf) groups.get(name)?.members.push(member)
  if (groupOf.size > CLIENT_GROUP_MEMBERS_MAX || groups.size > CLIENT_GROUPS_MAX) {
    const most = `${CLIENT_GROUP_MEMBERS_MAX} members and ${CLIENT_GROUPS_MAX} groups`
    throw new Fault('USAGE', `${where}: expected at most ${most}, found ${groupOf.size} and ${groups.size}`)
  }
  return [...groups.values()]
    .filter(({ members }) => members.length > 0)
    .map(({ manager, ...group }) => ({ ...group, ...(manager !== '' && { manager }) }))
}

function isText(text: string): boolean {
  return TEXT.test(text) && Buffer.byteLength(text.toLowerCase()) <= NAME_BYTES_MAX
}

/**
 * The groups with members as clients are stored. Pseudonyms of many members take a second, so others
 * have their turn in between.
 *
 * @throws Fault SECRETS_KEY
 */
export async function storedGroups(
  store: Store,
  organization: Organization,
  groups: readonly ReadGroup[],
): Promise<StoredGroups> {
  const stored = storedClients(store, organization)
  const all: ClientGroup[] = []
  let count = 0
  for (const { members, ...group } of groups) {
    const personOf = new Map<string, string>()
    for (const member of members) {
      personOf.set(stored(member), personKey(member))
      if (++count % MEMBERS_PER_TURN === 0) await othersTurn()
    }
    all.push({ ...group, members: [...personOf.keys()], people: new Set(personOf.values()).size })
  }
  return { mode: clientModeOf(organization), keyId: organization.clientKeyId ?? '', groups: all }
}

export function unknownGroup(name: string, known: readonly string[]): Fault {
  const others = known.length === 0 ? 'There are no groups' : `Groups: ${listText(known)}`
  return new Fault('NOT_FOUND', `no group ${JSON.stringify(name)}. ${others}`)
}

export class ClientGroupChanges extends AuditedChanges {
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
