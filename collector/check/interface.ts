import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { listInterfaces, noSuchInterface } from '../capture/interfaces.ts'
import { openSession } from '../capture/live.ts'
import { type CollectorSettings, liveOptions } from '../config.ts'
import { LinkType } from '../decode/link.ts'
import type { StepOutcome } from './step.ts'

/**
 * Opens the interface as `run` does, in the main thread: only one thread of a process can load the
 * addon, and this process is the step's own. The kernel closes the capture when the process ends.
 *
 * @throws Fault CAPTURE_DENIED, or USAGE for an invalid expression.
 */
export function checkInterface(settings: CollectorSettings): StepOutcome {
  const name = settings.interface
  const known = listInterfaces().find((each) => each.name === name)
  // Checked first: without permission, libpcap does not report a missing interface.
  if (known === undefined) throw new Fault('CAPTURE_DENIED', noSuchInterface(name))
  const { linkType } = openSession(liveOptions(settings), settings, 'wide', () => {})
  const linkName = Object.entries(LinkType).find(([, number]) => number === linkType)?.[0]
  if (linkName === undefined) {
    const found = `${name}: frames of link type ${linkType} are not decoded`
    return { result: 'failed', code: 'CAPTURE_DENIED', found, fix: 'capture on another interface, or on "any"' }
  }
  const quiet = known.state === 'no carrier' ? ', so nothing arrives yet' : ''
  const addresses = known.addresses.length === 0 ? '' : `, ${known.addresses.join(', ')}`
  return { result: 'ok', found: `${name}: ${known.state}${quiet}, link type ${linkName} (${linkType})${addresses}` }
}
