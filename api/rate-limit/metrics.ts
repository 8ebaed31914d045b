import type { MetricRow } from '../../engine/process/metrics.ts'

export interface PermitState {
  readonly answered: number
  readonly unavailable: number
  readonly notRemembered: number
  readonly unknownSeconds: number
}

/** The Prometheus metrics of the rate limit of API keys on a node of a cluster. */
export function permitRows({ answered, unavailable, notRemembered, unknownSeconds }: PermitState): MetricRow[] {
  return [
    [
      'posture_cluster_permits_total',
      'counter',
      'API requests of this node for which it asked the primary; those that the primary did not answer got 503',
      { answered, unavailable },
      'outcome',
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
