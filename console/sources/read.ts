import { framingRemark } from '../../engine/ingest/syslog/framing-remark.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { coverageJson } from '../../engine/scan/coverage.ts'
import { Outcome } from '../../engine/store/outcomes.ts'
import { isSourceSilent, sensorState } from '../../engine/store/silence.ts'
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

/** All senders, for a file. */
export function allSources(visit: Visit): readonly SourceRow[] {
  return rowsOf(visit, recentHeads(visit))
}

/** The senders on the page that the query names, most recently active first. */
export function sourcesView(visit: Visit): Paged<SourceRow> {
  const page = paged(recentHeads(visit), visit.request.query)
  return { ...page, rows: rowsOf(visit, page.rows) }
}

/** The senders that were active last, and the number of all. */
export function latestSources(visit: Visit, countMax: number) {
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

export type SourceRow = ReturnType<typeof rowOf>

function rowOf(source: StoredSource, tokenLabel: string, nowMs: number) {
  const { host, address, listener, node = '', received, counts, lastSeenMs } = source
  const count = (outcome: keyof typeof Outcome): number => counts[Outcome[outcome]] ?? 0
  const notUnderstood = count('rejected') + count('unknown') + count('ambiguous')
  const [format = ''] = Object.entries(source.formats).sort(([, a], [, b]) => b - a)[0] ?? []
  return {
    /** HOSTNAME of the messages, or the address of the sender. */
    sender: host === '' ? address : host,
    address,
    tokenLabel,
    listener,
    /** The node of a cluster that received the last message; '' without one. */
    node,
    /** The most frequent format; '' if none was recognized. */
    format,
    messages: received,
    /** Messages that name an AI platform and are stored. */
    stored: count('stored'),
    /** The share of messages that were understood, 0 to 1. 1 if there are no messages. */
    understood: received === 0 ? 1 : Math.max(0, 1 - notUnderstood / received),
    notUnderstood,
    /** What is wrong with the framing of its messages, and what to change; '' if nothing. */
    framing: framingRemark(source.framing),
    /** The last message that was not understood, redacted; '' if none. */
    sample: notUnderstood > 0 ? source.sample : '',
    lastSeenMs,
    isSilent: isSourceSilent(source, nowMs),
  }
}

/** The traffic that the sensors of an organization saw and could not see, over the evidence window. */
export function sensorsView({ site, organization, nowMs }: Visit) {
  const { coverage } = site.store
  const rows = coverage.sensors(organization.id).map(({ instance, sensor }) => {
    const { heardMs, counters, registry = '' } = sensor
    const { packets = 0, packets_lost: lost = 0, names = 0, names_matched: matched = 0 } = counters
    return { instance, heardMs, state: sensorState(sensor, nowMs), registry, packets, lost, names, matched }
  })
  const firstDay = dayOf(nowMs) - organization.evidenceWindowDays + 1
  return {
    rows: rows.sort((a, b) => b.heardMs - a.heardMs),
    coverage: coverageJson(coverage.sumSince(organization.id, firstDay)),
  }
}

export type SensorRow = ReturnType<typeof sensorsView>['rows'][number]
