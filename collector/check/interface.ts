import { readFileSync } from 'node:fs'
import { Fault } from '../../engine/process/error-codes.ts'
import { listInterfaces, noSuchInterface } from '../capture/interfaces.ts'
import { LiveCapture } from '../capture/live.ts'
import type { CollectorSettings } from '../config.ts'
import { LinkType } from '../decode/link.ts'
import type { StepOutcome } from './step.ts'

/**
 * Opens the interface as `run` does, in the main thread: the addon can be loaded in one thread of a process, and this
 * process is the step's own. The kernel closes the capture with it.
 *
 * @throws Fault CAPTURE_DENIED, or USAGE for ports that make no filter.
 */
export function checkInterface({ interface: name, dnsPorts, tlsPorts }: CollectorSettings): StepOutcome {
  const known = listInterfaces().find((each) => each.name === name)
  // Before it is opened: without permission libpcap does not say that there is no such interface.
  if (known === undefined) throw new Fault('CAPTURE_DENIED', noSuchInterface(name))
  const linkType = open(name, dnsPorts, tlsPorts)
  const linkName = Object.entries(LinkType).find(([, number]) => number === linkType)?.[0]
  if (linkName === undefined) {
    const found = `${name}: frames of link type ${linkType} are not decoded`
    return { result: 'failed', code: 'CAPTURE_DENIED', found, remedy: 'capture on another interface, or on "any"' }
  }
  const quiet = known.state === 'no carrier' ? ', so nothing arrives yet' : ''
  const addresses = known.addresses.length === 0 ? '' : `, ${known.addresses.join(', ')}`
  return { result: 'ok', found: `${name}: ${known.state}${quiet}, link type ${linkName} (${linkType})${addresses}` }
}

function open(name: string, dnsPorts: readonly number[], tlsPorts: readonly number[]): number {
  try {
    return new LiveCapture({ name }, dnsPorts, tlsPorts).linkType
  } catch (error) {
    if (!(error instanceof Fault) || !error.message.includes('no permission') || mayCapture()) throw error
    const ways = [
      `setcap cap_net_raw=ep ${process.execPath}`,
      'AmbientCapabilities=CAP_NET_RAW (systemd)',
      '--cap-add NET_RAW (container)',
    ]
    const remedy = `run as root, or give it CAP_NET_RAW: ${ways.join(', ')}`
    throw new Fault('CAPTURE_DENIED', `${name}: no permission to capture; ${remedy}`, { cause: error })
  }
}

/** <linux/capability.h> */
const CAP_NET_RAW = 13n

/** Whether the process has CAP_NET_RAW in force (proc_pid_status(5), CapEff). */
function mayCapture(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
  return ((BigInt(`0x${effective}`) >> CAP_NET_RAW) & 1n) === 1n
}
