import { framingRemark } from '../../engine/ingest/syslog/framing-remark.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { type CoverageJson, coverageJson } from '../../engine/scan/coverage.ts'
import { Outcome } from '../../engine/store/outcomes.ts'
import { isSourceSilent, type SensorState, sensorState } from '../../engine/store/silence.ts'
import type { SourceHead, StoredSource } from '../../engine/store/sources.ts'
import { type Paged, paged } from '../design/list.tsx'
import type { Visit } from '../http/visit.ts'

/** The transport of messages, by the name of the listener. */
export const LISTENER_NAMES: Readonly<Record<string, string>> = {
  tls: 'Syslog over TLS',
  tcp: 'Syslog over TCP',
  udp: 'Syslog over UDP',
  https: 'HTTPS',
  file: 'Log file',
}

export interface SourceRow {
  /** HOSTNAME of the messages, or the address of the sender. */
  readonly sender: string
  readonly address: string
  readonly tokenLabel: string
  readonly listener: string
  /** The node of a cluster that received the last message; '' without one. */
  readonly node: string
  /** The most frequent format; '' if none was recognized. */
  readonly format: string
  readonly messages: number
  /** Messages that name an AI platform and are stored. */
  readonly stored: number
  /** The share of messages that were understood, 0 to 1. 1 if there are no messages. */
  readonly understood: number
  readonly notUnderstood: number
  /** What is wrong with the framing of its messages, and what to change; '' if nothing. */
  readonly framing: string
  /** The last message that was not understood, redacted; '' if none. */
  readonly sample: string
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly isSilent: boolean
}

/** The senders on the page that the query names, most recently active first. */
export function sourcesView(visit: Visit): Paged<SourceRow> {
  const page = paged(recentHeads(visit), visit.request.query)
  return { ...page, rows: rowsOf(visit, page.rows) }
}

/** All senders, for a file. */
export function allSources(visit: Visit): readonly SourceRow[] {
  return rowsOf(visit, recentHeads(visit))
}

export interface LatestSources {
  readonly rows: readonly SourceRow[]
  readonly total: number
}

/** The senders that were active last. */
export function latestSources(visit: Visit, countMax: number): LatestSources {
  const heads = recentHeads(visit)
  return { rows: rowsOf(visit, heads.slice(0, countMax)), total: heads.length }
}

/** An organization can have 10,000 senders, so only those on a page are read as a whole. */
function recentHeads({ site, organization }: Visit): SourceHead[] {
  return site.store.sources
    .heads(organization.id)
    .sort((a, b) => b.lastSeenMs - a.lastSeenMs || Buffer.compare(a.key, b.key))
}

function rowsOf({ site, organization, nowMs }: Visit, heads: readonly SourceHead[]): SourceRow[] {
  const { store } = site
  const labels = new Map(store.monitoringTokens.ofOrganization(organization.id).map(({ id, label }) => [id, label]))
  return store.sources.ofHeads(heads).map((source) => rowOf(source, labels.get(source.tokenId) ?? '', nowMs))
}

function rowOf(source: StoredSource, tokenLabel: string, nowMs: number): SourceRow {
  const { host, address, listener, node = '', received, counts, lastSeenMs, firstSeenMs } = source
  const count = (outcome: keyof typeof Outcome): number => counts[Outcome[outcome]] ?? 0
  const notUnderstood = count('rejected') + count('unknown') + count('ambiguous')
  const [format = ''] = Object.entries(source.formats).sort(([, a], [, b]) => b - a)[0] ?? []
  return {
    sender: host === '' ? address : host,
    address,
    tokenLabel,
    listener,
    node,
    format,
    messages: received,
    stored: count('stored'),
    understood: received === 0 ? 1 : Math.max(0, 1 - notUnderstood / received),
    notUnderstood,
    framing: framingRemark(source.framing),
    sample: notUnderstood > 0 ? source.sample : '',
    firstSeenMs,
    lastSeenMs,
    isSilent: isSourceSilent(source, nowMs),
  }
}

export interface SensorRow {
  readonly instance: string
  readonly heardMs: number
  readonly state: SensorState
  readonly packets: number
  readonly lost: number
  readonly names: number
  readonly matched: number
  /** The version of the registry. '' if the sensor does not report it. */
  readonly registry: string
}

export interface SensorsView {
  /** Most recently active first. */
  readonly rows: readonly SensorRow[]
  /** Coverage over the evidence window. */
  readonly coverage: CoverageJson
  readonly windowDays: number
}

/** The traffic that the sensors of an organization saw and could not see. */
export function sensorsView({ site, organization, nowMs }: Visit): SensorsView {
  const { coverage } = site.store
  const rows = coverage.sensors(organization.id).map(({ instance, sensor }): SensorRow => {
    const { heardMs, counters } = sensor
    return {
      instance,
      heardMs,
      state: sensorState(sensor, nowMs),
      registry: sensor.registry ?? '',
      packets: counters.packets ?? 0,
      lost: counters.packets_lost ?? 0,
      names: counters.names ?? 0,
      matched: counters.names_matched ?? 0,
    }
  })
  const firstDay = dayOf(nowMs) - organization.evidenceWindowDays + 1
  return {
    rows: rows.sort((a, b) => b.heardMs - a.heardMs),
    coverage: coverageJson(coverage.sumSince(organization.id, firstDay)),
    windowDays: organization.evidenceWindowDays,
  }
}
