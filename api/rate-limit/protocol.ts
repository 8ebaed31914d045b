import { MINUTE_MS, SECOND_MS } from '../../engine/process/clock.ts'
import { type RateVerdict, WINDOW_MS } from './rate-limit.ts'

/*
 * What nodes of a cluster send each other for the rate limit of API keys. The primary is the home:
 * each request needs a permit of the home.
 *
 * A permit is granted at home at time T, and used by its node until T + PERMIT_MS at the latest. So
 * the home counts each grant for GRANT_MS, and any 60 s have at most 60 uses.
 */

/** A permit is valid for this time after its request was sent, by the clock of the requester. */
export const PERMIT_MS = SECOND_MS
/** How long a grant counts. */
export const GRANT_MS = WINDOW_MS + PERMIT_MS
/** The home grants to nodes whose report it has read within this time. */
export const ADMITTED_MS = 2 * MINUTE_MS
/** A node without a report for this time has no grant that counts. */
export const HOLDING_MS = ADMITTED_MS + PERMIT_MS + GRANT_MS
/** A key is named by the first bytes of its SHA-256. */
export const HASH_BYTES = 16
/** In a list of grants, the age in ms (u16) follows each hash. */
export const GRANT_BYTES = HASH_BYTES + 2

/** Verdicts have two bytes for each permit: what remains, or a state, and seconds to wait. */
export const VERDICT_BYTES = 2
export const REFUSED = 254
/** The home does not answer, or does not know yet what was granted before. */
export const UNAVAILABLE = 255

/** For requests that were not granted because the home is not reachable. */
export const RETRY_SECONDS = 1

/** Hashes and verdicts of several permits are concatenated. */
export type Question =
  | { readonly kind: 'permits'; readonly from: string; readonly hashes: Uint8Array }
  /** Grants of the home to itself, which another node has to know. */
  | { readonly kind: 'witness'; readonly from: string; readonly generation: number; readonly hashes: Uint8Array }
  /**
   * A new home asks for the grants that node `of` used: `of` itself, or its witnesses. After part
   * `after` of the answer, which begins with 0.
   */
  | { readonly kind: 'collect'; readonly generation: number; readonly of: string; readonly after: number }

export type Answer =
  | { readonly kind: 'permits'; readonly verdicts: Uint8Array }
  | { readonly kind: 'witness'; readonly isKept: boolean }
  | Collected

export interface Collected {
  readonly kind: 'collect'
  /** Whether the node knows all that it used, and witnessed, within GRANT_MS. */
  readonly isComplete: boolean
  /** Differs after each start of the node: parts are only those of one process. */
  readonly instance: string
  readonly grants: Uint8Array
  /** The part that this is. 0: there is none. */
  readonly part: number
}

/** Sends a question to a node. undefined: it did not answer within PERMIT_MS. */
export type Ask = (node: string, question: Question, done: (answer: Answer | undefined) => void) => void

/** The counts of the home. */
export interface Counts {
  take(keyHash: Buffer): RateVerdict
  /** Adds an earlier grant. Returns false if the counts are full. */
  add(keyHash: Buffer, ageMs: number): boolean
  clear(): void
}

export function unavailable(permits: number, seconds = RETRY_SECONDS): Uint8Array {
  const verdicts = new Uint8Array(permits * VERDICT_BYTES)
  for (let at = 0; at < verdicts.length; at += VERDICT_BYTES) {
    verdicts[at] = UNAVAILABLE
    verdicts[at + 1] = seconds
  }
  return verdicts
}

export function hashAt(hashes: Uint8Array, index: number): Buffer {
  return Buffer.from(hashes.buffer, hashes.byteOffset + index * HASH_BYTES, HASH_BYTES)
}

/** The indexes of the permits that were granted. */
export function grantedOf(verdicts: Uint8Array): number[] {
  const granted: number[] = []
  for (let at = 0; at < verdicts.length; at += VERDICT_BYTES) {
    if ((verdicts[at] ?? UNAVAILABLE) < REFUSED) granted.push(at / VERDICT_BYTES)
  }
  return granted
}
