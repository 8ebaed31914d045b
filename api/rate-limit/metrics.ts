import type { MetricRow } from '../../engine/process/metrics.ts'

export interface PermitState {
  readonly allowed: number
  readonly answered: number
  readonly unavailable: number
  readonly allowanceFull: number
  readonly notBound: number
  readonly notRemembered: number
  readonly unknownSeconds: number
}

/** The Prometheus metrics of the rate limit of API keys on a node of a cluster. */
export function permitRows(state: PermitState): MetricRow[] {
  const { allowed, answered, unavailable, allowanceFull, notBound, notRemembered, unknownSeconds } = state
  return [
    [
      'posture_cluster_permits_total',
      'counter',
      'API requests of this node: within its allowance, or answered by the primary; those without an answer in time, or beyond the queue of a thread, got 503',
      { allowance: allowed, answered, unavailable },
      'outcome',
    ],
    [
      'posture_cluster_allowance_full_total',
      'counter',
      'API requests for which this node asked the primary because its table of allowances was full',
      allowanceFull,
    ],
    [
      'posture_cluster_permits_not_bound_total',
      'counter',
      'API requests that got 503 because too many keys were beyond their allowance in a minute, on the primary',
      notBound,
    ],
    [
      'posture_cluster_permits_not_remembered_total',
      'counter',
      'API requests that got 503 because this node had too many permits to remember',
      notRemembered,
    ],
    [
      'posture_cluster_permits_unknown_seconds',
      'gauge',
      'Longest time until a new primary knows what earlier ones granted, and answers',
      unknownSeconds,
    ],
  ]
}
