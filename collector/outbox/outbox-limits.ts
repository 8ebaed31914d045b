/** Instead of a directory: the events are in memory, and end with the process. */
export const OUTBOX_IN_MEMORY = 'memory'

/** What may wait. At either limit the oldest events go first. */
export interface OutboxLimits {
  /** Of the pages that the queue takes. */
  readonly bytesMax: number
  /** Since an event was written. */
  readonly ageMsMax: number
}
