import type { Environment } from '../kernel/lmdb/environment.ts'
import { DECIDED_PLATFORMS_MAX, DECISIONS_KEPT_MAX } from '../limits.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes } from './keys.ts'

/** What an organization decided about a platform. `withdrawn` ends a decision. */
export type DecisionKind = 'approved' | 'rejected' | 'withdrawn'

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
  /** The plan that an approval is for, as facts of the registry name it. Absent: any. */
  readonly plan?: string
  /** The decision no longer counts from this time on, in milliseconds since 1970. 0: never. */
  readonly expiresAtMs: number
  /** As in the audit log: `operator root`, or `member alice@acme.example`. */
  readonly decidedBy: string
  readonly decidedAtMs: number
  /** Numbers the decisions about a platform, from 1. */
  readonly sequence: number
  /** Made by an undo: the sequence of the decision that counts again, 0 if there was none. */
  readonly restores?: number
}

/** The state of a platform with this decision, or without one. */
export function decisionState(decision: LastDecision | undefined, nowMs: number): DecisionState {
  if (decision === undefined || decision.kind === 'withdrawn') return 'waiting'
  return hasExpired(decision, nowMs) ? 'expired' : decision.kind
}

function hasExpired({ expiresAtMs }: LastDecision, nowMs: number): boolean {
  return expiresAtMs !== 0 && expiresAtMs <= nowMs
}

/** The decisions of an organization that count at some time. */
export interface DecisionsInForce {
  /** Ids of the approved platforms. */
  readonly approved: ReadonlySet<string>
  /** The state of each platform with a decision, by platform id. The others wait. */
  readonly states: ReadonlyMap<string, DecisionState>
  /** The plans of approvals that name one, by platform id. */
  readonly plans: ReadonlyMap<string, string>
  /** When the next of them expires, in milliseconds since 1970. Absent if none does. */
  readonly nextExpiryMs?: number
}

/** The parts of the last decision about a platform that scans and lists read. */
export interface LastDecision {
  readonly kind: DecisionKind
  readonly plan?: string
  readonly expiresAtMs: number
  readonly decidedAtMs: number
  readonly sequence: number
}

/**
 * The decisions of each organization:
 *
 *   decisions         organization (16)                                  LastDecision by platform
 *   decision-history  organization (16) + platform id, 0 + sequence (8)  Decision
 *
 * Every scan and list of platforms reads the last decisions about all platforms, so they are one
 * record; the texts are only in the history. A withdrawal is a decision, too, so that the history
 * of a platform remains.
 */
export class Decisions {
  readonly #last: Family<Readonly<Record<string, LastDecision>>>
  readonly #history: Family<Decision>

  constructor(environment: Environment) {
    this.#last = new Family(environment.table('decisions'), 'last decisions')
    this.#history = new Family(environment.table('decision-history'), 'decision')
  }

  /** The last decisions, by platform id. */
  last(organizationId: string): Map<string, LastDecision> {
    return new Map(Object.entries(this.#last.get(uuidBytes(organizationId)) ?? {}))
  }

  /** The last decision about a platform; it may have expired or be a withdrawal. */
  get(organizationId: string, platformId: string): Decision | undefined {
    const last = this.last(organizationId).get(platformId)
    return last && this.#history.get(historyKey(organizationId, platformId, last.sequence))
  }

  /** Like get, for many platforms: the record of all last decisions is read once. */
  ofPlatforms(organizationId: string, platformIds: readonly string[]): Map<string, Decision> {
    const last = this.last(organizationId)
    const found = new Map<string, Decision>()
    for (const platformId of platformIds) {
      const { sequence } = last.get(platformId) ?? {}
      const decision = sequence && this.#history.get(historyKey(organizationId, platformId, sequence))
      if (decision) found.set(platformId, decision)
    }
    return found
  }

  /** The last decision about each platform, by platform id. */
  ofOrganization(organizationId: string): Decision[] {
    return [...this.last(organizationId)]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([platformId, { sequence }]) => {
        return this.#history.get(historyKey(organizationId, platformId, sequence)) ?? []
      })
  }

  inForce(organizationId: string, nowMs: number): DecisionsInForce {
    const approved = new Set<string>()
    const states = new Map<string, DecisionState>()
    const plans = new Map<string, string>()
    let nextExpiryMs: number | undefined
    for (const [platformId, decision] of this.last(organizationId)) {
      const { expiresAtMs, plan } = decision
      const state = decisionState(decision, nowMs)
      states.set(platformId, state)
      if (state === 'approved') {
        approved.add(platformId)
        if (plan !== undefined) plans.set(platformId, plan)
      }
      const willExpire = expiresAtMs !== 0 && (state === 'approved' || state === 'rejected')
      if (willExpire) nextExpiryMs = Math.min(nextExpiryMs ?? expiresAtMs, expiresAtMs)
    }
    return { approved, states, plans, ...(nextExpiryMs === undefined ? {} : { nextExpiryMs }) }
  }

  /** All kept decisions about a platform, newest first. */
  history(organizationId: string, platformId: string): Decision[] {
    return this.#history.newest(historyPrefix(organizationId, platformId), DECISIONS_KEPT_MAX)
  }

  /**
   * Stores decisions about different platforms, each as the last one about its platform. Beyond the
   * limits, forgets the oldest.
   *
   * @returns false, and stores nothing, if decisions about too many other platforms count
   */
  putAll(organizationId: string, given: readonly Omit<Decision, 'sequence'>[], nowMs: number): boolean {
    const last = this.last(organizationId)
    const decided = new Set(given.map(({ platformId }) => platformId))
    const excess = new Set([...last.keys(), ...decided]).size - DECIDED_PLATFORMS_MAX
    if (excess > 0) {
      const ended = [...last].filter(([platformId, each]) => !decided.has(platformId) && hasEnded(each, nowMs))
      if (ended.length < excess) return false
      ended.sort(([, a], [, b]) => endOf(a) - endOf(b))
      for (const [platformId] of ended.slice(0, excess)) {
        last.delete(platformId)
        const keys = [...this.#history.keys(historyPrefix(organizationId, platformId))]
        for (const key of keys) this.#history.remove(key)
      }
    }
    for (const decision of given) {
      const { platformId, kind, plan, expiresAtMs, decidedAtMs } = decision
      const sequence = (last.get(platformId)?.sequence ?? 0) + 1
      this.#history.put(historyKey(organizationId, platformId, sequence), { ...decision, sequence })
      const oldest = sequence - DECISIONS_KEPT_MAX
      if (oldest > 0) this.#history.remove(historyKey(organizationId, platformId, oldest))
      last.set(platformId, { kind, ...(plan && { plan }), expiresAtMs, decidedAtMs, sequence })
    }
    this.#last.put(uuidBytes(organizationId), Object.fromEntries(last))
    return true
  }
}

function hasEnded(decision: LastDecision, nowMs: number): boolean {
  return decision.kind === 'withdrawn' || hasExpired(decision, nowMs)
}

function endOf({ kind, decidedAtMs, expiresAtMs }: LastDecision): number {
  return kind === 'withdrawn' ? decidedAtMs : expiresAtMs
}

/** No platform id contains the byte 0, so no prefix is the beginning of another. */
function historyPrefix(organizationId: string, platformId: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), Buffer.from(`${platformId}\0`)])
}

function historyKey(organizationId: string, platformId: string, sequence: number): Buffer {
  return Buffer.concat([historyPrefix(organizationId, platformId), u64Bytes(sequence)])
}
