import type { Catalog } from '../../registry/catalog.ts'
import type { Platform } from '../../registry/platform.ts'
import { plansOf } from '../../registry/risk-sum.ts'
import { platformId } from '../../registry/schema-parts.ts'
import { DAY_MS, isoSeconds, MINUTE_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { nearestName } from '../kernel/process/similar.ts'
import { DECIDED_PLATFORMS_MAX, DECISION_NOTE_BYTES_MAX } from '../limits.ts'
import { requestScan } from '../scan/scan-runner.ts'
import type { AuditDetails } from '../store/audit-log.ts'
import { type Decision, type DecisionKind, decisionState, type LastDecision } from '../store/decisions.ts'
import type { Organization } from '../store/organizations.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges, checkText, listText } from './audited-changes.ts'

/** The terms of an approval or a rejection. */
export interface DecisionTerms {
  /** Why; one line. Absent or '': none. */
  readonly note?: string | undefined
  /** Who is responsible for the use of the platform: a name or an e-mail address. */
  readonly owner?: string | undefined
  /** The plan whose facts count in the risk. Absent, '' or of a rejection: the worst plan counts. */
  readonly plan?: string | undefined
  /** The decision no longer counts from this time on, in milliseconds since 1970. Absent: never. */
  readonly expiresAtMs?: number | undefined
}

/** The scan that will show a change of decisions. */
export interface ApprovalChange {
  readonly scan: Scan
}

/** A decision can be undone for this long. */
const UNDO_MS = 10 * MINUTE_MS

/** The decisions that somebody made last, all at one time. */
export interface UndoableDecisions {
  readonly decidedAtMs: number
  readonly platformIds: readonly string[]
}

/**
 * The last decisions of an actor, if they can still be undone. Call it inside Environment.read.
 *
 * @param actor as in the audit log: `member alice@acme.example`
 */
export function undoableDecisions(
  { decisions }: Store,
  organizationId: string,
  actor: string,
  nowMs: number,
): UndoableDecisions | undefined {
  const recent = [...decisions.last(organizationId)].filter(([, { decidedAtMs }]) => decidedAtMs > nowMs - UNDO_MS)
  const made = [
    ...decisions
      .ofPlatforms(
        organizationId,
        recent.map(([platformId]) => platformId),
      )
      .values(),
  ]
  // What an undo restored can be undone like before. Where nothing was before, nothing is left.
  const own = made.filter(({ decidedBy, restores }) => decidedBy === actor && restores !== 0)
  const decidedAtMs = Math.max(...own.map((each) => each.decidedAtMs))
  const platformIds = own.filter((each) => each.decidedAtMs === decidedAtMs).map(({ platformId }) => platformId)
  return platformIds.length === 0 ? undefined : { decidedAtMs, platformIds }
}

/** Ten years, as for API keys. */
const EXPIRY_DAYS_MAX = 3653

const ACTION_OF = { approved: 'approval.add', rejected: 'approval.reject', withdrawn: 'approval.remove' } as const

/** Decisions about platforms: approvals, rejections, and their withdrawal. */
export class ApprovalChanges extends AuditedChanges {
  /**
   * Approves platforms by their id or name in the registry, and requests a scan that shows the
   * result. Replaces earlier decisions, unless they are the same.
   *
   * @throws Fault NOT_FOUND if the registry does not contain a platform, USAGE, CONFLICT at the
   *   limit, NOT_ALLOWED
   */
  add(
    organization: Organization,
    catalog: Catalog,
    platforms: readonly string[],
    terms: DecisionTerms = {},
  ): ApprovalChange {
    return this.#decide('approved', organization, catalog, platforms, terms)
  }

  /** Like add. A rejected platform is not approved; nobody has to decide about it again. */
  reject(
    organization: Organization,
    catalog: Catalog,
    platforms: readonly string[],
    terms: DecisionTerms = {},
  ): ApprovalChange {
    return this.#decide('rejected', organization, catalog, platforms, terms)
  }

  /**
   * Withdraws approvals and rejections, so that the platforms wait for a decision again.
   *
   * @throws Fault NOT_FOUND if there is no decision about a platform, NOT_ALLOWED
   */
  remove(organization: Organization, catalog: Catalog, platforms: readonly string[]): ApprovalChange {
    return this.#change('withdrawn', organization, platforms, {}, () => {
      const last = this.store.decisions.last(organization.id)
      return platforms.map((named) => {
        // A platform that was removed from the registry is known only by its id.
        const isKnownId = platformId.safeParse(named).success && hasDecision(last.get(named))
        const id = isKnownId ? named : found(catalog, named)?.id
        if (id !== undefined && hasDecision(last.get(id))) return id
        throw new Fault(
          'NOT_FOUND',
          `there is no decision about ${JSON.stringify(named)}; posture-admin approval list shows all`,
        )
      })
    })
  }

  /**
   * Undoes what the actor decided last, at this time: the decisions before count again, with their
   * authors and times. Alerts that were sent and block lists that were fetched are not recalled.
   *
   * @throws Fault CONFLICT if it can no longer be undone, NOT_ALLOWED
   */
  undo({ id: organizationId, name }: Organization, decidedAtMs: number): ApprovalChange {
    const { store, clock } = this
    return this.audited('approval.undo', organizationId, (decidedBy) => {
      const organization = store.organizations.get(organizationId)
      if (organization === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
      const nowMs = clock.nowMs()
      const last = undoableDecisions(store, organizationId, decidedBy, nowMs)
      if (last?.decidedAtMs !== decidedAtMs) {
        throw new Fault(
          'CONFLICT',
          'the decision can no longer be undone: ten minutes have passed, or another followed',
        )
      }
      const decisions = last.platformIds.map((platformId): Omit<Decision, 'sequence'> => {
        const history = store.decisions.history(organizationId, platformId)
        const [newest] = history
        const undone = newest?.restores ?? newest?.sequence ?? 0
        const before = history.find(({ sequence }) => sequence === undone - 1)
        if (before === undefined) {
          const terms = { kind: 'withdrawn', note: '', owner: '', expiresAtMs: 0 } as const
          return { ...terms, platformId, decidedBy, decidedAtMs: nowMs, restores: 0 }
        }
        const { sequence, ...restored } = before
        return { restores: sequence, ...restored }
      })
      // The platforms have decisions already, so there are not more of them.
      store.decisions.putAll(organizationId, decisions, nowMs)
      const scan = requestScan(store, organization, clock)
      return { organizationId, subject: listText(last.platformIds), result: { scan } }
    })
  }

  #decide(
    kind: 'approved' | 'rejected',
    organization: Organization,
    catalog: Catalog,
    platforms: readonly string[],
    terms: DecisionTerms,
  ): ApprovalChange {
    checkTerms(terms, this.clock.nowMs())
    const found = platforms.map((named) => registered(catalog, named))
    const plan = kind === 'approved' ? (terms.plan ?? '') : ''
    for (const platform of plan === '' ? [] : found) checkPlan(platform, plan)
    return this.#change(kind, organization, platforms, { ...terms, plan }, () => found.map(({ id }) => id))
  }

  #change(
    kind: DecisionKind,
    { id: organizationId, name }: Organization,
    platforms: readonly string[],
    terms: DecisionTerms,
    idsOf: () => readonly string[],
  ): ApprovalChange {
    const { store, clock } = this
    const { note = '', owner = '', plan = '', expiresAtMs = 0 } = terms
    return this.audited(ACTION_OF[kind], organizationId, (decidedBy) => {
      const organization = store.organizations.get(organizationId)
      if (organization === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
      const decidedAtMs = clock.nowMs()
      const ids = [...new Set(idsOf())]
      const last = store.decisions.ofPlatforms(organizationId, ids)
      const decisions = ids
        .map((platformId) => ({
          ...{ platformId, kind, note, owner, expiresAtMs, decidedBy, decidedAtMs },
          ...(plan && { plan }),
        }))
        .filter((decision) => !isSame(decision, last.get(decision.platformId)))
      if (!store.decisions.putAll(organizationId, decisions, decidedAtMs)) {
        throw new Fault('CONFLICT', `${name} would have decisions about more than ${DECIDED_PLATFORMS_MAX} platforms`)
      }
      const scan = requestScan(store, organization, clock)
      return { organizationId, subject: listText(platforms), details: detailsOf(terms), result: { scan } }
    })
  }
}

function hasDecision(decision: LastDecision | undefined): boolean {
  return decision !== undefined && decision.kind !== 'withdrawn'
}

function isSame(next: Omit<Decision, 'sequence'>, last: Decision | undefined): boolean {
  if (last === undefined || decisionState(last, next.decidedAtMs) === 'expired') return false
  const terms = ['kind', 'note', 'owner', 'plan', 'expiresAtMs'] as const
  return terms.every((name) => next[name] === last[name])
}

/** @throws Fault USAGE */
function checkTerms({ note = '', owner = '', expiresAtMs = 0 }: DecisionTerms, nowMs: number): void {
  if (note !== '') checkText('note', note, DECISION_NOTE_BYTES_MAX)
  if (owner !== '') checkText('owner', owner)
  if (expiresAtMs === 0) return
  const isWithin = expiresAtMs > nowMs && expiresAtMs <= nowMs + EXPIRY_DAYS_MAX * DAY_MS
  if (!Number.isInteger(expiresAtMs) || !isWithin) {
    throw new Fault('USAGE', 'expiry: expected a time in the future, within ten years')
  }
}

function detailsOf({ note = '', owner = '', plan = '', expiresAtMs = 0 }: DecisionTerms): AuditDetails {
  return {
    ...(note === '' ? {} : { note }),
    ...(owner === '' ? {} : { owner }),
    ...(plan === '' ? {} : { plan }),
    ...(expiresAtMs === 0 ? {} : { expires_at: isoSeconds(expiresAtMs) }),
  }
}

function registered(catalog: Catalog, named: string): Platform {
  const platform = found(catalog, named)
  if (platform !== undefined) return platform
  const nearest = nearestName(
    named,
    catalog.platforms.map(({ name }) => name),
  )
  const hint =
    nearest === undefined ? '; to find similar ones: posture-admin registry search' : `. Did you mean ${nearest}?`
  throw new Fault('NOT_FOUND', `no platform ${JSON.stringify(named)} in the registry${hint}`)
}

/** By id, or by name ignoring case. */
function found({ platforms }: Catalog, named: string): Platform | undefined {
  const isId = platformId.safeParse(named).success
  const wanted = named.toLowerCase()
  return (
    (isId ? platforms.find(({ id }) => id === named) : undefined) ??
    platforms.find(({ name }) => name.toLowerCase() === wanted)
  )
}

/** @throws Fault USAGE */
function checkPlan({ name, facts = [] }: Platform, plan: string): void {
  const plans = plansOf(facts)
  if (plans.includes(plan)) return
  const known = plans.length === 0 ? 'the registry knows no plan' : `expected one of ${plans.join(', ')}`
  throw new Fault('USAGE', `plan of ${name}: ${known}`)
}
