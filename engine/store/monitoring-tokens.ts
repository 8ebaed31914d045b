import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { type Secret, Secrets } from './secrets.ts'

/** Which number of `05/06/2026` is the day. */
export const DAY_ORDERS = ['day-first', 'month-first'] as const

/** `visible` is the first 8 hex digits after the prefix. */
export interface MonitoringToken extends Secret {
  /** The zone of the clocks of the devices that use it, where their messages do not tell: UTC unless set. */
  readonly zone?: string
  /** How those devices write days, where their messages do not show it. */
  readonly dayOrder?: (typeof DAY_ORDERS)[number]
}

export function monitoringTokensOf(environment: Environment): Secrets<MonitoringToken> {
  return new Secrets(
    new Family<MonitoringToken>(environment.table('monitoring-tokens'), 'monitoring token'),
    environment.table('token-hashes'),
  )
}
