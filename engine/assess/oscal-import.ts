import { z } from 'zod'
import { Fault } from '../kernel/process/error-codes.ts'
import { ASSESSMENT_NOTE_BYTES_MAX } from '../limits.ts'
import type { Answer, AssessmentCategory, AssessmentItem, DiscoveryFacts } from '../store/assessments.ts'
import { type AnyFrameworkId, asFrameworkId, FRAMEWORK_IDS, type Template } from '../store/framework.ts'
import { AssessmentFileFault } from './file-fault.ts'
import { currentItems } from './items.ts'
import { controlIdOf, controlOfTarget, propertyTexts } from './oscal.ts'
import {
  answer as answerRule,
  discoveryFacts,
  itemKey,
  line,
  note as noteRule,
  problemsOf,
  readAnswer,
  shown,
} from './rules.ts'
import { itemsOf } from './states.ts'
import { type AssessmentContent, checkedContent } from './transfer-json.ts'

/** Values of all lists of a document. Checking millions of values would need gigabytes. */
const LISTED_VALUES_MAX = 200_000

const text = z.string('expected text')
const listOf = <T extends z.ZodType>(element: T) => z.array(element, 'expected a list').default([])
const props = listOf(z.object({ name: text, ns: text.optional(), value: text, remarks: text.optional() }))
const finding = z.object({
  title: text.default(''),
  props,
  target: z.object({
    'target-id': text,
    status: z.object({ state: z.enum(['satisfied', 'not-satisfied'], 'expected satisfied or not-satisfied') }),
  }),
  'related-observations': listOf(z.object({ 'observation-uuid': text })),
})
const observation = z.object({ uuid: text, description: text, props, collected: text.default('') })
const result = z.object({
  start: z.iso.datetime({ offset: true, error: 'expected a time such as 2026-03-31T08:00:00Z' }),
  findings: listOf(finding),
  observations: listOf(observation),
})
const objective = z.object({
  description: text.default(''),
  props,
  parts: listOf(z.object({ prose: text.optional() })),
})
/** The part of a document that an assessment has. Other fields are not read. */
const document = z.object({
  'assessment-results': z.object({
    metadata: z.object({ title: text, props }),
    'local-definitions': z.object({ 'objectives-and-methods': listOf(objective) }).optional(),
    results: z.array(result, 'expected a list').min(1, 'expected at least one result'),
  }),
})
type Props = z.infer<typeof props>
type Result = z.infer<typeof result>
type Observation = z.infer<typeof observation>

/** An assessment of an OSCAL document, and what of the document it does not have. */
export interface OscalContent extends AssessmentContent {
  /** One line each, for people. */
  readonly skipped: readonly string[]
}

export function isOscal(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'assessment-results' in given
}

/**
 * Reads assessment results. A document of this program has its items; of another, the findings
 * answer the framework's current items, by the ids of controls.
 *
 * @param frameworkId required where the document does not name a framework
 * @param template the current items, required for an organization's own framework
 * @throws AssessmentFileFault with all errors; Fault USAGE if the framework is missing
 */
export function readAssessmentOscal(
  given: unknown,
  frameworkId: AnyFrameworkId | undefined,
  template?: Template,
): OscalContent {
  assertListedValues(given)
  const parsed = document.safeParse(given)
  if (!parsed.success) {
    throw new AssessmentFileFault(problemsOf(parsed.error, given).map(({ place, problem }) => `${place}: ${problem}`))
  }
  const { metadata, results, 'local-definitions': local } = parsed.data['assessment-results']
  const framework = frameworkOf(metadata.props, frameworkId)
  const objectives = (local?.['objectives-and-methods'] ?? []).filter((each) => ownText(each.props, 'item-id') !== '')
  const content =
    objectives.length > 0
      ? ownContent(framework, metadata, objectives)
      : checkedContent({
          version: 1,
          framework_id: framework,
          title: metadata.title.trim(),
          categories: currentItems(framework, undefined, template).categories,
        })
  const [newest, ...older] = [...results].sort((a, b) => Date.parse(b.start) - Date.parse(a.start))
  const skipped = unreadFields(given as Given, results.indexOf(newest as Result))
  if (older.length > 0) skipped.push(`${older.length} earlier results: only the last one is read`)
  const categories = answered(framework, content.categories, newest as Result, skipped)
  return { ...content, categories, skipped }
}

/** The document before zod removed the fields that nothing reads. */
interface Given {
  readonly 'assessment-results': {
    readonly results: readonly { readonly findings?: readonly object[]; readonly observations?: readonly object[] }[]
  }
}

/** Fields with text that an assessment has, or with what this program can compute. */
const COMMON_FIELDS = ['uuid', 'title', 'description', 'props']
const KNOWN_FIELDS = {
  result: new Set([...COMMON_FIELDS, 'start', 'end', 'reviewed-controls', 'findings', 'observations']),
  findings: new Set([...COMMON_FIELDS, 'target', 'related-observations']),
  observations: new Set([...COMMON_FIELDS, 'methods', 'types', 'collected']),
}

/** The fields of a result that have no place in an assessment. */
function unreadFields({ 'assessment-results': { results } }: Given, at: number): string[] {
  const result = results[at] ?? {}
  const { findings = [], observations = [] } = result
  return Object.entries({ result: [result], findings, observations }).flatMap(([what, objects]) => {
    const known = KNOWN_FIELDS[what as keyof typeof KNOWN_FIELDS]
    const counts = new Map<string, number>()
    for (const field of objects.flatMap((each) => Object.keys(each))) {
      if (!known.has(field)) counts.set(field, (counts.get(field) ?? 0) + 1)
    }
    return Array.from(counts, ([field, count]) => `${what}: ${shown(field)}, which ${count} of ${objects.length} have`)
  })
}

function frameworkOf(given: Props, frameworkId: AnyFrameworkId | undefined): AnyFrameworkId {
  const [named] = propertyTexts(given, 'framework-id')
  const found = named ?? frameworkId
  const known = asFrameworkId(found)
  if (known !== undefined) return known
  if (found === undefined) {
    throw new Fault('USAGE', '--framework is required for an OSCAL document that this program did not write')
  }
  throw new AssessmentFileFault([
    `metadata.props: found the framework ${shown(found)}, expected one of ${FRAMEWORK_IDS.join(', ')}`,
  ])
}

/** The content of a document that this program wrote, without answers. */
function ownContent(
  frameworkId: AnyFrameworkId,
  { title, props }: { readonly title: string; readonly props: Props },
  objectives: readonly z.infer<typeof objective>[],
): AssessmentContent {
  const weights = propertyTexts(props, 'category-weight')
  const categories = propertyTexts(props, 'category').map((name, at) => ({
    name,
    weight: numberIn(weights[at] ?? ''),
    items: objectives
      .filter((each) => ownText(each.props, 'category') === String(at + 1))
      .map((each) => ({
        id: ownText(each.props, 'item-id'),
        title: each.description,
        ...(each.parts[0]?.prose === undefined ? {} : { question: each.parts[0].prose }),
        weight: numberIn(ownText(each.props, 'weight')),
        priority: numberIn(ownText(each.props, 'priority')),
        recommendation: ownText(each.props, 'recommendation'),
        owner: ownText(each.props, 'owner'),
        due_on: ownText(each.props, 'due-on'),
        links: propertyTexts(each.props, 'link'),
        review: ownText(each.props, 'review'),
      })),
  }))
  const profile = propertyTexts(props, 'profile')
  const [template] = propertyTexts(props, 'template')
  const content = checkedContent({
    version: 1,
    framework_id: frameworkId,
    title,
    ...(profile.length === 0 ? {} : { profile }),
    categories,
  })
  return line.safeParse(template).success && template !== undefined ? { ...content, template } : content
}

function ownText(given: Props, name: string): string {
  return propertyTexts(given, name)[0] ?? ''
}

/** Text that is no number is returned unchanged, and the rule rejects it. */
function numberIn(digits: string): unknown {
  return /^\d+(?:\.\d+)?$/.test(digits) ? Number(digits) : digits
}

/** The categories with the answers of findings and the notes of observations. */
function answered(
  frameworkId: AnyFrameworkId,
  categories: readonly AssessmentCategory[],
  { findings, observations }: Result,
  skipped: string[],
): AssessmentCategory[] {
  const items = itemsByControl(frameworkId, itemsOf(categories))
  const observed = new Map(observations.map((each) => [each.uuid.toLowerCase(), each]))
  const answers = new Map<AssessmentItem, Set<Answer>>()
  const notes = new Map<AssessmentItem, Set<Observation>>()
  const related = new Set<Observation>()
  const add = (item: AssessmentItem, each: Observation): void => {
    notes.set(item, (notes.get(item) ?? new Set()).add(each))
    related.add(each)
  }
  const facts = new Map<AssessmentItem, DiscoveryFacts>()
  const addFacts = (item: AssessmentItem, each: Observation, at: number): void => {
    const found = factsOf(each)
    if (found === undefined) skipped.push(`observations[${at}]: not what discovery shows about an item`)
    else facts.set(item, found)
  }
  for (const [at, each] of findings.entries()) {
    const target = each.target['target-id']
    const item = items.get(itemKey(ownText(each.props, 'item-id'))) ?? items.get(itemKey(controlOfTarget(target)))
    if (item === undefined) {
      skipped.push(`findings[${at}]: the assessment has no item for ${shown(target)}`)
      continue
    }
    answers.set(item, (answers.get(item) ?? new Set()).add(answerOf(each, at, skipped)))
    for (const { 'observation-uuid': uuid } of each['related-observations']) {
      const found = observed.get(uuid.toLowerCase())
      if (found !== undefined) add(item, found)
    }
  }
  for (const [at, each] of observations.entries()) {
    const item = items.get(itemKey(ownText(each.props, 'item-id')))
    if (item !== undefined && ownText(each.props, 'discovery-topic') !== '') addFacts(item, each, at)
    else if (item !== undefined) add(item, each)
    else if (!related.has(each)) skipped.push(`observations[${at}]: no finding of the assessment has it`)
  }
  return categories.map((category) => ({
    ...category,
    items: category.items.map((item) => {
      const note = noteOf(item, [...(notes.get(item) ?? [])], skipped)
      const found = facts.get(item)
      const answer = combined(answers.get(item) ?? new Set())
      return { ...item, answer, note, ...(found === undefined ? {} : { facts: found }) }
    }),
  }))
}

/** Items by the key of their own id and of their control in OSCAL. */
function itemsByControl(frameworkId: AnyFrameworkId, items: readonly AssessmentItem[]): Map<string, AssessmentItem> {
  const byControl = items.map((item) => [itemKey(controlIdOf(frameworkId, item.id)), item] as const)
  return new Map([...byControl, ...items.map((item) => [itemKey(item.id), item] as const)])
}

function answerOf({ props, target }: z.infer<typeof finding>, at: number, skipped: string[]): Answer {
  const isSatisfied = target.status.state === 'satisfied'
  const own = ownText(props, 'answer')
  if (own === '') return isSatisfied ? 'yes' : 'no'
  const read = answerRule.safeParse(readAnswer(own))
  if (read.success) return read.data
  skipped.push(`findings[${at}], answer: found ${shown(own)}, ${read.error.issues[0]?.message}; used its status`)
  return isSatisfied ? 'yes' : 'no'
}

/** What discovery showed, as this program wrote it. */
function factsOf({ props, description, collected }: Observation): DiscoveryFacts | undefined {
  const [topic, supports] = [ownText(props, 'discovery-topic'), ownText(props, 'discovery-supports')]
  const read = discoveryFacts.safeParse({ topic, supports, text: description, at: collected })
  if (!read.success) return undefined
  return { topic: read.data.topic, level: read.data.supports, text: description, atMs: Date.parse(collected) }
}

/** Several findings of an item, such as one for each objective of a control. */
function combined(answers: ReadonlySet<Answer>): Answer {
  const [first = 'unanswered'] = answers
  return answers.size > 1 ? 'partial' : first
}

/** The descriptions of an item's observations, up to the limit of a note. */
function noteOf({ id }: AssessmentItem, observations: readonly Observation[], skipped: string[]): string {
  const given = observations.map(({ description }) => description).join('\n\n')
  if (noteRule.safeParse(given).success) return given
  const cleaned = given.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]|\p{Cs}/gu, '')
  const fitting = Buffer.from(cleaned.trim()).subarray(0, ASSESSMENT_NOTE_BYTES_MAX).toString()
  skipped.push(`${id}: its observations are not a note of up to ${ASSESSMENT_NOTE_BYTES_MAX} bytes and were shortened`)
  return fitting.replace(/\ufffd+$/, '').trim()
}

/** Without recursion: JSON may be nested deeper than the stack. */
function assertListedValues(given: unknown): void {
  let count = 0
  const left: unknown[] = [given]
  while (left.length > 0) {
    const value = left.pop()
    if (typeof value !== 'object' || value === null) continue
    const values = Object.values(value)
    if (Array.isArray(value)) count += values.length
    if (count > LISTED_VALUES_MAX) {
      throw new AssessmentFileFault([`found more than ${LISTED_VALUES_MAX} values in lists, expected at most as many`])
    }
    for (const each of values) left.push(each)
  }
}
