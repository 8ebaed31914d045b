import type { NamedNetwork } from '../store/client-names.ts'
import { argument, type Commands, change, query, table } from './command.ts'

const networks = table<NamedNetwork>([
  ['Network', 'network'],
  ['Name', 'name', { wrap: true }],
])
const removed = table<{ network: string }>([['Removed', 'network']])
const NETWORK = argument('<network>', 'Network such as 10.2.0.0/16')

export const commands: Commands = {
  add: change('Name a network, or rename it', {
    params: { network: NETWORK, name: argument('<name>', 'Name such as "Berlin office"') },
    run: ({ administration, organization }, { network, name }) =>
      networks([administration.clientNames.addNetwork(organization, network, name)]),
  }),
  list: query('List the named networks', {
    run: ({ store, organization }) => networks(store.clientNames.networks(organization.id)),
  }),
  remove: change('Remove the name of a network', {
    params: { network: NETWORK },
    run: ({ administration, organization }, { network }) =>
      removed([{ network: administration.clientNames.removeNetwork(organization, network) }]),
  }),
}
