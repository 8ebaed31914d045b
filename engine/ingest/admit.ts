import type { HttpRequest } from '../http/port.ts'
import { hashSecret, isMonitoringToken } from '../store/access-key.ts'
import type { MonitoringToken } from '../store/monitoring-tokens.ts'
import type { Store } from '../store/store.ts'

/**
 * Returns the active monitoring token with this text, or undefined. Malformed text is hashed and
 * looked up like any other, so that the response time does not reveal how close a guess is.
 */
export function admit(store: Store, token: string): MonitoringToken | undefined {
  const found = store.environment.read(() => store.monitoringTokens.byHash(hashSecret(token)))
  return isMonitoringToken(token) ? found : undefined
}

/**
 * Returns the token of an HTTPS request, or ''. RFC 6750 §2.1. The scheme is case-insensitive (RFC
 * 9110 §11.1); `Splunk` is that of Splunk's HTTP Event Collector.
 */
export function bearerToken(request: HttpRequest): string {
  return /^(?:bearer|splunk) +(\S+) *$/i.exec(request.header('authorization'))?.[1] ?? ''
}
