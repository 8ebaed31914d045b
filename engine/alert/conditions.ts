import { discoveryFacts, type UnsupportedAnswer, unsupportedAnswers } from '../assess/discovery-facts.ts'
import { pointsOf } from '../assess/score.ts'
import { isOverdue, openItems, workOf } from '../assess/work.ts'
import { DAY_MS, dayOf, HOUR_MS, isoDay, isoSeconds, MINUTE_MS } from '../kernel/process/clock.ts'
import { coverageJson } from '../scan/coverage.ts'
import { type Assessment, frameworkOf } from '../store/assessments.ts'
import { recentCoverage } from '../store/coverage.ts'
import { type AnyFrameworkId, frameworkName } from '../store/framework.ts'
import { Outcome } from '../store/outcomes.ts'
import { PublishedList } from '../store/published.ts'
import { recentSince } from '../store/recent-arrivals.ts'
import { type Secret, statusOf } from '../store/secrets.ts'
import { isShared, type StoredSource } from '../store/sources.ts'
import { type Condition, type ConditionBundle, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

/** API keys and approvals that end, and API keys that nobody uses. */
export const EXPIRY_RULES: RuleGroup = {
  name: 'expiry',
  rules: ['api-key-unused', 'api-key-expiring', 'approval-expiring'],
  remembered: () => [],
  fingerprint: () => '',
  conditions(input) {
    const { store, organization, nowMs } = input
    const isActive = (secret: Secret): boolean => statusOf(secret, nowMs) === 'active'
    const keys = store.apiKeys.ofOrganization(organization.id).filter(isActive)
    return {
      'api-key-unused': keys.flatMap((key) => unusedKey(input, key)),
      'api-key-expiring': keys.flatMap((key) => expiringKey(input, key)),
      'approval-expiring': expiringApprovals(input),
    }
  },
}

function unusedKey({ store, nowMs, threshold }: ConditionInput, key: Secret): Condition[] {
  const { id, organizationId, label, visible, createdAtMs } = key
  const lastUseMs = store.keyUses.lastUseMs(organizationId, id)
  const sinceMs = Math.max(createdAtMs, lastUseMs)
  const days = threshold('api-key-unused')
  if (nowMs - sinceMs < days * DAY_MS) return []
  return [
    {
      subject: { kind: 'api-key', id, name: lineOf(label) },
      period: String(sinceMs),
      title: `API key ${lineOf(label)} was not used for ${days} days`,
      details: {
        visible,
        created_at: isoSeconds(createdAtMs),
        last_used_at: lastUseMs === 0 ? '' : isoSeconds(lastUseMs),
      },
    },
  ]
}

function expiringKey(
  { nowMs, threshold }: ConditionInput,
  { id, label, visible, expiresAtMs = 0 }: Secret,
): Condition[] {
  if (expiresAtMs === 0 || expiresAtMs - nowMs > threshold('api-key-expiring') * DAY_MS) return []
  return [
    {
      subject: { kind: 'api-key', id, name: lineOf(label) },
      period: String(expiresAtMs),
      title: `API key ${lineOf(label)} expires at ${isoSeconds(expiresAtMs)}`,
      details: { visible, expires_at: isoSeconds(expiresAtMs) },
    },
  ]
}

function expiringApprovals({ store, organization, nowMs, threshold, nameOf }: ConditionInput): Condition[] {
  const beforeMs = nowMs + threshold('approval-expiring') * DAY_MS
  return [...store.decisions.last(organization.id)].flatMap(([platformId, { kind, expiresAtMs }]) => {
    if (kind !== 'approved' || expiresAtMs === 0 || expiresAtMs <= nowMs || expiresAtMs > beforeMs) return []
    const name = lineOf(nameOf(platformId))
    return {
      subject: { kind: 'approval', id: platformId, name },
      period: String(expiresAtMs),
      title: `The approval of ${name} expires at ${isoSeconds(expiresAtMs)}`,
      details: { expires_at: isoSeconds(expiresAtMs) },
    }
  })
}

/** Ids of items that a title names. */
const ITEMS_NAMED_MAX = 5

/** Answers of completed assessments that discovery no longer supports. */
export const EVIDENCE_RULES: RuleGroup = {
  name: 'evidence',
  rules: ['answer-unsupported'],
  remembered: () => [],
  fingerprint({ store, organization: { id }, nowMs }) {
    const assessed = store.published.head(id, PublishedList.assessments)
    if (assessed === undefined) return 'none'
    const isSilent = (atMs: number): boolean => nowMs - atMs > DAY_MS
    const sources = store.sources.heads(id).filter(({ lastSeenMs }) => isSilent(lastSeenMs)).length
    const sensors = store.coverage.sensors(id).filter(({ sensor }) => isSilent(sensor.heardMs)).length
    const day = Math.floor(nowMs / DAY_MS)
    return [assessed.tag, store.scanStates.get(id).generation, sources, sensors, day].join(' ')
  },
  conditions: (input) => ({ 'answer-unsupported': unsupported(input) }),
}

function unsupported({ store, organization, nowMs }: ConditionInput): Condition[] {
  const facts = discoveryFacts(store, organization.id, nowMs)
  const last = new Map<string, Assessment>()
  for (const assessment of store.assessments.completed(organization.id)) {
    if (!last.has(assessment.frameworkId)) last.set(assessment.frameworkId, assessment)
  }
  return [...last.values()].flatMap((assessment) => {
    const all = unsupportedAnswers(assessment, store.assessments.categories(assessment), facts)
    const answers = all.filter(({ gotWorse }) => gotWorse)
    const groups = new Set(answers.map(groupOf))
    return [...groups].map((group) => {
      return conditionOf(
        assessment,
        group,
        answers.filter((each) => groupOf(each) === group),
      )
    })
  })
}

/** Answers that stop holding at the same time. */
function groupOf({ item: { answer }, facts: { topic } }: UnsupportedAnswer): string {
  return `${topic} ${(pointsOf(answer) ?? 0) > 50 ? 'yes' : 'partial'}`
}

function conditionOf(
  { id, frameworkId, completedAtMs }: Assessment,
  group: string,
  answers: readonly UnsupportedAnswer[],
): Condition {
  const name = frameworkName(frameworkId)
  const ids = answers.map(({ item }) => item.id)
  const named = ids.slice(0, ITEMS_NAMED_MAX).join(', ') + (ids.length > ITEMS_NAMED_MAX ? ', ...' : '')
  const [first] = answers
  const text = lineOf(first?.facts.text ?? '')
  const what =
    ids.length === 1 ? `the answer to ${named} no longer holds` : `${ids.length} answers no longer hold (${named})`
  return {
    subject: { kind: 'framework', id: frameworkId, name },
    key: `${frameworkId} ${group}`,
    period: id,
    title: `${name}: ${what}: ${text}`,
    details: {
      assessment: id,
      items: lineOf(ids.join(', ')),
      topic: first?.facts.topic ?? '',
      discovery: text,
      discovery_before: lineOf(first?.item.facts?.text ?? ''),
      completed_at: isoSeconds(completedAtMs),
    },
  }
}

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

/** Scores, recommendations and due dates. */
export const ASSESSMENT_RULES: RuleGroup = {
  name: 'assessments',
  rules: ['score-fell', 'recommendation-opened', 'item-overdue'],
  remembered: () => ['score-fell'],
  // Every change of assessments and recommendations has an audit entry.
  fingerprint: ({ store, organization: { id }, nowMs }) => `${store.auditLog.lastSequence(id)} ${isoDay(nowMs)}`,
  conditions: (input) => ({
    'score-fell': fallenScores(input),
    'recommendation-opened': openRecommendations(input),
    'item-overdue': [...overdueItems(input), ...overdueRecommendations(input)],
  }),
}

function fallenScores({ store, organization, threshold }: ConditionInput): Condition[] {
  const fallMin = threshold('score-fell')
  const last = new Map<string, Assessment>()
  const fallen: Condition[] = []
  const compared = new Set<string>()
  // The latest first: the second of a framework is the one before.
  for (const before of store.assessments.completed(organization.id)) {
    const { frameworkId } = before
    const now = last.get(frameworkId)
    if (now === undefined) last.set(frameworkId, before)
    if (now === undefined || compared.has(frameworkId)) continue
    compared.add(frameworkId)
    const [score = 0, scoreBefore = 0] = [now.result?.overallScore, before.result?.overallScore]
    if (scoreBefore - score < fallMin) continue
    const name = frameworkOf(before)
    fallen.push({
      subject: { kind: 'framework', id: frameworkId, name },
      period: now.id,
      title: `The score of ${name} fell from ${scoreBefore} to ${score}`,
      details: { assessment: now.id, score, score_before: scoreBefore, completed_at: isoSeconds(now.completedAtMs) },
    })
  }
  return fallen
}

function openRecommendations({ store, organization, threshold }: ConditionInput): Condition[] {
  const priorityMax = threshold('recommendation-opened')
  return store.recommendations
    .ofOrganization(organization.id)
    .filter(({ status, priority }) => status === 'open' && priority <= priorityMax)
    .map(({ id, title, priority, category, frameworkId, statusChangedAtMs }) => ({
      subject: { kind: 'recommendation', id, name: lineOf(title) },
      period: String(statusChangedAtMs),
      title: `Recommendation: ${lineOf(title)}`,
      details: { priority, category: lineOf(category), framework: frameworkName(frameworkId) },
      severity: priority === 1 ? 'medium' : 'low',
      bundle: recommendationsOf(frameworkId),
    }))
}

/** A completed assessment opens its recommendations at the same time. */
function recommendationsOf(frameworkId: AnyFrameworkId): ConditionBundle {
  const name = frameworkName(frameworkId)
  return {
    id: frameworkId,
    merged: (conditions) => ({
      subject: { kind: 'framework', id: frameworkId, name },
      title: `${conditions.length} recommendations opened: ${name}`,
      details: { recommendations: lineOf(conditions.map(({ subject }) => subject.name).join('; ')) },
    }),
  }
}

function overdueItems({ store, organization, nowMs }: ConditionInput): Condition[] {
  const today = isoDay(nowMs)
  return openItems(store, organization.id)
    .filter(({ assessment, item }) => isOverdue(assessment, item, today))
    .map(({ assessment, item }) => {
      const { owner, dueOn } = workOf(item)
      return overdue('item', `${assessment.id}/${item.id}`, `${item.id} ${item.title}`, owner, dueOn)
    })
}

function overdueRecommendations({ store, organization, nowMs }: ConditionInput): Condition[] {
  const today = isoDay(nowMs)
  return store.recommendations
    .ofOrganization(organization.id)
    .filter(
      ({ status, dueOn = '' }) => dueOn !== '' && dueOn < today && (status === 'open' || status === 'in_progress'),
    )
    .map(({ id, title, owner, dueOn = '' }) => overdue('recommendation', id, title, owner, dueOn))
}

function overdue(kind: string, id: string, title: string, owner: string, dueOn: string): Condition {
  const name = lineOf(title)
  return {
    subject: { kind, id, name },
    period: dueOn,
    title: `Overdue since ${dueOn}: ${name}`,
    details: { owner: lineOf(owner), due_on: dueOn },
  }
}
