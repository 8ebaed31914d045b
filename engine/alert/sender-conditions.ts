import { dayOf, HOUR_MS, isoSeconds, MINUTE_MS } from '../kernel/process/clock.ts'
import { coverageJson } from '../scan/coverage.ts'
import { recentCoverage } from '../store/coverage.ts'
import { Outcome } from '../store/outcomes.ts'
import { recentSince } from '../store/recent-arrivals.ts'
import { isShared, type StoredSource } from '../store/sources.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

/** Fewer messages in an hour say little. */
const MESSAGES_MIN = 100
/** Fewer packets in two days say little. */
const PACKETS_MIN = 1000
/** Percentage points above the threshold at which a low coverage is over. */
const COVERAGE_MARGIN = 5

/** Senders of logs, and sensors. */
export const SENDER_RULES: RuleGroup = {
  name: 'senders',
  rules: ['source-silent', 'source-degraded', 'sensor-silent', 'sensor-degraded', 'coverage-low'],
  remembered: () => [],
  fingerprint: () => '',
  conditions(input) {
    const { store, organization } = input
    // A file is read once. Rows of senders that were combined stand for none of them.
    const sources = store.sources
      .ofOrganization(organization.id)
      .filter((source) => source.listener !== 'file' && !isShared(source))
    return {
      'source-silent': sources.flatMap((source) => silentSource(input, source)),
      'source-degraded': sources.flatMap((source) => degradedSource(input, source)),
      'sensor-silent': silentSensors(input),
      'sensor-degraded': degradedSensors(input),
      'coverage-low': lowCoverage(input),
    }
  },
}

function keyOf({ tokenId, listener, address, host }: StoredSource): string {
  return [tokenId, listener, address, host].join('\n')
}

function subjectOf(source: StoredSource): Condition['subject'] {
  const { host, address, listener } = source
  return { kind: 'source', id: lineOf(`${listener} ${address} ${host}`), name: lineOf(host === '' ? address : host) }
}

function detailsOf({ listener, address, host, lastSeenMs }: StoredSource): Condition['details'] {
  return { listener, address: lineOf(address), host: lineOf(host), last_seen: isoSeconds(lastSeenMs) }
}

function silentSource({ nowMs, threshold }: ConditionInput, source: StoredSource): Condition[] {
  const silentMs = threshold('source-silent') * HOUR_MS
  const { firstSeenMs, lastSeenMs } = source
  if (nowMs - lastSeenMs < silentMs || lastSeenMs - firstSeenMs < silentMs) return []
  const subject = subjectOf(source)
  return [
    {
      subject,
      key: keyOf(source),
      period: String(lastSeenMs),
      title: `${subject.name} has sent no logs since ${isoSeconds(lastSeenMs)}`,
      details: detailsOf(source),
    },
  ]
}

function degradedSource({ nowMs, threshold }: ConditionInput, source: StoredSource): Condition[] {
  const [, received, ...counts] = recentSince(source.recent ?? [], nowMs - HOUR_MS)
  const notUnderstood =
    (counts[Outcome.rejected] ?? 0) + (counts[Outcome.unknown] ?? 0) + (counts[Outcome.ambiguous] ?? 0)
  const shareMax = threshold('source-degraded')
  const share = received < MESSAGES_MIN ? 0 : (100 * notUnderstood) / received
  if (share <= shareMax / 2) return []
  const subject = subjectOf(source)
  return [
    {
      subject,
      key: keyOf(source),
      title: `${Math.round(share)}% of the messages of ${subject.name} were not understood`,
      details: { ...detailsOf(source), received, not_understood: notUnderstood, threshold: shareMax },
      isWeak: share <= shareMax,
    },
  ]
}

function silentSensors({ store, organization, nowMs, threshold }: ConditionInput): Condition[] {
  const silentMs = threshold('sensor-silent') * MINUTE_MS
  return store.coverage.sensors(organization.id).flatMap(({ instance, sensor: { heardMs, ended } }) => {
    if (ended || nowMs - heardMs < silentMs) return []
    return {
      subject: { kind: 'sensor', id: instance, name: instance },
      period: String(heardMs),
      title: `Sensor ${instance} has sent no report since ${isoSeconds(heardMs)}`,
      details: { last_report: isoSeconds(heardMs) },
    }
  })
}

function degradedSensors(input: ConditionInput): Condition[] {
  const shareMax = input.threshold('sensor-degraded')
  return recentCounters(input).flatMap(({ subject, coverage: { counters } }) => {
    const { packets, packets_lost } = counters
    const share = (100 * packets_lost) / (packets + packets_lost)
    if (share <= shareMax / 2) return []
    return {
      subject,
      title: `Sensor ${subject.name} lost ${share.toFixed(1)}% of its packets`,
      details: { packets, packets_lost, threshold: shareMax },
      isWeak: share <= shareMax,
    }
  })
}

function lowCoverage(input: ConditionInput): Condition[] {
  const shareMin = input.threshold('coverage-low')
  return recentCounters(input).flatMap(({ subject, coverage }) => {
    const { visible_share } = coverageJson(coverage)
    if (visible_share === null) return []
    const share = 100 * visible_share
    if (share >= shareMin + COVERAGE_MARGIN) return []
    return {
      subject,
      title: `Sensor ${subject.name} can read ${Math.round(share)}% of its traffic, less than ${shareMin}%`,
      details: { visible_share, threshold: shareMin },
      isWeak: share >= shareMin,
    }
  })
}

/** A day alone has too few packets in its first minutes. */
function recentCounters({ store, organization, nowMs }: ConditionInput) {
  return store.coverage
    .sensors(organization.id)
    .map(({ instance, sensor }) => ({
      subject: { kind: 'sensor', id: instance, name: instance } as const,
      coverage: recentCoverage(sensor, dayOf(nowMs)),
    }))
    .filter(({ coverage: { counters } }) => counters.packets + counters.packets_lost >= PACKETS_MIN)
}
