import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import type { FormatRule } from './format-rule.ts'
import { type Secret, Secrets } from './secrets.ts'

/** Whether `05/06/2026` is 5 June or May 6. */
export const DAY_ORDERS = ['day-first', 'month-first'] as const

/** `visible` is the first 8 hex digits after the prefix. */
export interface MonitoringToken extends Secret {
  /** The time zone of the devices' clocks, for messages without one. Default: UTC. */
  readonly zone?: string
  /** The day order in the devices' messages, if it is ambiguous. */
  readonly dayOrder?: (typeof DAY_ORDERS)[number]
  /** Whether the devices' messages name the original clients behind proxies, reliably. */
  readonly forwardedClients?: boolean
  /** How messages are read that no other format reads. */
  readonly formatRule?: FormatRule
}

export function monitoringTokensOf(environment: Environment): Secrets<MonitoringToken> {
  return new Secrets(
    new Family<MonitoringToken>(environment.table('monitoring-tokens'), 'monitoring token'),
    environment.table('token-hashes'),
  )
}
