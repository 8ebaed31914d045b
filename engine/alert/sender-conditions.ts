import { dayOf, HOUR_MS, isoSeconds, MINUTE_MS } from '../process/clock.ts'
import { Outcome } from '../store/outcomes.ts'
import { recentSince } from '../store/recent-arrivals.ts'
import { isShared, type StoredSource } from '../store/sources.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

/** Fewer messages in an hour say little. */
const MESSAGES_MIN = 100
/** Fewer packets on a day say little. */
const PACKETS_MIN = 10_000

/** Senders of logs, and sensors. */
export const SENDER_RULES: RuleGroup = {
  name: 'senders',
  rules: ['source-silent', 'source-degraded', 'sensor-silent', 'sensor-degraded'],
  remembered: [],
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

function degradedSensors({ store, organization, nowMs, threshold }: ConditionInput): Condition[] {
  const day = dayOf(nowMs)
  const { counters } = store.coverage.sumSince(organization.id, day)
  const all = counters.packets + counters.packets_lost
  const shareMax = threshold('sensor-degraded')
  if (all < PACKETS_MIN || counters.packets_lost * 100 <= all * shareMax) return []
  const share = Math.round((1000 * counters.packets_lost) / all) / 10
  const [date = ''] = isoSeconds(nowMs).split('T')
  return [
    {
      subject: { kind: 'organization', id: organization.id, name: lineOf(organization.name) },
      key: date,
      period: date,
      title: `Sensors lost ${share}% of the packets on ${date}`,
      details: { packets: counters.packets, packets_lost: counters.packets_lost, threshold: shareMax },
    },
  ]
}
