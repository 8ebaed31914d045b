import { isoDay } from '../kernel/process/clock.ts'
import type { ListedDiscovery } from '../scan/listed-discovery.ts'
import type { Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import { profileText } from '../store/framework.ts'
import type { Store } from '../store/store.ts'
import { discoveryFacts, type FactsByTopic, type UnsupportedAnswer, unsupportedAnswers } from './discovery-facts.ts'
import { failedMustPass, RULES } from './grade.ts'
import { itemChanges } from './items.ts'
import { pointsOf, scaleOf } from './score.ts'
import { itemsOf } from './states.ts'
import { expiredLinks } from './work.ts'

/** Something that a reader of the score has to know about an item, with the reason. */
export interface Caveat {
  readonly itemId: string
  readonly title: string
  readonly kind: 'not applicable' | 'above the facts' | 'evidence expired' | 'must pass'
  readonly reason: string
}

/** What stands beside a score, because the score alone does not show it. */
export interface ScoreBasis {
  readonly profile: string
  /** Of all items, 0 to 100. */
  readonly notApplicablePercent: number
  readonly unsupported: readonly UnsupportedAnswer[]
  /** Items answered `yes` with a link that has expired. */
  readonly expired: readonly AssessmentItem[]
  /** Of frameworks that know only met and not met: met items of those that apply. */
  readonly met: string | undefined
  /** The rules have changed since its completion, so they do not explain its score. */
  readonly hasEarlierRules: boolean
  /** Items of its framework that are new or ask another question since its completion. */
  readonly newerItems: number
  readonly caveats: readonly Caveat[]
}

/**
 * Reads the bases of the scores of an organization. Call it, and the result, inside Environment.read.
 *
 * @param discovery if the caller has read it
 */
export function basesOf(
  store: Store,
  organizationId: string,
  nowMs: number,
  discovery?: ListedDiscovery,
): (assessment: Assessment, categories?: readonly AssessmentCategory[]) => ScoreBasis {
  // Read at the first assessment that needs them.
  let facts: FactsByTopic | undefined
  const last = new Map(
    store.assessments
      .completed(organizationId)
      .reverse()
      .map(({ frameworkId, id }) => [frameworkId, id]),
  )
  return (assessment, categories = store.assessments.categories(assessment)) => {
    const { id, frameworkId, status, completedAtMs } = assessment
    // Facts of today say nothing about an earlier assessment: those of its completion count.
    const isCurrent = status !== 'completed' || last.get(frameworkId) === id
    if (isCurrent) facts ??= discoveryFacts(store, organizationId, nowMs, discovery)
    return basisOf(assessment, categories, facts && isCurrent ? facts : new Map(), isCurrent ? nowMs : completedAtMs)
  }
}

/**
 * @param facts of today, or none; then those at completion count
 * @param atMs when links must not have expired
 */
export function basisOf(
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  facts: FactsByTopic,
  atMs: number,
): ScoreBasis {
  const { frameworkId, profile, result, status, template, completedAtMs } = assessment
  const resultAtMs = status === 'completed' ? completedAtMs : atMs
  const hasEarlierRules = result !== null && result.rules !== RULES
  const items = itemsOf(categories)
  const notApplicable = items.filter(({ answer }) => answer === 'not_applicable')
  const unsupported = unsupportedAnswers(assessment, categories, facts)
  const today = isoDay(atMs)
  const expired = items.filter((item) => pointsOf(item.answer) === 100 && expiredLinks(item, today).length > 0)
  const scale = scaleOf(frameworkId)
  const points = items.flatMap(({ answer }) => pointsOf(answer, scale) ?? [])
  return {
    profile: profileText(profile),
    notApplicablePercent: items.length === 0 ? 0 : Math.round((100 * notApplicable.length) / items.length),
    unsupported,
    expired,
    met:
      scale === 'met' && !hasEarlierRules
        ? `${points.filter((value) => value === 100).length} of ${points.length} met`
        : undefined,
    hasEarlierRules,
    newerItems:
      status === 'completed' && template !== undefined
        ? itemChanges(assessment, categories).filter(({ kind }) => kind !== 'removed').length
        : 0,
    caveats: [
      ...(hasEarlierRules ? [] : failedMustPass(frameworkId, categories, resultAtMs)).map(
        ({ id: itemId, title, answer }): Caveat => {
          const failure = answer === 'not_applicable' ? 'Not applicable without a reason' : 'Not met'
          return { itemId, title, kind: 'must pass', reason: `${failure}, so the grade is D at best` }
        },
      ),
      ...unsupported.map(({ item: { id: itemId, title, answer }, facts: { text } }): Caveat => {
        return { itemId, title, kind: 'above the facts', reason: `Answered ${answer}. Discovery: ${text}` }
      }),
      ...expired.map((item): Caveat => {
        const reason = `Answered ${item.answer}. Expired: ${expiredLinks(item, today).join(', ')}`
        return { itemId: item.id, title: item.title, kind: 'evidence expired', reason }
      }),
      ...notApplicable.map(({ id: itemId, title, note }): Caveat => {
        return { itemId, title, kind: 'not applicable', reason: note === '' ? 'No reason is given' : note }
      }),
    ],
  }
}

/** The basis in a line. */
export function basisText(basis: ScoreBasis): string {
  const { profile, notApplicablePercent, unsupported, expired, met, hasEarlierRules, newerItems, caveats } = basis
  const failed = caveats.filter(({ kind }) => kind === 'must pass').map(({ itemId }) => itemId)
  return [
    profile,
    ...(met === undefined ? [] : [met]),
    `${notApplicablePercent}% not applicable`,
    `${unsupported.length} ${unsupported.length === 1 ? 'answer' : 'answers'} above the facts`,
    ...(expired.length === 0 ? [] : [`${expired.length} with expired evidence`]),
    ...(failed.length === 0 ? [] : [`must pass: ${failed.join(', ')}`]),
    ...(hasEarlierRules ? ['completed under earlier rules'] : []),
    ...(newerItems === 0 ? [] : [`completed before ${newerItems} newer ${newerItems === 1 ? 'item' : 'items'}`]),
  ].join(', ')
}
