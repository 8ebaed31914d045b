import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { withoutBrackets } from '../../engine/process/host.ts'
import type { CollectorSettings } from '../config.ts'
import { httpsPeer, proxyOf } from '../forward/connection.ts'
import type { StepOutcome } from './step.ts'

/**
 * Resolves the endpoint's name as a connection does, by the system's configuration: hosts file,
 * name servers and so on.
 */
export async function checkResolution(settings: CollectorSettings): Promise<StepOutcome> {
  const { endpoint } = settings
  if (isIP(withoutBrackets(endpoint)) !== 0) return { result: 'skipped', found: `${endpoint} is an address` }
  try {
    const addresses = await lookup(endpoint, { all: true })
    return { result: 'ok', found: `${endpoint}: ${addresses.map(({ address }) => address).join(', ')}` }
  } catch (error) {
    const found = `${endpoint} does not resolve (${(error as NodeJS.ErrnoException).code})`
    if (settings.httpsEnabled && proxyOf(httpsPeer(settings)) !== undefined)
      return { result: 'skipped', found: `${found}; that is left to the proxy that HTTPS_PROXY names` }
    const remedy = endpoint.includes(':')
      ? 'give --endpoint the name alone, and the port by --https-port'
      : 'correct --endpoint, or see which name servers /etc/resolv.conf names'
    return { result: 'failed', code: 'SERVICE_UNREACHABLE', found, remedy }
  }
}
