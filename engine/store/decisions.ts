import { DECIDED_PLATFORMS_MAX, DECISIONS_KEPT_MAX } from '../limits.ts'
import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'

/** What an organization decided about a platform. `withdrawn` ends a decision. */
export const DECISION_KINDS = ['approved', 'rejected', 'withdrawn'] as const
export type DecisionKind = (typeof DECISION_KINDS)[number]

/** What a decision means at some time. */
export const DECISION_STATES = ['waiting', 'approved', 'rejected', 'expired'] as const
export type DecisionState = (typeof DECISION_STATES)[number]

/** A decision about one platform of an organization. */
export interface Decision {
  /** Of the registry. The platform may have left it since. */
  readonly platformId: string
  readonly kind: DecisionKind
  /** '' if none. */
  readonly note: string
  /** Who is responsible for the use of the platform, in free text; '' if nobody is named. */
  readonly owner: string
  /** The decision no longer counts from this time on, in milliseconds since 1970. 0: never. */
  readonly expiresAtMs: number
  /** As in the audit log: `operator root`, or `member alice@acme.example`. */
  readonly decidedBy: string
  readonly decidedAtMs: number
  /** Numbers the decisions about a platform, from 1. */
  readonly sequence: number
}

/** The state of a platform with this decision, or without one. */
export function decisionState(decision: Decision | undefined, nowMs: number): DecisionState {
  if (decision === undefined || decision.kind === 'withdrawn') return 'waiting'
  return hasExpired(decision, nowMs) ? 'expired' : decision.kind
}

function hasExpired({ expiresAtMs }: Decision, nowMs: number): boolean {
  return expiresAtMs !== 0 && expiresAtMs <= nowMs
}

/** The decisions of an organization that count at some time. */
export interface DecisionsInForce {
  /** Ids of the approved platforms. */
  readonly approved: ReadonlySet<string>
  /** The state of each platform with a decision, by platform id. The others wait. */
  readonly states: ReadonlyMap<string, DecisionState>
  /** When the next of them expires, in milliseconds since 1970. Absent if none does. */
  readonly nextExpiryMs?: number
}

/**
 * The last decision of each organization about each platform, and the decisions before it:
 *
 *   decisions       organization (16) + platform id                     Decision
 *   past-decisions  organization (16) + platform id, 0 + sequence (8)   Decision
 *
 * A withdrawal is a decision, too, so that the history of a platform remains.
 */
export class Decisions {
  readonly #last: Family<Decision>
  readonly #past: Family<Decision>

  constructor(environment: Environment) {
    this.#last = new Family(environment.table('decisions'), 'decision')
    this.#past = new Family(environment.table('past-decisions'), 'past decision')
  }

  /** The last decision about a platform; it may have expired or be a withdrawal. */
  get(organizationId: string, platformId: string): Decision | undefined {
    return this.#last.get(lastKey(organizationId, platformId))
  }

  /** The last decision about each platform, by platform id. */
  ofOrganization(organizationId: string): Decision[] {
    return Array.from(this.#last.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  inForce(organizationId: string, nowMs: number): DecisionsInForce {
    const approved = new Set<string>()
    const states = new Map<string, DecisionState>()
    let nextExpiryMs: number | undefined
    for (const { value: decision } of this.#last.range(uuidBytes(organizationId))) {
      const { platformId, expiresAtMs } = decision
      const state = decisionState(decision, nowMs)
      states.set(platformId, state)
      if (state === 'approved') approved.add(platformId)
      const willExpire = expiresAtMs !== 0 && (state === 'approved' || state === 'rejected')
      if (willExpire) nextExpiryMs = Math.min(nextExpiryMs ?? expiresAtMs, expiresAtMs)
    }
    return { approved, states, ...(nextExpiryMs === undefined ? {} : { nextExpiryMs }) }
  }

  /** All kept decisions about a platform, newest first. */
  history(organizationId: string, platformId: string): Decision[] {
    const last = this.get(organizationId, platformId)
    if (last === undefined) return []
    return [last, ...this.#past.newest(pastPrefix(organizationId, platformId), DECISIONS_KEPT_MAX - 1)]
  }

  /**
   * Stores decisions about different platforms, each as the last one about its platform. Beyond the
   * limits, forgets the oldest. Requires a write transaction.
   *
   * @returns false if decisions about too many other platforms count; abort the transaction
   */
  putAll(organizationId: string, given: readonly Omit<Decision, 'sequence'>[], nowMs: number): boolean {
    const pairs = given.map((decision) => ({ decision, before: this.get(organizationId, decision.platformId) }))
    const added = pairs.filter(({ before }) => before === undefined).length
    const decided = new Set(given.map(({ platformId }) => platformId))
    if (added > 0 && !this.#makeRoom(organizationId, added, decided, nowMs)) return false
    for (const { decision, before } of pairs) {
      const { platformId } = decision
      const sequence = (before?.sequence ?? 0) + 1
      if (before !== undefined) {
        this.#past.put(pastKey(organizationId, platformId, before.sequence), before)
        const oldest = sequence - DECISIONS_KEPT_MAX
        if (oldest > 0) this.#past.remove(pastKey(organizationId, platformId, oldest))
      }
      this.#last.put(lastKey(organizationId, platformId), { ...decision, sequence })
    }
    return true
  }

  /** Forgets the platforms whose decisions ended the longest ago, if there would be too many. */
  #makeRoom(organizationId: string, added: number, kept: ReadonlySet<string>, nowMs: number): boolean {
    const count = Array.from(this.#last.keys(uuidBytes(organizationId))).length
    const excess = count + added - DECIDED_PLATFORMS_MAX
    if (excess <= 0) return true
    const ended = this.ofOrganization(organizationId).filter((decision) => {
      return !kept.has(decision.platformId) && (decision.kind === 'withdrawn' || hasExpired(decision, nowMs))
    })
    if (ended.length < excess) return false
    ended.sort((a, b) => endOf(a) - endOf(b))
    for (const { platformId } of ended.slice(0, excess)) {
      const past = [...this.#past.keys(pastPrefix(organizationId, platformId))]
      for (const key of past) this.#past.remove(key)
      this.#last.remove(lastKey(organizationId, platformId))
    }
    return true
  }
}

function endOf({ kind, decidedAtMs, expiresAtMs }: Decision): number {
  return kind === 'withdrawn' ? decidedAtMs : expiresAtMs
}

function lastKey(organizationId: string, platformId: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(platformId)])
}

/** No platform id contains the byte 0, so no prefix is the beginning of another. */
function pastPrefix(organizationId: string, platformId: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(`${platformId}\0`)])
}

function pastKey(organizationId: string, platformId: string, sequence: number): Buffer {
  return Buffer.concat([pastPrefix(organizationId, platformId), u64Bytes(sequence)])
}
