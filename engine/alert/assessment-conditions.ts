import { isOverdue, openItems, workOf } from '../assess/work.ts'
import { isoDay, isoSeconds } from '../kernel/process/clock.ts'
import { type Assessment, frameworkOf } from '../store/assessments.ts'
import { type AnyFrameworkId, frameworkName } from '../store/framework.ts'
import { type Condition, type ConditionBundle, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

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
