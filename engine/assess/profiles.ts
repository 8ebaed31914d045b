import { Fault } from '../process/error-codes.ts'
import {
  FRAMEWORKS,
  type FrameworkId,
  type FrameworkItem,
  PROFILES,
  type TemplateCategory,
} from '../store/framework.ts'
import { itemKey } from './rules.ts'

/** Unknown ids that an error names. */
const UNKNOWN_NAMED_MAX = 5

/**
 * The categories with the items that a profile names: by names of profiles, ids of items, or both.
 * The weight of a category is the sum of its items' weights.
 *
 * @throws Fault USAGE with the words that name nothing.
 */
export function inProfile(
  frameworkId: FrameworkId,
  categories: readonly TemplateCategory[],
  profile: readonly string[],
): TemplateCategory[] {
  const words = new Set(profile.map(itemKey))
  const unknown = new Set(words)
  const isIn = ({ id, baselines = [] }: FrameworkItem): boolean => {
    const matching = [itemKey(id), ...baselines].filter((word) => words.has(word))
    for (const word of matching) unknown.delete(word)
    return matching.length > 0
  }
  const chosen = withWeights(categories.map((category) => ({ ...category, items: category.items.filter(isIn) })))
  if (unknown.size > 0) {
    const named = [...unknown].slice(0, UNKNOWN_NAMED_MAX).join(', ')
    throw new Fault('USAGE', `--profile ${named}: ${FRAMEWORKS[frameworkId]} has ${expected(PROFILES[frameworkId])}`)
  }
  return chosen
}

/** Categories that have items, each with the sum of their weights. */
export function withWeights(
  categories: readonly { readonly name: string; readonly items: readonly FrameworkItem[] }[],
): TemplateCategory[] {
  return categories
    .filter(({ items }) => items.length > 0)
    .map(({ name, items }) => ({ name, weight: items.reduce((sum, { weight }) => sum + weight, 0), items }))
}

/** The words of a profile, as typed by a user: comma-separated. undefined: all items. */
export function readProfile(text: string | undefined): readonly string[] | undefined {
  const words = (text ?? '').split(/[\s,]+/).filter((word) => word !== '')
  return words.length === 0 ? undefined : words
}

function expected(names: readonly string[]): string {
  return names.length === 0
    ? 'no profiles; list ids of items'
    : `the profiles ${names.join(', ')}; or list ids of items`
}
