import { isoSeconds } from '../kernel/process/clock.ts'
import { type Assessment, frameworkOf } from '../store/assessments.ts'
import { PublishedList } from '../store/published.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

/** Scores and recommendations. */
export const ASSESSMENT_RULES: RuleGroup = {
  name: 'assessments',
  rules: ['score-fell', 'recommendation-opened'],
  remembered: ['score-fell'],
  fingerprint({ store: { published }, organization: { id } }) {
    const lists = [PublishedList.scores, PublishedList.assessments, PublishedList.recommendations] as const
    return lists.map((list) => published.head(id, list)?.tag ?? '-').join(' ')
  },
  conditions: (input) => ({
    'score-fell': fallenScores(input),
    'recommendation-opened': openRecommendations(input),
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
      details: { priority, category: lineOf(category), framework: frameworkId },
      severity: priority === 1 ? 'medium' : 'low',
    }))
}
