import { Fault } from '../kernel/process/error-codes.ts'
import {
  type AnyFrameworkId,
  type FrameworkItem,
  frameworkName,
  isBuiltIn,
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
  frameworkId: AnyFrameworkId,
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
    const names = isBuiltIn(frameworkId) ? PROFILES[frameworkId] : profilesOf(categories)
    throw new Fault('USAGE', `--profile ${named}: ${frameworkName(frameworkId)} has ${expected(names)}`)
  }
  return chosen
}

/** The profiles that items name. */
function profilesOf(categories: readonly TemplateCategory[]): readonly string[] {
  return [...new Set(categories.flatMap(({ items }) => items.flatMap(({ baselines = [] }) => baselines)))]
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
