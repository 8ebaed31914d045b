import type { CollectorSettings } from '../config.ts'
import { connectionProblem, syslogPeer, urlOf } from '../forward/connection.ts'
import { StreamLink } from '../forward/syslog-stream.ts'
import type { StepOutcome } from './step.ts'
import { connectionRemedy, tryTls } from './tls.ts'

const NAMES = { portSetting: '--syslog-port', listener: 'syslog listener' } as const

/**
 * Connects as the forwarder does, and sends nothing. UDP has no answers, so nothing can be tested.
 */
export async function checkSyslog(settings: CollectorSettings): Promise<StepOutcome> {
  const peer = syslogPeer(settings)
  if (peer.scheme === 'tls') return tryTls(peer, NAMES)
  if (peer.scheme === 'udp')
    return { result: 'skipped', found: `${urlOf(peer)}: whether datagrams arrive cannot be seen from here` }
  const link = new StreamLink(peer)
  try {
    await link.open()
    return { result: 'ok', found: `${urlOf(peer)} accepts connections, in plain text` }
  } catch (error) {
    const { problem, why } = connectionProblem(error, peer)
    return { result: 'failed', code: 'SERVICE_UNREACHABLE', found: why, remedy: connectionRemedy(problem, peer, NAMES) }
  } finally {
    await link.close()
  }
}
