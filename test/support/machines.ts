import { ip } from './namespace.ts'

/** A machine: a network namespace with an address. */
export interface Machine {
  readonly address: string
  /** A command that executes another there. */
  readonly through: readonly string[]
}

const BRIDGE = 'br0'
const addressOf = (number: number): string => `10.96.0.${number}`
/** That of this process, on the bridge. */
export const OWN_ADDRESS = addressOf(254)

/**
 * Creates machines on a bridge in the namespace of this process. For programs that run in private
 * namespaces (namespace.ts).
 */
export function machinesOnBridge(names: readonly string[]): Machine[] {
  ip('link', 'set', 'lo', 'up')
  ip('link', 'add', BRIDGE, 'type', 'bridge')
  ip('address', 'add', `${OWN_ADDRESS}/24`, 'dev', BRIDGE)
  ip('link', 'set', BRIDGE, 'up')
  return names.map((name, index) => {
    const address = addressOf(index + 1)
    ip('netns', 'add', name)
    ip('link', 'add', `port-${index}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    ip('link', 'set', `port-${index}`, 'master', BRIDGE, 'up')
    ip('-netns', name, 'address', 'add', `${address}/24`, 'dev', 'eth0')
    for (const link of ['lo', 'eth0']) ip('-netns', name, 'link', 'set', link, 'up')
    // Not `ip netns exec`, which has a namespace of mounts of its own.
    return { address, through: ['nsenter', `--net=/run/netns/${name}`] }
  })
}
