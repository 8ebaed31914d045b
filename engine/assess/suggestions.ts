import type { Answer, Assessment, AssessmentCategory, DiscoveryFacts } from '../store/assessments.ts'
import { type AnyFrameworkId, FRAMEWORK_IDS, type FrameworkId, frameworkName, isBuiltIn } from '../store/framework.ts'
import type { Store } from '../store/store.ts'
import { discoveryFacts, suggestedBy } from './discovery-facts.ts'
import { topicOf } from './discovery-topics.ts'
import { itemKey } from './rules.ts'
import { pointsOf } from './score.ts'
import { itemsOf } from './states.ts'
import { loadFrameworks } from './templates.ts'

/*
 * Answers that earlier assessments and discovery suggest for an open assessment. A mapping relates
 * topics: it does not show that one control satisfies the other. Discovery sees a part of what an
 * item asks for. So a suggestion never becomes an answer by itself.
 *
 * The sources of an item are its mapped items in the last completed assessment of each other
 * framework, and the same item in the last completed assessment of its own framework, which then
 * is the only source. Frameworks without a mapping are related through a third one.
 *
 *   the sources answer            suggestion
 *   100 each                      yes
 *   0 each                        no
 *   otherwise                     partial
 *   only not_applicable, or none  none
 *
 * Facts of discovery (discovery-facts.ts) suggest an answer if there is no source. Otherwise they
 * can only lower the suggestion.
 */
export interface SuggestionSource {
  readonly assessmentId: string
  readonly assessment: string
  readonly frameworkId: AnyFrameworkId
  readonly itemId: string
  readonly answer: Answer
  readonly completedAtMs: number
}

export interface Suggestion {
  readonly itemId: string
  readonly answer: 'yes' | 'partial' | 'no'
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
    const sources = own === undefined ? mappedSources(frameworkId, id, completed) : [own]
    const answer = answerOf(sources)
    const topic = topicOf(frameworkId, id)
    const facts: DiscoveryFacts | undefined = topic && known.get(topic)
    const suggested = facts === undefined ? answer : (lowered(answer, facts.level) ?? suggestedBy(frameworkId, facts))
    if (suggested === undefined) continue
    suggestions.set(itemKey(id), { itemId: id, answer: suggested, sources, ...(facts === undefined ? {} : { facts }) })
  }
  return suggestions
}

const LEVELS = ['no', 'partial', 'yes'] as const

function lowered(answer: Suggestion['answer'] | undefined, level: DiscoveryFacts['level']) {
  return answer && LEVELS[Math.min(LEVELS.indexOf(answer), LEVELS.indexOf(level))]
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

/** The first sources of a suggestion. */
function sourcesText(sources: readonly SuggestionSource[]): string {
  const named = sources.slice(0, SOURCES_NAMED_MAX).map((source) => {
    const date = new Date(source.completedAtMs).toISOString().slice(0, 10)
    return `${frameworkName(source.frameworkId)} ${source.itemId} (${source.answer}, ${date})`
  })
  if (sources.length > named.length) named.push(`${sources.length - named.length} more`)
  return named.join(', ')
}

/** The items of a framework that are mapped to an item, directly or through a third framework. */
export function mappedItems(frameworkId: FrameworkId, id: string, to: FrameworkId): readonly string[] {
  const { mappings } = loadFrameworks()
  const mapped = mappings[frameworkId][id] ?? {}
  if (isMapped(frameworkId, to)) return mapped[to] ?? []
  const between = Object.entries(mapped) as [FrameworkId, readonly string[]][]
  return [...new Set(between.flatMap(([other, ids]) => ids.flatMap((each) => mappings[other][each]?.[to] ?? [])))]
}

/** Whether there is a published mapping between two frameworks. */
export function isMapped(from: FrameworkId, to: FrameworkId): boolean {
  return Object.values(loadFrameworks().mappings[from]).some((mapped) => mapped[to] !== undefined)
}

/** How the items of one framework cover another. */
export interface Crosswalk {
  readonly items: number
  /** Items of `to` with a mapped item in `from`. */
  readonly mapped: number
  /** Whether the mapping is published, or goes through a third framework. */
  readonly isDirect: boolean
  readonly rows: readonly CrosswalkRow[]
}

export interface CrosswalkRow {
  readonly itemId: string
  readonly title: string
  readonly category: string
  /** The mapped items of `from`. */
  readonly from: readonly string[]
}

/** What answering `from` gives of `to`. */
export function crosswalk(from: FrameworkId, to: FrameworkId): Crosswalk {
  const rows = loadFrameworks().templates[to].categories.flatMap(({ name, items }) =>
    items.map(({ id, title }) => ({ itemId: id, title, category: name, from: mappedItems(to, id, from) })),
  )
  const mapped = rows.filter((row) => row.from.length > 0).length
  return { items: rows.length, mapped, isDirect: isMapped(to, from), rows }
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
      return [itemKey(item.id), { ...source, completedAtMs }] as const
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
  return FRAMEWORK_IDS.flatMap((other) => {
    const answers = completed.get(other)
    if (other === frameworkId || answers === undefined) return []
    return mappedItems(frameworkId, id, other).flatMap((each) => answers.get(itemKey(each)) ?? [])
  })
}

function answerOf(sources: readonly SuggestionSource[]): Suggestion['answer'] | undefined {
  const points = sources.flatMap(({ answer }) => pointsOf(answer) ?? [])
  if (points.length === 0) return undefined
  if (points.every((value) => value === 100)) return 'yes'
  return points.every((value) => value === 0) ? 'no' : 'partial'
}
