import type { Command } from 'commander'
import type { NamedNetwork } from '../../store/client-names.ts'
import { changeOptions, ofOrganization, sharedOptions, show, withStore } from './context.ts'

interface Options {
  readonly org?: string
}

/** posture-admin network add | list | remove */
export function addNetworkCommands(network: Command): void {
  const add = ofOrganization(
    changeOptions(
      network
        .command('add')
        .description('Name a network, or rename it')
        .argument('<network>', 'Network such as 10.2.0.0/16')
        .argument('<name>', 'Name such as "Berlin office"'),
    ),
  )
  add.action((text: string, name: string, { org }: Options) =>
    withStore(add, ({ administration }) => {
      print(add, [administration.clientNames.addNetwork(administration.organization(org), text, name)])
    }),
  )

  const list = ofOrganization(sharedOptions(network.command('list').description('List the named networks')))
  list.action(({ org }: Options) =>
    withStore(list, ({ store, administration }) => {
      print(list, store.clientNames.networks(administration.organization(org).id))
    }),
  )

  const remove = ofOrganization(
    changeOptions(
      network
        .command('remove')
        .description('Remove the name of a network')
        .argument('<network>', 'Network such as 10.2.0.0/16'),
    ),
  )
  remove.action((text: string, { org }: Options) =>
    withStore(remove, ({ administration }) => {
      const removed = administration.clientNames.removeNetwork(administration.organization(org), text)
      show(remove, { columns: [['Removed', 'network']], rows: [{ network: removed }] })
    }),
  )
}

function print(command: Command, networks: readonly NamedNetwork[]): void {
  show(command, {
    columns: [
      ['Network', 'network'],
      ['Name', 'name', { wrap: true }],
    ],
    rows: networks.map((network) => ({ ...network })),
  })
}
