import type { Answer, Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import type { AnyFrameworkId } from '../store/framework.ts'
import { itemKey } from './rules.ts'
import { exactScoreOf, pointsOf, type Scale, scoreOf, sumOfWeights, weightOf } from './score.ts'

/*
 * What changed between two assessments of a framework, and how much each change moved the score.
 *
 *   effect of an item  share of its weight in the later assessment x (answer now - answer before)
 *   other effects      change of the score - effects of items: items that were added or removed, or
 *                      apply now and did not before, and other weights
 */
export interface ItemDifference {
  readonly itemId: string
  readonly title: string
  readonly category: string
  /** undefined if the assessment lacks the item. */
  readonly was: Answer | undefined
  readonly now: Answer | undefined
  /** Points of the score, in tenths; undefined if one of the answers has no points. */
  readonly effect: number | undefined
}

export interface AssessmentComparison {
  /** null if no item has an answer with points. */
  readonly scoreBefore: number | null
  readonly score: number | null
  /** The largest effect first, then those without. */
  readonly items: readonly ItemDifference[]
  /** Items with the same answer in both. */
  readonly unchanged: number
  /** Points, in tenths. */
  readonly otherEffects: number
}

export function compareAssessments(
  before: readonly AssessmentCategory[],
  after: readonly AssessmentCategory[],
  scale: Scale = 'graded',
): AssessmentComparison {
  const earlier = placed(before)
  const later = placed(after)
  const shares = sharesOf(after)
  const keys = [...new Set([...later.keys(), ...earlier.keys()])]
  const all = keys.map((key) => differenceOf(earlier.get(key), later.get(key), shares.get(key) ?? 0, scale))
  const items = all.filter(({ was, now }) => was !== now)
  const explained = items.reduce((sum, { effect = 0 }) => sum + effect, 0)
  const total = (exactScoreOf(after, scale) ?? 0) - (exactScoreOf(before, scale) ?? 0)
  return {
    scoreBefore: scoreOf(before, scale).overallScore,
    score: scoreOf(after, scale).overallScore,
    items: items
      .sort((a, b) => Math.abs(b.effect ?? 0) - Math.abs(a.effect ?? 0))
      .map((each) => ({ ...each, effect: each.effect === undefined ? undefined : tenths(each.effect) })),
    unchanged: all.length - items.length,
    otherEffects: tenths(total - explained),
  }
}

interface PlacedItem {
  readonly item: AssessmentItem
  readonly category: string
}

function placed(categories: readonly AssessmentCategory[]): ReadonlyMap<string, PlacedItem> {
  const items = categories.flatMap(({ name, items }) => items.map((item) => ({ item, category: name })))
  return new Map(items.map((each) => [itemKey(each.item.id), each]))
}

function differenceOf(
  before: PlacedItem | undefined,
  after: PlacedItem | undefined,
  share: number,
  scale: Scale,
): ItemDifference {
  const [was, now] = [before?.item.answer, after?.item.answer]
  const [pointsBefore, points] = [was, now].map((each) => (each === undefined ? undefined : pointsOf(each, scale)))
  const { item, category } = (after ?? before) as PlacedItem
  const effect = points === undefined || pointsBefore === undefined ? undefined : share * (points - pointsBefore)
  return { itemId: item.id, title: item.title, category, was, now, effect }
}

/** The share of each item that has points in the score, 0 to 1, by key. */
function sharesOf(categories: readonly AssessmentCategory[]): ReadonlyMap<string, number> {
  const counted = categories
    .map((category) => ({
      weight: weightOf(category),
      items: category.items.filter(({ answer }) => pointsOf(answer) !== undefined),
    }))
    .filter(({ items }) => items.length > 0)
  const total = sumOfWeights(counted)
  return new Map(
    counted.flatMap(({ weight, items }) => {
      const inCategory = sumOfWeights(items)
      return items.map((item) => [itemKey(item.id), (weight / total) * (item.weight / inCategory)] as const)
    }),
  )
}

/** Without a negative zero. */
function tenths(points: number): number {
  return Math.round(points * 10) / 10 + 0
}

/** Points of a trend: ten years of one assessment a quarter. */
const TREND_POINTS_MAX = 40

export interface TrendPoint {
  readonly atMs: number
  readonly score: number
}

/** The last scores of a framework, the oldest first. `completed`: the latest first. */
export function trendOf(completed: readonly Assessment[], frameworkId: AnyFrameworkId): readonly TrendPoint[] {
  return completed
    .filter((each) => each.frameworkId === frameworkId)
    .slice(0, TREND_POINTS_MAX)
    .map(({ completedAtMs, result }) => ({ atMs: completedAtMs, score: result?.overallScore ?? 0 }))
    .reverse()
}

/**
 * The change of each score since the previous completed assessment of its framework, by id.
 * `completed`: the latest first.
 */
export function scoreChanges(completed: readonly Assessment[]): ReadonlyMap<string, number> {
  const later = new Map<AnyFrameworkId, Assessment>()
  const changes = new Map<string, number>()
  for (const assessment of completed) {
    const next = later.get(assessment.frameworkId)
    if (next !== undefined && next.result !== null && assessment.result !== null) {
      changes.set(next.id, next.result.overallScore - assessment.result.overallScore)
    }
    later.set(assessment.frameworkId, assessment)
  }
  return changes
}
