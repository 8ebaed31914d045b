import { z } from 'zod'
import { readGroups, storedGroups, unknownGroup } from '../admin/client-groups.ts'
import { type ListedClient, type ListedNames, listedNames, searchedText } from '../admin/client-list.ts'
import type { SpansByAddress } from '../admin/client-names.ts'
import { readHostNames } from '../admin/host-names-file.ts'
import { type PersonRow, personOf, personRows } from '../admin/persons.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { readInput } from '../kernel/process/input-file.ts'
import { oneOf } from '../kernel/process/settings.ts'
import {
  CLIENT_GROUPS_FILE_BYTES_MAX,
  CLIENT_NAMES_FILE_BYTES_MAX,
  CLIENT_NAMES_MAX,
  PERSON_ROWS_MAX,
} from '../limits.ts'
import { type GroupUse, groupNamesOf, groupUse } from '../scan/group-use.ts'
import { type NameSpan, spanText, withGiven } from '../store/name-spans.ts'
import { argument, type Commands, change, flag, group, limitOption, option, query, table } from './command.ts'
import { clientRow, listText, nameFields } from './platform.ts'

type PlatformRow = ReturnType<typeof clientRow> & { readonly platform_id: string; readonly platform_name: string }

const platforms = table<PlatformRow>([
  [null, 'platform_id'],
  ['Platform', 'platform_name'],
  ['Client', 'client', { hide: 4 }],
  [null, 'name'],
  [null, 'name_from'],
  [null, 'name_to'],
  [null, 'earlier_names'],
  [null, 'network'],
  ['User', 'user', { hide: 3, wrap: true }],
  ['Matches', 'matches'],
  [null, 'used_matches'],
  [null, 'blocked_matches'],
  [null, 'touched_matches'],
  ['First seen', 'first_seen', { hide: 2 }],
  ['Last seen', 'last_seen', { hide: 1 }],
  [null, 'methods'],
  [null, 'access'],
  ['Sent', 'bytes_sent', { hide: 5 }],
  ['Received', 'bytes_received', { hide: 6 }],
  ['Days', 'days', { hide: 7 }],
])
const files = table<{ file: string; format: string; names: SpansByAddress }>([
  ['File', 'file', { wrap: true }],
  ['Format', 'format'],
  ['Names', 'names', { of: ({ names }) => names.size }],
])

const person = table<PersonRow>([
  ['Kind', 'kind'],
  ['When', 'at', { hide: 2 }],
  ['Platform', 'platform'],
  ['Client', 'client'],
  ['User', 'user', { hide: 3, wrap: true }],
  ['Matches', 'matches', { hide: 4 }],
  [null, 'bytes_sent', { of: ({ bytesSent }) => bytesSent || null }],
  [null, 'bytes_received', { of: ({ bytesReceived }) => bytesReceived || null }],
  ['About', 'text', { hide: 1, wrap: true }],
])
const PERSON = {
  texts: argument('<person...>', 'User names, addresses and pseudonyms of the person', z.array(z.string())),
  withAddresses: flag('--addresses', 'Include the addresses that the person used last'),
}

const groups = table<GroupUse>([
  ['Group', 'name', { wrap: true }],
  [null, 'kind', { of: ({ isNetwork }) => (isNetwork ? 'network' : 'group') }],
  ['Members', 'members', { hide: 3 }],
  ['Manager', 'manager', { hide: 1, of: ({ manager }) => manager || null }],
  ['Clients', 'clients'],
  ['Platforms', 'platforms', { of: ({ platformIds }) => platformIds.size }],
  ['Matches', 'matches'],
  ['Blocked', 'blocked', { hide: 2 }],
  ['Sent', 'bytes_sent', { of: ({ bytesSent }) => bytesSent || null }],
  ['Received', 'bytes_received', { hide: 4, of: ({ bytesReceived }) => bytesReceived || null }],
])

const LISTED = 100
const LISTED_MAX = 20_000

type ListRow = ListedClient & ReturnType<typeof nameFields> & Pick<ListedNames, 'found'>

/** `found`: a search has found an address by a name that it has no more. */
const list = (found: string | null) =>
  table<ListRow>([
    ['Client', 'client', { wrap: true }],
    [null, 'kind', { of: ({ isUser }) => (isUser ? 'user' : 'address') }],
    ['Addresses', 'addresses', { hide: 6, text: (value) => (value as readonly string[]).join(' ') }],
    ['Name', 'name', { hide: 4 }],
    [null, 'name_from'],
    [null, 'name_to'],
    [found, 'found_name', { wrap: true, of: ({ found }) => (found === undefined ? null : spanText(found)) }],
    ['Earlier names', 'earlier_names', { hide: 8, text: listText }],
    ['Network', 'network', { hide: 5 }],
    ['Platforms', 'platforms'],
    ['Highest risk', 'highest_risk', { hide: 3, of: ({ riskiest }) => riskiest()?.score ?? null }],
    [null, 'highest_risk_platform', { of: ({ riskiest }) => riskiest()?.name ?? null }],
    ['Matches', 'matches'],
    ['Blocked', 'blocked', { hide: 2 }],
    ['Sent', 'bytes_sent', { of: ({ bytesSent }) => bytesSent || null }],
    ['Received', 'bytes_received', { hide: 7, of: ({ bytesReceived }) => bytesReceived || null }],
    [null, 'first_seen'],
    ['Last seen', 'last_seen', { hide: 1 }],
  ])

const SORT_KEYS = {
  matches: ({ matches }: ListedClient) => matches,
  platforms: ({ platforms }: ListedClient) => platforms,
  risk: ({ riskiest }: ListedClient) => riskiest()?.score ?? 0,
  blocked: ({ blocked }: ListedClient) => blocked,
  sent: ({ bytesSent }: ListedClient) => bytesSent,
  last: ({ lastSeenMs }: ListedClient) => lastSeenMs,
}
const SORTS = ['matches', 'platforms', 'risk', 'blocked', 'sent', 'last'] as const

export const commands: Commands = {
  list: change('List the clients that use AI platforms: users, and addresses without a user', {
    params: {
      search: option('--search <text>', 'Show only clients with this user, host name, address or network'),
      group: option('--group <name>', 'Show only clients of this group or named network'),
      sort: option('--sort <column>', 'Show the highest of this column first', oneOf(SORTS).default('matches')),
      limit: limitOption('--limit <count>', 'Limit the list to this many rows', LISTED, LISTED_MAX),
    },
    run({ store, administration, registry, organization }, { search = '', group, sort, limit }) {
      if (group !== undefined) {
        const known = store.environment.read(() => groupNamesOf(store, organization))
        if (!known.includes(group)) throw unknownGroup(group, known)
      }
      const { platforms: catalog } = registry.catalogOf(organization.id)
      const { clients, total, others, isMade } = administration.clients.list(organization, catalog, {
        search: search.trim(),
        group,
      })
      // Each key once: that of the risk reads all platforms of a client.
      const keyed = clients.map((client) => ({ client, key: SORT_KEYS[sort](client) }))
      const sorted = keyed.sort((a, b) => b.key - a.key).slice(0, limit)
      // On standard error, so that JSON stays JSON.
      const note = (text: string): unknown => process.stderr.write(`${text}\n`)
      if (!isMade) note('The next scan makes the list of clients')
      else if (clients.length === 0 && search + (group ?? '') !== '')
        note(`No client matches ${JSON.stringify(search || group)}. ${searchedText(total)}`)
      if (clients.length > limit) note(`${limit} of ${clients.length} clients; for more: --limit ${clients.length}`)
      if (others.matches > 0) note(`Others: ${others.matches} matches of clients that are not listed`)
      const names = listedNames(store, organization.id, search.trim())
      const rows = sorted.map(({ client }) => {
        const shown = names(client)
        return { ...client, ...nameFields(shown), found: shown.found }
      })
      return list(rows.some(({ found }) => found !== undefined) ? 'Found name' : null)(rows)
    },
  }),
  show: change('Show the platforms that a client uses', {
    params: { client: argument('<client>', 'Address, pseudonym or user name') },
    run({ store, administration, registry, organization }, { client }) {
      const uses = administration.clients.ofClient(organization, client).platforms
      const names = new Map(registry.catalogOf(organization.id).platforms.map(({ id, name }) => [id, name]))
      const namesOfClient = store.clientNames.names(organization.id)
      return platforms(
        uses.map((use) => ({
          platform_id: use.platformId,
          platform_name: names.get(use.platformId) ?? use.platformId,
          ...clientRow(use, namesOfClient),
        })),
      )
    },
  }),
  export: change('Print all that is stored about a person', {
    params: PERSON,
    run({ store, administration, organization }, { texts, withAddresses }) {
      const found = personOf(store, organization, texts, withAddresses)
      administration.persons.noteExport(organization, found)
      return person(store.environment.read(() => personRows(store, organization, found)))
    },
  }),
  erase: change('Remove all that is stored about a person: use, events, names, groups and entries of the audit log', {
    params: PERSON,
    run({ store, administration, organization }, { texts, withAddresses }) {
      const found = personOf(store, organization, texts, withAddresses)
      const rows = store.environment.read(() => personRows(store, organization, found))
      if (rows.length === 0) throw new Fault('NOT_FOUND', `nothing is stored about ${found.join(', ')}`)
      administration.persons.erase(organization, found)
      for (const _step of administration.organizations.eraseClients(organization));
      const counts = new Map<string, number>()
      for (const { kind } of rows.slice(0, PERSON_ROWS_MAX)) counts.set(kind, (counts.get(kind) ?? 0) + 1)
      if (rows.length > PERSON_ROWS_MAX) process.stderr.write(`counted the first ${PERSON_ROWS_MAX} rows\n`)
      const data = Array.from(counts, ([kind, count]) => `${kind} (${count})`).join(', ')
      const columns = [['Erased', 'erased'] as const, ['Data', 'data'] as const]
      return { vertical: true, columns, rows: [{ erased: found.join(', '), data }] }
    },
  }),
  reveal: change('Decrypt the pseudonym of a client or user; the audit log records it', {
    params: { pseudonym: argument('<pseudonym>', 'Pseudonym: p- or u- and letters') },
    run({ administration, organization }, { pseudonym }) {
      const { kind, text } = administration.clients.reveal(organization, pseudonym)
      const columns = [['Pseudonym', 'pseudonym'] as const, [kind === 'client' ? 'Client' : 'User', 'text'] as const]
      return { vertical: true, columns, rows: [{ pseudonym, kind, text }] }
    },
  }),
  groups: group('Set the departments and teams of clients', {
    import: change('Replace the groups by those in a CSV file (user or address,group,manager)', {
      params: { file: argument('<file>', 'File: CSV with a row for each member') },
      read: ({ file }) => readGroups(textOf(file, CLIENT_GROUPS_FILE_BYTES_MAX), file),
      async run({ administration, clock, organization, store }, _, read) {
        administration.clientGroups.replace(organization, await storedGroups(store, organization, read))
        return groups(store.environment.read(() => groupUse(store, organization, clock.nowMs())))
      },
    }),
    list: query('List the groups and named networks with their use, most matches first', {
      run: ({ clock, organization, store }) =>
        groups(store.environment.read(() => groupUse(store, organization, clock.nowMs()))),
    }),
  }),
  names: group('Set the names of addresses', {
    import: change('Import the names of addresses from CSV files (address,name,from,to) or DHCP lease files', {
      params: {
        files: argument('<file...>', 'Files: CSV, or leases of ISC dhcpd, Kea or dnsmasq', z.array(z.string())),
      },
      read: ({ files }) =>
        files.map((file) => ({ file, ...readHostNames(textOf(file, CLIENT_NAMES_FILE_BYTES_MAX), file) })),
      run({ administration, organization }, _, read) {
        const all = new Map<string, readonly NameSpan[]>()
        for (const { names } of read)
          for (const [address, spans] of names) all.set(address, spans.reduce(withGiven, [...(all.get(address) ?? [])]))
        if (all.size > CLIENT_NAMES_MAX) throw new Fault('USAGE', `more than ${CLIENT_NAMES_MAX} addresses with a name`)
        administration.clientNames.importHosts(organization, all)
        return files(read)
      },
    }),
  }),
}

/** @throws Fault USAGE */
function textOf(file: string, bytesMax: number): string {
  return readInput(file, bytesMax, { what: '', code: 'USAGE' }).toString()
}
