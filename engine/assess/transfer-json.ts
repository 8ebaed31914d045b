import { z } from 'zod'
import { isoSeconds } from '../kernel/process/clock.ts'
import { printable } from '../kernel/process/table.ts'
import { ASSESSMENT_CATEGORIES_MAX, ASSESSMENT_ITEMS_MAX } from '../limits.ts'
import type { AssessmentCategory, AssessmentItem, DiscoveryFacts } from '../store/assessments.ts'
import { type AnyFrameworkId, asFrameworkId, FRAMEWORK_IDS } from '../store/framework.ts'
import { AssessmentFileFault } from './file-fault.ts'
import {
  answer,
  categoriesOf,
  category,
  discoveryFacts,
  dueOn,
  line,
  links,
  note,
  owner,
  problemsAcross,
  problemsOf,
  review,
  templateItem,
} from './rules.ts'
import { importedWork, reviewText } from './work.ts'

/** The content of an assessment file: an assessment without its organization and state. */
export interface AssessmentContent {
  readonly frameworkId: AnyFrameworkId
  readonly title: string
  /** Which part of the framework it is; absent for all its items. */
  readonly profile?: readonly string[]
  /** The version of the framework's items that it has; absent if the file does not name it. */
  readonly template?: string
  readonly categories: readonly AssessmentCategory[]
}

const document = z.strictObject(
  {
    version: z.literal(1, 'expected 1'),
    framework_id: z.custom<AnyFrameworkId>(
      (value) => typeof value === 'string' && asFrameworkId(value) !== undefined,
      `expected one of ${FRAMEWORK_IDS.join(', ')} or the id of an own framework`,
    ),
    title: line,
    profile: z.array(line, 'expected a list').min(1).max(ASSESSMENT_ITEMS_MAX).optional(),
    categories: categoriesOf(
      category,
      templateItem
        .extend({
          answer: answer.default('unanswered'),
          note: note.default(''),
          owner: owner.optional(),
          due_on: dueOn.optional(),
          links: links.optional(),
          review: review.optional(),
          discovery: discoveryFacts.optional(),
        })
        .strict(),
    ),
  },
  'expected an object',
)

export function writeAssessmentJson({ frameworkId, title, profile, categories }: AssessmentContent): string {
  const written = categories.map(({ items, ...each }) => ({ ...each, items: items.map(itemJson) }))
  return `${JSON.stringify({ version: 1, framework_id: frameworkId, title, profile, categories: written }, null, 2)}\n`
}

/** Absent fields are not written. */
function itemJson({ facts, work, ...item }: AssessmentItem) {
  return {
    ...item,
    owner: work?.owner,
    due_on: work?.dueOn,
    links: work?.links,
    review: work?.review && reviewText(work.review),
    discovery: facts && { topic: facts.topic, supports: facts.level, text: facts.text, at: isoSeconds(facts.atMs) },
  }
}

/** Checks an assessment in the form of a JSON file. @throws AssessmentFileFault with all errors. */
export function checkedContent(given: unknown): AssessmentContent {
  assertCount(given)
  const parsed = document.safeParse(given)
  const problems = parsed.success ? problemsAcross(parsed.data.categories) : problemsOf(parsed.error, given)
  if (!parsed.success || problems.length > 0) {
    throw new AssessmentFileFault(
      problems.map(({ place, problem }) => (place === '' ? problem : `${place}: ${problem}`)),
    )
  }
  const { framework_id: frameworkId, title, profile, categories } = parsed.data
  return { frameworkId, title, ...(profile === undefined ? {} : { profile }), categories: withoutAbsent(categories) }
}

/** An optional field of a parsed document may be undefined, that of a record may not. */
function withoutAbsent(categories: z.infer<typeof document>['categories']): AssessmentCategory[] {
  return categories.map(({ items, ...category }) => ({
    ...category,
    items: items.map(({ question, owner = '', due_on: dueOn = '', links = [], review = '', discovery, ...item }) => ({
      ...item,
      ...(question === undefined ? {} : { question }),
      ...importedWork({ owner, dueOn, links, review }),
      ...(discovery === undefined ? {} : { facts: factsOf(discovery) }),
    })),
  }))
}

function factsOf({ topic, supports: level, text, at }: z.infer<typeof discoveryFacts>): DiscoveryFacts {
  return { topic, level, text, atMs: Date.parse(at) }
}

/** Checked first: reporting millions of invalid items would need gigabytes of memory. */
function assertCount(given: unknown): void {
  const categories = listIn(given, 'categories')
  const count = categories.reduce<number>((sum, category) => sum + listIn(category, 'items').length, 0)
  if (categories.length > ASSESSMENT_CATEGORIES_MAX) {
    const expected = `expected at most ${ASSESSMENT_CATEGORIES_MAX} categories`
    throw new AssessmentFileFault([`categories: found a list of ${categories.length}, ${expected}`])
  }
  if (count > ASSESSMENT_ITEMS_MAX) {
    throw new AssessmentFileFault([`categories: found ${count} items, expected at most ${ASSESSMENT_ITEMS_MAX}`])
  }
}

function listIn(value: unknown, field: string): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return []
  const list = (value as Record<string, unknown>)[field]
  return Array.isArray(list) ? list : []
}

/** @throws AssessmentFileFault with the position, where Node reports it. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const { message } = error as Error
    // Not every Node release reports the position. The message then quotes the surrounding text.
    const position = /at position (\d+)/.exec(message)?.[1]
    const problem = printable(message.replace(/ in JSON at position.*$/s, ''))
    throw new AssessmentFileFault([
      position === undefined ? `not JSON: ${problem}` : `${placeAt(text, Number(position))}: not JSON: ${problem}`,
    ])
  }
}

function placeAt(text: string, position: number): string {
  const before = text.slice(0, position).split('\n')
  return `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`
}
