import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { askLocal, LocalServer } from '../../engine/kernel/process/local-server.ts'
import type { CollectorSettings } from '../config.ts'
import type { StepOutcome } from './step.ts'

/**
 * Listens on the local endpoint's port, then closes it. A collector that already runs there is not
 * a failure.
 */
export async function checkHealth({ healthPort }: CollectorSettings): Promise<StepOutcome> {
  try {
    const server = await LocalServer.listen('HEALTH_PORT', healthPort, {})
    await server.close()
    return { result: 'ok', found: healthPort === 0 ? 'the system chooses a port' : `127.0.0.1:${healthPort} is free` }
  } catch (error) {
    if (!isFault(error, 'PORT_TAKEN') || !(await isCollector(healthPort))) throw error
    return {
      result: 'ok',
      found: `a collector answers at 127.0.0.1:${healthPort}; a second one needs another HEALTH_PORT`,
    }
  }
}

async function isCollector(port: number): Promise<boolean> {
  try {
    const { text } = await askLocal(port, '/health')
    return 'events_captured' in (JSON.parse(text) as object)
  } catch {
    return false
  }
}
