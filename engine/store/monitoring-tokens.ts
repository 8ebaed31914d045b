import type { Environment } from './environment.ts'
import { Family } from './family.ts'
import { type Secret, Secrets } from './secrets.ts'

/** `visible` is the first 8 hex digits after the prefix. */
export type MonitoringToken = Secret

export function monitoringTokensOf(environment: Environment): Secrets<MonitoringToken> {
  return new Secrets(
    new Family<MonitoringToken>(environment.table('monitoring-tokens'), 'monitoring token'),
    environment.table('token-hashes'),
  )
}
