import { isoDay } from '../kernel/process/clock.ts'
import type { Answer, Assessment, AssessmentCategory, DiscoveryFacts } from '../store/assessments.ts'
import { type AnyFrameworkId, FRAMEWORK_IDS, type FrameworkId, frameworkName, isBuiltIn } from '../store/framework.ts'
import type { Store } from '../store/store.ts'
import { discoveryFacts, discoveryOf, LEVELS, type Level, supportedAnswer } from './discovery-facts.ts'
import { contains, isMapped, type MappedItems, mappedItems, type Relation } from './mappings.ts'
import { itemKey } from './rules.ts'
import { pointsOf } from './score.ts'
import { itemsOf } from './states.ts'
import { loadFrameworks } from './templates.ts'

/*
 * What earlier assessments and discovery suggest for an open assessment. A mapping relates topics,
 * and discovery sees a part of what an item asks for. So a suggestion never becomes an answer by
 * itself.
 *
 * The sources of an item are its mapped items in the last completed assessment of each other
 * framework, and the same item in the last completed assessment of its own framework, which then
 * is the only source. Frameworks without a mapping are related through a third one.
 *
 * Only sources that ask for all that the item asks for suggest an answer: on every hop, they are
 * equal to the item or a superset of it (mappings.ts). The others are a hint without an answer.
 *
 *   these sources answer          suggestion
 *   100 each                      yes
 *   0 each                        no
 *   otherwise                     partial
 *   only not_applicable, or none  a hint, if any source applies
 *
 * Facts of discovery (discovery-facts.ts) suggest an answer if there is no such source. Otherwise
 * they can only lower the suggestion.
 */
interface SuggestionSource {
  readonly assessmentId: string
  readonly assessment: string
  readonly frameworkId: AnyFrameworkId
  readonly itemId: string
  /** How it relates to the item that the suggestion is for. */
  readonly relation: Relation
  readonly answer: Answer
  readonly completedAtMs: number
}

export interface Suggestion {
  readonly itemId: string
  /** undefined: a hint only. */
  readonly answer: Level | undefined
  /** At least one, unless there are facts. */
  readonly sources: readonly SuggestionSource[]
  /** What discovery shows now. */
  readonly facts?: DiscoveryFacts
}

/**
 * The suggestions for items without an answer, by key. `from` limits the sources to one framework,
 * or to discovery.
 */
export function suggestionsFor(
  store: Store,
  { organizationId, frameworkId, status }: Assessment,
  categories: readonly AssessmentCategory[],
  nowMs: number,
  from?: FrameworkId | 'discovery',
): ReadonlyMap<string, Suggestion> {
  const suggestions = new Map<string, Suggestion>()
  const open = status === 'completed' ? [] : itemsOf(categories).filter(({ answer }) => answer === 'unanswered')
  if (open.length === 0) return suggestions
  const completed: ReturnType<typeof lastCompleted> =
    from === 'discovery' ? new Map() : lastCompleted(store, organizationId, from)
  const known = from === undefined || from === 'discovery' ? discoveryFacts(store, organizationId, nowMs) : new Map()
  for (const { id } of open) {
    const own = completed.get(frameworkId)?.get(itemKey(id))
    const all = own === undefined ? mappedSources(frameworkId, id, completed) : [own]
    const sources = all.filter(({ answer }) => pointsOf(answer) !== undefined)
    const discovery = discoveryOf(frameworkId, id)
    const facts: DiscoveryFacts | undefined = discovery && known.get(discovery.topic)
    if (sources.length === 0 && facts === undefined) continue
    const supported = discovery && facts && supportedAnswer(discovery, facts)
    const answer = lower(answerOf(sources), supported)
    suggestions.set(itemKey(id), { itemId: id, answer, sources, ...(facts === undefined ? {} : { facts }) })
  }
  return suggestions
}

function lower(one: Level | undefined, other: Level | undefined): Level | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return LEVELS[Math.min(LEVELS.indexOf(one), LEVELS.indexOf(other))]
}

/** Sources that a text names: a note has room for them. */
const SOURCES_NAMED_MAX = 3

/** The note of an answer that a person accepted; the item keeps a note that it has. */
export function acceptedNote(suggestion: Suggestion, note: string): string {
  return note === '' ? `Accepted from ${evidenceText(suggestion)}` : note
}

/** What a suggestion is from: the facts of discovery, and the first sources. */
export function evidenceText({ sources, facts }: Suggestion): string {
  const known = facts === undefined ? [] : [`discovery: ${facts.text}`]
  return [...known, ...(sources.length === 0 ? [] : [sourcesText(sources)])].join('; ')
}

/** The first sources of a suggestion, those that suggest its answer first. */
function sourcesText(sources: readonly SuggestionSource[]): string {
  const ordered = [...sources].sort((a, b) => Number(contains(b.relation)) - Number(contains(a.relation)))
  const named = ordered.slice(0, SOURCES_NAMED_MAX).map((source) => {
    const date = isoDay(source.completedAtMs)
    const known = contains(source.relation) ? source.answer : `${source.relation}, ${source.answer}`
    return `${frameworkName(source.frameworkId)} ${source.itemId} (${known}, ${date})`
  })
  if (sources.length > named.length) named.push(`${sources.length - named.length} more`)
  return named.join(', ')
}

/** How the items of one framework cover another. */
export interface Crosswalk {
  /** Whether the mapping is published, or goes through a third framework. */
  readonly isDirect: boolean
  readonly rows: readonly CrosswalkRow[]
}

export interface CrosswalkRow {
  readonly itemId: string
  readonly title: string
  readonly category: string
  /** The mapped items of `from`. */
  readonly from: MappedItems
}

/** What answering `from` gives of `to`. */
export function crosswalk(from: FrameworkId, to: FrameworkId): Crosswalk {
  const { mappings } = loadFrameworks()
  const rows = loadFrameworks().templates[to].categories.flatMap(({ name, items }) =>
    items.map(({ id, title }) => ({ itemId: id, title, category: name, from: mappedItems(mappings, to, id, from) })),
  )
  return { isDirect: isMapped(mappings, to, from), rows }
}

type AnswersByItem = ReadonlyMap<string, SuggestionSource>

/** The answers of the last completed assessment of each framework, by item. */
function lastCompleted(
  { assessments }: Store,
  organizationId: string,
  from: FrameworkId | undefined,
): ReadonlyMap<AnyFrameworkId, AnswersByItem> {
  const answers = new Map<AnyFrameworkId, AnswersByItem>()
  for (const assessment of assessments.completed(organizationId)) {
    const { id, frameworkId, title, completedAtMs } = assessment
    if (answers.has(frameworkId) || (from !== undefined && from !== frameworkId)) continue
    const items = itemsOf(assessments.categories(assessment)).map((item) => {
      const source = { assessmentId: id, assessment: title, frameworkId, itemId: item.id, answer: item.answer }
      return [itemKey(item.id), { ...source, relation: 'equal', completedAtMs }] as const
    })
    answers.set(frameworkId, new Map(items))
  }
  return answers
}

function mappedSources(
  frameworkId: AnyFrameworkId,
  id: string,
  completed: ReadonlyMap<AnyFrameworkId, AnswersByItem>,
): SuggestionSource[] {
  // No mapping is known for an organization's own framework.
  if (!isBuiltIn(frameworkId)) return []
  const { mappings } = loadFrameworks()
  return FRAMEWORK_IDS.flatMap((other) => {
    const answers = completed.get(other)
    if (other === frameworkId || answers === undefined) return []
    return Object.entries(mappedItems(mappings, frameworkId, id, other)).flatMap(([each, relation]) => {
      const source = answers.get(itemKey(each))
      return source === undefined ? [] : { ...source, relation }
    })
  })
}

function answerOf(sources: readonly SuggestionSource[]): Level | undefined {
  const points = sources.flatMap(({ answer, relation }) => (contains(relation) ? (pointsOf(answer) ?? []) : []))
  if (points.length === 0) return undefined
  if (points.every((value) => value === 100)) return 'yes'
  return points.every((value) => value === 0) ? 'no' : 'partial'
}
