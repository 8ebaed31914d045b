import type { HttpRequest } from '../http/port.ts'
import { hashSecret, isMonitoringToken } from '../store/access-key.ts'
import type { MonitoringToken } from '../store/monitoring-tokens.ts'
import type { Store } from '../store/store.ts'

/**
 * The active monitoring token that this text is, or undefined. Text of the wrong form is hashed and looked up like any
 * other, so that the time of the answer does not tell how near a guess came.
 */
export function admit(store: Store, token: string): MonitoringToken | undefined {
  const found = store.environment.read(() => store.monitoringTokens.byHash(hashSecret(token)))
  return isMonitoringToken(token) ? found : undefined
}

/** The token of an HTTPS request; '' where there is none. RFC 6750 §2.1; the scheme's case does not matter (RFC 9110 §11.1). */
export function bearerToken(request: HttpRequest): string {
  return /^bearer +(\S+) *$/i.exec(request.header('authorization'))?.[1] ?? ''
}
