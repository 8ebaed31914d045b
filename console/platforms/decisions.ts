import { undoableDecisions } from '../../engine/admin/approvals.ts'
import type { ListedPlatform } from '../../engine/scan/listed-discovery.ts'
import { type Decision, type DecisionState, decisionState } from '../../engine/store/decisions.ts'
import type { UndoView } from '../design/decision.tsx'
import type { Visit } from '../http/visit.ts'

/** A platform of the registry, as links and forms name it. */
export interface DecidedPlatform {
  readonly id: string
  readonly state: DecisionState
}

/**
 * The decisions of an organization about the platforms of its registry, by name. A decision shows
 * at once; the figures of a platform follow with the scan that it requested.
 */
export class DecisionsByName {
  readonly #byName = new Map<string, DecidedPlatform>()

  constructor({ site, organization, nowMs }: Visit) {
    const { states } = site.store.decisions.inForce(organization.id, nowMs)
    for (const { id, name } of site.registry.catalogOf(organization.id).platforms) {
      if (!this.#byName.has(name)) this.#byName.set(name, { id, state: states.get(id) ?? 'waiting' })
    }
  }

  /** undefined if the registry has no platform of this name. */
  get(name: string): DecidedPlatform | undefined {
    return this.#byName.get(name)
  }

  /** Of a platform that left the registry since the scan, the state that the scan counted. */
  stateOf({ name, decision }: ListedPlatform): DecisionState {
    return this.#byName.get(name)?.state ?? decision
  }
}

/** What the member decided last, if it can be undone. */
export function undoOf(visit: Visit): UndoView | undefined {
  const { site, organization, identity, nowMs } = visit
  if (!visit.may('approval.undo')) return undefined
  const undoable = undoableDecisions(site.store, organization.id, `member ${identity.member.name}`, nowMs)
  if (undoable === undefined) return undefined
  const matcher = site.registry.matcherOf(organization.id)
  const { decidedAtMs, platformIds } = undoable
  const names = platformIds.map((id) => matcher.platform(id)?.name ?? id)
  return { decidedAtMs, names: names.sort() }
}

/** Whether somebody has to decide about the platform. */
export function isWaiting(state: DecisionState): boolean {
  return state === 'waiting' || state === 'expired'
}

/** An entry of a platform's history. */
export interface HistoryEntry {
  readonly timeMs: number
  readonly event: 'approved' | 'rejected' | 'withdrawn' | 'expired' | 'detected'
  /** Of a decision; '' otherwise. */
  readonly by: string
  readonly note: string
  readonly owner: string
  /** 0: none. */
  readonly expiresAtMs: number
}

/** The terms of a decision, for a form. */
export interface DecisionTermsView {
  readonly state: DecisionState
  readonly note: string
  readonly owner: string
  /** '': any. */
  readonly plan: string
  /** 0: never. */
  readonly expiresAtMs: number
  /** As in the audit log, without `member`; '' if there is no decision. */
  readonly by: string
  readonly atMs: number
}

const NO_DECISION: DecisionTermsView = {
  state: 'waiting',
  note: '',
  owner: '',
  plan: '',
  expiresAtMs: 0,
  by: '',
  atMs: 0,
}

/** The decision about a platform, and its history, newest first. */
export interface DecisionView {
  readonly last: DecisionTermsView
  readonly history: readonly HistoryEntry[]
}

/** The terms of the last decision about a platform, for a file. */
export type PlatformTerms = Pick<Decision, 'note' | 'owner' | 'expiresAtMs'>

/** The terms of the last decisions, withdrawals excepted, by the name of the platform. */
export function termsByName({ site, organization }: Visit): Map<string, PlatformTerms> {
  const platforms = site.registry.catalogOf(organization.id).platforms
  const names = new Map(platforms.map(({ id, name }) => [id, name]))
  const terms = new Map<string, PlatformTerms>()
  for (const decision of site.store.decisions.ofOrganization(organization.id)) {
    const name = names.get(decision.platformId)
    if (name !== undefined && decision.kind !== 'withdrawn') terms.set(name, decision)
  }
  return terms
}

/** @param platformId undefined if the platform is not in the registry */
export function decisionView({ site, organization, nowMs }: Visit, platformId: string | undefined): DecisionView {
  if (platformId === undefined) return { last: NO_DECISION, history: [] }
  const { decisions, evidence } = site.store
  const all = decisions.history(organization.id, platformId)
  const terms = all.map((decision): DecisionTermsView => {
    const { note, owner, plan = '', expiresAtMs, decidedBy, decidedAtMs } = decision
    const by = decidedBy.replace(/^member /, '')
    return { state: decisionState(decision, nowMs), note, owner, plan, expiresAtMs, by, atMs: decidedAtMs }
  })
  const history: HistoryEntry[] = []
  for (const [index, { kind, note, owner, expiresAtMs, decidedAtMs }] of all.entries()) {
    const endedAtMs = all[index - 1]?.decidedAtMs ?? nowMs
    if (expiresAtMs !== 0 && expiresAtMs <= endedAtMs) {
      history.push({ timeMs: expiresAtMs, event: 'expired', by: '', note: '', owner: '', expiresAtMs: 0 })
    }
    history.push({ timeMs: decidedAtMs, event: kind, by: terms[index]?.by ?? '', note, owner, expiresAtMs })
  }
  const detection = evidence.detection(organization.id, platformId)
  if (detection !== undefined) {
    history.push({ timeMs: detection.createdAtMs, event: 'detected', by: '', note: '', owner: '', expiresAtMs: 0 })
  }
  // The clock may have been set back between two decisions: those keep their order.
  return { last: terms[0] ?? NO_DECISION, history: inOrder(history) }
}

/** Newest first. The sort is stable. */
function inOrder(history: readonly HistoryEntry[]): HistoryEntry[] {
  return history.toSorted((a, b) => b.timeMs - a.timeMs)
}
