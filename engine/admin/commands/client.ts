import { readFileSync, statSync } from 'node:fs'
import type { Command } from 'commander'
import { CLIENT_NAMES_FILE_BYTES_MAX, CLIENT_NAMES_MAX } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Column } from '../../process/table.ts'
import { namesOf } from '../client-use.ts'
import { readHostNames } from '../host-names-file.ts'
import { changeOptions, ofOrganization, show, withStore } from './context.ts'
import { clientRow } from './platform.ts'

interface Options {
  readonly org?: string
}

/** posture-admin client show | reveal | names import */
export function addClientCommands(client: Command): void {
  const one = ofOrganization(
    changeOptions(
      client
        .command('show')
        .description('Show the platforms that a client uses')
        .argument('<client>', 'Address, pseudonym or user name'),
    ),
  )
  one.action((text: string, { org }: Options) =>
    withStore(one, ({ store, administration, registry }) => {
      const organization = administration.organization(org)
      const { platforms } = administration.clients.ofClient(organization, text)
      const names = new Map(registry.catalogOf(organization.id).platforms.map(({ id, name }) => [id, name]))
      show(one, {
        columns: COLUMNS,
        rows: platforms.map((use) => ({
          platform_id: use.platformId,
          platform_name: names.get(use.platformId) ?? use.platformId,
          ...clientRow(use, namesOf(store, organization.id)),
        })),
      })
    }),
  )

  const reveal = ofOrganization(
    changeOptions(
      client
        .command('reveal')
        .description('Decrypt the pseudonym of a client or user; the audit log records it')
        .argument('<pseudonym>', 'Pseudonym: p- or u- and letters'),
    ),
  )
  reveal.action((pseudonym: string, { org }: Options) =>
    withStore(reveal, ({ administration }) => {
      const { kind, text } = administration.clients.reveal(administration.organization(org), pseudonym)
      show(reveal, {
        vertical: true,
        columns: [
          ['Pseudonym', 'pseudonym'],
          [kind === 'client' ? 'Client' : 'User', 'text'],
        ],
        rows: [{ pseudonym, kind, text }],
      })
    }),
  )

  const names = client.command('names').description('Set the names of addresses')
  const load = ofOrganization(
    changeOptions(
      names
        .command('import')
        .description('Replace the names of addresses by those in CSV files (address,name) or DHCP lease files')
        .argument('<file...>', 'Files: CSV, or leases of ISC dhcpd, Kea or dnsmasq'),
    ),
  )
  load.action((files: string[], { org }: Options) =>
    withStore(load, ({ administration }) => {
      const organization = administration.organization(org)
      const read = files.map((file) => ({ file, ...readHostNames(textOf(file), file) }))
      const all = new Map(read.flatMap((each) => [...each.names]))
      if (all.size > CLIENT_NAMES_MAX) throw new Fault('USAGE', `more than ${CLIENT_NAMES_MAX} addresses with a name`)
      administration.clientNames.replaceHosts(organization, all)
      show(load, {
        columns: [
          ['File', 'file', { wrap: true }],
          ['Format', 'format'],
          ['Names', 'names'],
        ],
        rows: read.map(({ file, format, names: { size } }) => ({ file, format, names: size })),
      })
    }),
  )
}

/** @throws Fault USAGE */
function textOf(file: string): string {
  try {
    const { size } = statSync(file)
    if (size > CLIENT_NAMES_FILE_BYTES_MAX)
      throw new Fault('USAGE', `${file}: larger than ${CLIENT_NAMES_FILE_BYTES_MAX} bytes`)
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Fault) throw error
    throw new Fault('USAGE', `${file}: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`)
  }
}

const COLUMNS: readonly Column[] = [
  ['Platform', 'platform_name'],
  ['Client', 'client', { hide: 4 }],
  ['User', 'user', { hide: 3, wrap: true }],
  ['Matches', 'matches'],
  ['First seen', 'first_seen', { hide: 2 }],
  ['Last seen', 'last_seen', { hide: 1 }],
  ['Sent', 'bytes_sent', { hide: 5 }],
  ['Received', 'bytes_received', { hide: 6 }],
  ['Days', 'days', { hide: 7 }],
]
