import { Fault } from '../kernel/process/error-codes.ts'
import type { Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import type { AnyFrameworkId, FrameworkItem } from '../store/framework.ts'
import { inProfile } from './profiles.ts'
import { itemKey } from './rules.ts'
import { itemsOf } from './states.ts'
import { builtInTemplate, templateItems } from './templates.ts'
import { storedWork, workOf } from './work.ts'

/** The items of a new assessment. */
export interface CurrentItems {
  readonly template: string
  readonly profile?: readonly string[]
  readonly categories: readonly AssessmentCategory[]
}

/** How the current items of a framework differ from those of an assessment. */
export interface ItemCounts {
  readonly kept: number
  readonly added: number
  readonly removed: number
  /** The same id with another question. */
  readonly changed: number
}

/**
 * The current items of a framework, without answers. Texts that only help to answer stay in the
 * framework.
 *
 * @param template the framework's items, required for an organization's own one
 * @throws Fault USAGE if the profile names no item, NOT_FOUND without a template
 */
export function currentItems(
  frameworkId: AnyFrameworkId,
  profile?: readonly string[],
  template = builtInTemplate(frameworkId),
): CurrentItems {
  if (template === undefined) throw new Fault('NOT_FOUND', `the organization has no framework ${frameworkId}`)
  const { version, categories } = template
  const chosen = profile === undefined ? categories : inProfile(frameworkId, categories, profile)
  return {
    template: version,
    ...(profile === undefined ? {} : { profile }),
    categories: chosen.map((category) => ({ ...category, items: category.items.map(unanswered) })),
  }
}

/** The current items of an assessment's framework and profile, with the assessment's answers. */
export function updatedItems(
  { frameworkId, profile }: Assessment,
  categories: readonly AssessmentCategory[],
  template = builtInTemplate(frameworkId),
): CurrentItems & { readonly counts: ItemCounts } {
  const before = new Map(itemsOf(categories).map((item) => [itemKey(item.id), item]))
  const now = template === undefined ? new Map() : templateItems(template)
  const known = profile?.filter((word) => !before.has(itemKey(word)) || now.has(itemKey(word)))
  const current = currentItems(frameworkId, known, template)
  const items = itemsOf(current.categories)
  const kept = items.filter(({ id }) => before.has(itemKey(id)))
  const answered = (item: AssessmentItem): AssessmentItem => {
    const { answer, note, work, question } = before.get(itemKey(item.id)) ?? item
    if (work === undefined) return { ...item, answer, note }
    // A review is of the question that it saw.
    const { review: _, ...others } = work
    return { ...item, answer, note, work: question === item.question ? work : others }
  }
  return {
    ...current,
    categories: current.categories.map((category) => ({ ...category, items: category.items.map(answered) })),
    counts: {
      kept: kept.length,
      added: items.length - kept.length,
      removed: before.size - kept.length,
      changed: kept.filter(({ id, question }) => before.get(itemKey(id))?.question !== question).length,
    },
  }
}

/** An item that differs between an assessment and the current items of its framework. */
export interface ItemChange {
  readonly kind: 'new' | 'changed' | 'removed'
  readonly id: string
  readonly title: string
}

/**
 * How the current items of its framework and profile differ from an assessment's, also if it is
 * completed. Empty if it has the current items, or items of its own from a file.
 */
export function itemChanges(
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  template = builtInTemplate(assessment.frameworkId),
): readonly ItemChange[] {
  if (template === undefined || assessment.template === template.version) return []
  const before = new Map(itemsOf(categories).map((item) => [itemKey(item.id), item]))
  const current = itemsOf(updatedItems(assessment, categories, template).categories)
  const keys = new Set(current.map(({ id }) => itemKey(id)))
  const changes = current.flatMap(({ id, title, question }): ItemChange[] => {
    const known = before.get(itemKey(id))
    if (known === undefined) return [{ kind: 'new', id, title }]
    return known.question === question ? [] : [{ kind: 'changed', id, title }]
  })
  const removed = [...before].filter(([key]) => !keys.has(key))
  if (removed.length === before.size) return []
  return [...changes, ...removed.map(([, { id, title }]) => ({ kind: 'removed' as const, id, title }))]
}

/**
 * The items with the answers, notes, owners and links of an earlier assessment, where it had the
 * same question.
 *
 * @param earlier the items of the earlier assessment
 */
export function carriedOver(
  categories: readonly AssessmentCategory[],
  earlier: readonly AssessmentItem[],
): { readonly categories: readonly AssessmentCategory[]; readonly carried: number } {
  const before = new Map(earlier.map((item) => [itemKey(item.id), item]))
  let carried = 0
  const withAnswer = (item: AssessmentItem): AssessmentItem => {
    const known = before.get(itemKey(item.id))
    if (known === undefined || known.question !== item.question || known.answer === 'unanswered') return item
    carried++
    const { owner, links } = workOf(known)
    return { ...item, answer: known.answer, note: known.note, ...storedWork({ owner, links }) }
  }
  return { categories: categories.map((each) => ({ ...each, items: each.items.map(withAnswer) })), carried }
}

/**
 * What an update of an open assessment would change. undefined: it has the current items, or items
 * of its own from a file.
 */
export function newerItems(
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  template = builtInTemplate(assessment.frameworkId),
): ItemCounts | undefined {
  if (assessment.status === 'completed' || template === undefined) return undefined
  if (assessment.template === template.version) return undefined
  const { counts } = updatedItems(assessment, categories, template)
  return counts.kept === 0 || counts.added + counts.removed + counts.changed === 0 ? undefined : counts
}

function unanswered({ id, title, question, weight, priority, recommendation }: FrameworkItem): AssessmentItem {
  return {
    id,
    title,
    ...(question === undefined ? {} : { question }),
    weight,
    priority,
    recommendation,
    answer: 'unanswered',
    note: '',
  }
}
