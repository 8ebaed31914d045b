import type { CollectorSettings } from '../config.ts'
import { HttpsForwarder } from '../forward/https.ts'
import type { StepOutcome } from './step.ts'

/** Sends a batch without events, which the service answers like any other but does not store. */
export async function checkToken(settings: CollectorSettings): Promise<StepOutcome> {
  const forwarder = new HttpsForwarder(settings)
  const outcome = await forwarder.send([]).finally(() => forwarder.close())
  switch (outcome.kind) {
    case 'accepted':
      return { result: 'ok', found: 'the service accepts the token' }
    case 'unauthorized': {
      const make = '"posture-admin token generate LABEL --org ORGANIZATION" makes one on the service\'s host'
      return {
        result: 'failed',
        code: 'TOKEN_REFUSED',
        found: outcome.why,
        remedy: `set SVC_TOKEN_FILE or SVC_TOKEN to a token that is not revoked; ${make}`,
      }
    }
    case 'retry':
    case 'refused':
    case 'notPassed': {
      const remedy = "see the service's log, or whether it is the service that answers there"
      return { result: 'failed', code: 'SERVICE_UNREACHABLE', found: outcome.why, remedy }
    }
  }
}
