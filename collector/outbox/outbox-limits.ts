/** Instead of a directory: keep events in memory and lose them when the process ends. */
export const OUTBOX_IN_MEMORY = 'memory'

/** Limits of the waiting events. At either limit, the oldest events are dropped first. */
export interface OutboxLimits {
  /** Size of the pages that the queue uses. */
  readonly bytesMax: number
  /** Age since an event was written. */
  readonly ageMsMax: number
}

/** The last good release of the registry, next to the outbox, and the same while it is written. */
export const REGISTRY_FILE = 'registry.json'
export const REGISTRY_PART = 'registry.json.part'
