import { MINUTE_MS, SECOND_MS } from '../../engine/process/clock.ts'
import { type RateVerdict, REQUESTS_PER_WINDOW, WINDOW_MS } from './rate-limit.ts'

/*
 * What nodes of a cluster send each other for the rate limit of API keys. The primary is the home.
 *
 * A request needs a permit of the home, or is within the allowance of its node.
 *
 * A permit is granted at home at time T, and used by its node until T + PERMIT_MS at the latest. So
 * the home counts each grant for GRANT_MS, and any 60 s have at most 60 uses.
 *
 * The home leases an allowance to each node: a number of requests of each key in a window. The
 * allowances of all nodes together are within the limit. Before the home grants a permit of a key,
 * it binds the key: each node with an allowance reports its uses, and makes no more for HOLD_MS.
 */

/** A permit is valid for this time after its request was sent, by the clock of the requester. */
export const PERMIT_MS = SECOND_MS
/** How long a grant counts, and a use of an allowance. */
export const GRANT_MS = WINDOW_MS + PERMIT_MS
/** For clocks that differ by less than 3%, within two minutes. */
const CLOCK_ERROR_MS = 4 * SECOND_MS
/** The home grants to nodes whose report it has read within this time. */
export const ADMITTED_MS = 2 * MINUTE_MS
/** A node without a report for this time has no grant that counts. */
export const HOLDING_MS = ADMITTED_MS + PERMIT_MS + GRANT_MS + CLOCK_ERROR_MS

/**
 * A lease of an allowance ends this long after it was asked for, by the clock of the node. Longer
 * than an election of brokers and of a primary.
 */
export const LEASE_MS = 20 * SECOND_MS
export const RENEW_EVERY_MS = 2 * SECOND_MS
/** A node without a report for this time has no use of an allowance that counts. */
export const LEASING_MS = ADMITTED_MS + LEASE_MS + GRANT_MS + CLOCK_ERROR_MS
/** The home grants permits of a key for this time after it has asked the nodes to hold it. */
export const BOUND_MS = WINDOW_MS
/** From this age on, the home binds a key again while it still grants. */
export const REBIND_MS = 50 * SECOND_MS
/** How long a node holds a key: until all grants of the home have left the window. */
export const HOLD_MS = BOUND_MS + PERMIT_MS + WINDOW_MS + CLOCK_ERROR_MS
/**
 * How long a node with a new lease waits before it uses its allowance, because the home has not
 * asked it before.
 */
export const FREE_AFTER_MS = HOLD_MS
/** How long the home waits for nodes to hold a key. Well within PERMIT_MS. */
export const BIND_WAIT_MS = 400
/** A node that did not answer is not asked to hold keys for this time. */
export const NO_HOLD_MS = 5 * SECOND_MS

/** A key is named by the first bytes of its SHA-256. */
export const HASH_BYTES = 16
/** In a list of grants, the age in ms (u16) follows each hash. */
export const GRANT_BYTES = HASH_BYTES + 2
/** In a list of uses, instead of their number: the node had no row for the key. */
export const NOT_HELD = 255

/** Verdicts have two bytes for each permit: what remains, or a state, and seconds to wait. */
export const VERDICT_BYTES = 2
export const REFUSED = 254
/** The home does not answer, or does not know yet what was granted before. */
export const UNAVAILABLE = 255

/** For requests that were not granted because the home is not reachable. */
export const RETRY_SECONDS = 1

/** The largest allowance: 4 nodes may have it. */
export const ALLOWANCE_MAX = 14

/** Requests of a key that each node may use without asking. */
export interface Share {
  readonly allowance: number
  /** Requests of a key that all other nodes together may use without asking. */
  readonly others: number
}

const SHARES: readonly (readonly [nodes: number, share: Share])[] = [4, 8, 16].map((nodes) => {
  // One less than a whole share, so that a key whose allowance is used up has at least 4 left.
  const allowance = Math.floor(REQUESTS_PER_WINDOW / nodes) - 1
  return [nodes, { allowance, others: (nodes - 1) * allowance }]
})

/** Returns the share of each node by their number. undefined: there are too many. */
export function shareOf(nodes: number): Share | undefined {
  return SHARES.find(([nodesMax]) => nodes <= nodesMax)?.[1]
}

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
  | LeaseQuestion
  /** Asks a node to hold keys. */
  | { readonly kind: 'bind'; readonly hashes: Uint8Array }

/** A node asks for the allowance, and says what it has now. */
export interface LeaseQuestion {
  readonly kind: 'lease'
  readonly from: string
  /** Differs after each start of the node. */
  readonly instance: string
  /** 0: it has no lease. */
  readonly allowance: number
  /** When the node may use it. */
  readonly freeInMs: number
}

export interface LeaseAnswer extends Share {
  readonly kind: 'lease'
  readonly freeInMs: number
}

export type Answer =
  | { readonly kind: 'permits'; readonly verdicts: Uint8Array }
  | { readonly kind: 'witness'; readonly isKept: boolean }
  | Collected
  | LeaseAnswer
  | Held

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

/** From now on, the node uses no allowance for the keys that were asked for. */
export interface Held {
  readonly kind: 'bind'
  /** Whether the node knows all that it used within GRANT_MS. */
  readonly isComplete: boolean
  /** For each key: number of uses within GRANT_MS (u8), and the age of each in ms (u16). */
  readonly uses: Uint8Array
}

/** Sends a question to a node. undefined: it did not answer in time. */
export type Ask = (
  node: string,
  question: Question,
  done: (answer: Answer | undefined) => void,
  /** Default: PERMIT_MS. */
  timeoutMs?: number,
) => void

/** The counts of the home. */
export interface Counts {
  /** @param reserved requests that may have been made elsewhere */
  take(keyHash: Buffer, reserved: number): RateVerdict
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

/** A name of a key, for maps. */
export function keyName(hash: Buffer): string {
  return hash.toString('latin1', 0, HASH_BYTES)
}

/** The indexes of the permits that were granted. */
export function grantedOf(verdicts: Uint8Array): number[] {
  const granted: number[] = []
  for (let at = 0; at < verdicts.length; at += VERDICT_BYTES) {
    if ((verdicts[at] ?? UNAVAILABLE) < REFUSED) granted.push(at / VERDICT_BYTES)
  }
  return granted
}

/** The uses of keys, as in the answer of a node that holds them. undefined: no row for the key. */
export function packUses(agesMs: readonly (readonly number[] | undefined)[]): Buffer {
  const bytes = Buffer.alloc(agesMs.reduce((sum, ages) => sum + 1 + 2 * (ages?.length ?? 0), 0))
  let at = 0
  for (const ages of agesMs) {
    at = bytes.writeUInt8(ages?.length ?? NOT_HELD, at)
    // Rounded down, so that a use counts slightly longer.
    for (const ageMs of ages ?? []) at = bytes.writeUInt16LE(Math.max(0, Math.floor(ageMs)), at)
  }
  return bytes
}

/** @throws RangeError if there are too few bytes */
export function unpackUses(uses: Uint8Array, keys: number): (readonly number[] | undefined)[] {
  const bytes = Buffer.from(uses.buffer, uses.byteOffset, uses.length)
  let at = 0
  return Array.from({ length: keys }, () => {
    const count = bytes.readUInt8(at++)
    if (count === NOT_HELD) return undefined
    return Array.from({ length: count }, () => {
      at += 2
      return bytes.readUInt16LE(at - 2)
    })
  })
}
