import { discoveryFacts, type UnsupportedAnswer, unsupportedAnswers } from '../assess/discovery-facts.ts'
import { pointsOf } from '../assess/score.ts'
import { DAY_MS, isoSeconds } from '../kernel/process/clock.ts'
import type { Assessment } from '../store/assessments.ts'
import { frameworkName } from '../store/framework.ts'
import { PublishedList } from '../store/published.ts'
import { type Condition, type ConditionInput, lineOf, type RuleGroup } from './condition.ts'

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
