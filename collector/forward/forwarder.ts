import type { Event } from '../../engine/event.ts'

/** What became of a batch, and so who may try again. */
export type Outcome =
  /** With the service, on its disk. `rejected` of the events it will never take; they count as refused. */
  | { readonly kind: 'accepted'; readonly duplicates: number; readonly rejected: readonly string[] }
  /** Not now: trying again may help. `afterMs` is what the service asked for. */
  | { readonly kind: 'retry'; readonly why: string; readonly afterMs?: number }
  /** The batch as such is not taken, and would not be the next time; a smaller one may be. */
  | { readonly kind: 'refused'; readonly why: string }
  /** Somebody on the way to the service does not pass the batch on. A smaller one may pass; nothing is given up. */
  | { readonly kind: 'notPassed'; readonly why: string }
  /** The token is not known. Nothing will be taken until it is replaced. */
  | { readonly kind: 'unauthorised'; readonly why: string }

/** Sends batches of events to the service. */
export interface Forwarder {
  send(events: readonly Event[]): Promise<Outcome>
  /** Cuts what is under way; a send that was then answers `retry`. */
  close(): Promise<void>
}
