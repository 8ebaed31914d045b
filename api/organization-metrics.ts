import { setImmediate as othersTurn } from 'node:timers/promises'
import { MINUTE_MS } from '../engine/kernel/process/clock.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import type { LabeledValue, MetricRow } from '../engine/kernel/process/metrics.ts'
import { METRICS_ORGANIZATIONS_MAX, METRICS_SENDER_RECORDS_MAX } from '../engine/limits.ts'
import { coverageJson } from '../engine/scan/coverage.ts'
import { firstDayOfWindow } from '../engine/scan/prepare.ts'
import { uuidBytes } from '../engine/store/keys.ts'
import type { Organization } from '../engine/store/organizations.ts'
import { PublishedList } from '../engine/store/published.ts'
import { RECOMMENDATION_STATUSES, type RecommendationStatus } from '../engine/store/recommendations.ts'
import type { ScanSummary } from '../engine/store/scans.ts'
import { isSourceSilent, SENSOR_STATES, type SensorState, sensorState } from '../engine/store/silence.ts'
import { isShared } from '../engine/store/sources.ts'
import type { Store } from '../engine/store/store.ts'

/** The labels of an organization's gauges. `off`: there are no such gauges. */
export const ORGANIZATION_LABELS = ['off', 'ids', 'names'] as const
export type OrganizationLabels = (typeof ORGANIZATION_LABELS)[number]

/** Organizations that are read in one turn of the event loop, some 10 ms. */
const ORGANIZATIONS_PER_TURN = 20
/** How long the states of senders may be old in a scrape, if few organizations have senders. */
const SENDERS_FOR_MS = MINUTE_MS

/** The assessments' part, read again if a published list of them has another tag. */
interface Assessed {
  readonly tag: string
  /** Of the last completed assessment of each framework. */
  readonly scores: readonly LabeledValue[]
  readonly recommendations: Readonly<Record<RecommendationStatus, number>>
}

/** What only a write changes, read again if the organization's version changed. */
interface Findings {
  readonly version: number
  readonly organization: Organization
  /** Of the last completed scan, if any. */
  readonly scan: { readonly summary: ScanSummary; readonly completedAtMs: number } | undefined
  readonly assessed: Assessed
}

/** What changes with time alone. */
interface Senders {
  readonly readMs: number
  readonly sources: { readonly active: number; readonly silent: number }
  readonly sensors: Readonly<Record<SensorState, number>>
  /** null if no sensor has reported a packet. */
  readonly visibleShare: number | null
}

/** Organizations without gauges, by reason. */
interface LeftOut {
  readonly limit: number
  readonly unreadable: number
}

interface Known {
  readonly findings: Findings
  senders: Senders | undefined
}

/**
 * The gauges of each organization on /metrics. Only for operators who switch them on, because the
 * names of organizations are customer data and every organization adds two dozen series.
 *
 * A scrape reads one version number per organization. It reads the findings of an organization
 * again only if they changed, and the senders of a few organizations, those with the oldest values.
 * It lets other work of the main thread run in between.
 */
export class OrganizationMetrics {
  readonly #store: Store
  readonly #labels: OrganizationLabels
  readonly #organizationsMax: number
  readonly #senderRecordsMax: number
  readonly #known = new Map<string, Known>()
  #updating: Promise<LeftOut> | undefined

  constructor(
    store: Store,
    labels: OrganizationLabels,
    organizationsMax = METRICS_ORGANIZATIONS_MAX,
    senderRecordsMax = METRICS_SENDER_RECORDS_MAX,
  ) {
    this.#store = store
    this.#labels = labels
    this.#organizationsMax = organizationsMax
    this.#senderRecordsMax = senderRecordsMax
  }

  async rows(nowMs: number): Promise<MetricRow[]> {
    if (this.#labels === 'off') return []
    // Two scrapes at the same time share the work.
    this.#updating ??= this.#update(nowMs).finally(() => {
      this.#updating = undefined
    })
    return this.#render(await this.#updating)
  }

  async #update(nowMs: number): Promise<LeftOut> {
    const { environment, organizations } = this.#store
    const all = environment.read(() => organizations.ids())
    const ids = all.slice(0, this.#organizationsMax)
    const listed = new Set(ids)
    for (const id of this.#known.keys()) if (!listed.has(id)) this.#known.delete(id)
    const unreadable = new Set<string>()
    await this.#each(ids, unreadable, (id) => this.#updateFindings(id))
    let records = 0
    await this.#each(this.#oldestSenders(nowMs), unreadable, (id) => {
      const known = this.#known.get(id)
      if (known === undefined || records >= this.#senderRecordsMax) return
      const [senders, read] = sendersOf(this.#store, known.findings.organization, nowMs)
      known.senders = senders
      records += read
    })
    return { limit: all.length - ids.length, unreadable: unreadable.size }
  }

  /** Calls `update` for each organization, a few in each turn of the event loop. */
  async #each(ids: readonly string[], unreadable: Set<string>, update: (id: string) => void): Promise<void> {
    for (let from = 0; from < ids.length; from += ORGANIZATIONS_PER_TURN) {
      if (from > 0) await othersTurn()
      this.#store.environment.read(() => {
        for (const id of ids.slice(from, from + ORGANIZATIONS_PER_TURN)) {
          try {
            update(id)
          } catch (error) {
            // posture-admin doctor finds damaged records. They must not hide other organizations.
            if (!(error instanceof Fault)) throw error
            this.#known.delete(id)
            unreadable.add(id)
          }
        }
      })
    }
  }

  #updateFindings(id: string): void {
    const version = this.#store.apiVersions.get(uuidBytes(id))
    const known = this.#known.get(id)
    if (known?.findings.version === version) return
    const organization = this.#store.organizations.get(id)
    if (organization === undefined) return
    this.#known.set(id, {
      findings: findingsOf(this.#store, organization, version, known?.findings.assessed),
      senders: known?.senders,
    })
  }

  /** Organizations whose senders were never read come first. */
  #oldestSenders(nowMs: number): string[] {
    const readMs = ({ senders }: Known): number => senders?.readMs ?? Number.NEGATIVE_INFINITY
    return [...this.#known]
      .filter(([, known]) => Math.abs(nowMs - readMs(known)) >= SENDERS_FOR_MS)
      .sort(([, a], [, b]) => (readMs(a) < readMs(b) ? -1 : 1))
      .map(([id]) => id)
  }

  #render(leftOut: LeftOut): MetricRow[] {
    const all = [...this.#known.values()]
    const values = (of: (known: Known) => readonly LabeledValue[]): LabeledValue[] =>
      all.flatMap((known) => {
        const labels = this.#labelsOf(known.findings.organization)
        return of(known).map((each) => ({ labels: { ...labels, ...each.labels }, value: each.value }))
      })
    return [
      [
        'posture_organization_platforms',
        'gauge',
        'AI platforms in the last completed scan',
        values(({ findings: { scan } }) => one(scan?.summary.platformsDiscovered)),
      ],
      [
        'posture_organization_ai_capable_platforms',
        'gauge',
        'Software with AI features in the last completed scan, which is no AI platform',
        values(({ findings: { scan } }) => one(scan?.summary.aiCapableCount)),
      ],
      [
        'posture_organization_unapproved_platforms',
        'gauge',
        'AI platforms in the last completed scan that are not approved: shadow AI',
        values(({ findings: { scan } }) => one(scan?.summary.shadowAiCount)),
      ],
      [
        'posture_organization_risk_score',
        'gauge',
        'Overall risk in the last completed scan, 0 to 100',
        values(({ findings: { scan } }) => one(scan?.summary.overallRiskScore)),
      ],
      [
        'posture_organization_last_scan_timestamp_seconds',
        'gauge',
        'When the last completed scan ended, in seconds since 1970',
        values(({ findings: { scan } }) => one(scan && scan.completedAtMs / 1000)),
      ],
      [
        'posture_organization_framework_score',
        'gauge',
        'Score of the last completed assessment of a framework, 0 to 100',
        values(({ findings }) => findings.assessed.scores),
      ],
      [
        'posture_organization_recommendations',
        'gauge',
        'Recommendations by status',
        values(({ findings }) => by('status', RECOMMENDATION_STATUSES, findings.assessed.recommendations)),
      ],
      [
        'posture_organization_visible_ratio',
        'gauge',
        'Share of the traffic at the sensors whose names were visible, 0 to 1',
        values(({ senders }) => one(senders?.visibleShare ?? undefined)),
      ],
      [
        'posture_organization_sources',
        'gauge',
        'Senders of logs and events by state; silent: nothing arrived for an hour',
        values(({ senders }) => (senders === undefined ? [] : by('state', ['active', 'silent'], senders.sources))),
      ],
      [
        'posture_organization_sensors',
        'gauge',
        'Sensors by state; silent: no report for an hour',
        values(({ senders }) => (senders === undefined ? [] : by('state', SENSOR_STATES, senders.sensors))),
      ],
      [
        'posture_organizations_left_out',
        'gauge',
        'Organizations without these gauges, by reason: beyond the limit, or unreadable records',
        { ...leftOut },
        'reason',
      ],
    ]
  }

  #labelsOf({ id, name }: Organization): Record<string, string> {
    return this.#labels === 'names' ? { organization: id, organization_name: name } : { organization: id }
  }
}

function one(value: number | undefined): readonly LabeledValue[] {
  return value === undefined ? [] : [{ labels: {}, value }]
}

function by<W extends string>(
  label: string,
  words: readonly W[],
  counts: Readonly<Record<W, number>>,
): readonly LabeledValue[] {
  return words.map((word) => ({ labels: { [label]: word }, value: counts[word] }))
}

function findingsOf(
  store: Store,
  organization: Organization,
  version: number,
  assessedBefore: Assessed | undefined,
): Findings {
  const { id } = organization
  const tag = [PublishedList.scores, PublishedList.recommendations]
    .map((list) => store.published.head(id, list)?.tag)
    .join(' ')
  return {
    version,
    organization,
    scan: store.scans.last(id, ({ status }) => status === 'completed'),
    assessed: assessedBefore?.tag === tag ? assessedBefore : assessedOf(store, id, tag),
  }
}

function assessedOf(store: Store, organizationId: string, tag: string): Assessed {
  const recommendations = { open: 0, in_progress: 0, completed: 0, dismissed: 0 }
  for (const { status } of store.recommendations.ofOrganization(organizationId)) recommendations[status]++
  const scores = new Map<string, number>()
  for (const { frameworkId, result } of store.assessments.completed(organizationId)) {
    if (result !== null && !scores.has(frameworkId)) scores.set(frameworkId, result.overallScore)
  }
  return {
    tag,
    scores: [...scores].map(([framework, value]) => ({ labels: { framework }, value })),
    recommendations,
  }
}

/** Returns the states of an organization's senders, and how many records were read. */
function sendersOf(store: Store, organization: Organization, nowMs: number): [Senders, number] {
  const stored = store.sources.ofOrganization(organization.id).filter((source) => !isShared(source))
  const silent = stored.filter((each) => isSourceSilent(each, nowMs)).length
  const sensors = { reporting: 0, silent: 0, stopped: 0 }
  const reported = store.coverage.sensors(organization.id)
  for (const { sensor } of reported) sensors[sensorState(sensor, nowMs)]++
  const coverage = store.coverage.sumSince(organization.id, firstDayOfWindow(organization, nowMs))
  const senders: Senders = {
    readMs: nowMs,
    sources: { active: stored.length - silent, silent },
    sensors,
    visibleShare: coverageJson(coverage).visible_share,
  }
  return [senders, stored.length + 2 * reported.length + coverage.days]
}
