import { basesOf, basisText, type ScoreBasis } from '../../engine/assess/basis.ts'
import { type AssessmentComparison, compareAssessments, type TrendPoint, trendOf } from '../../engine/assess/compare.ts'
import { type ItemChange, type ItemCounts, itemChanges, newerItems } from '../../engine/assess/items.ts'
import { itemKey } from '../../engine/assess/rules.ts'
import { scaleOf } from '../../engine/assess/score.ts'
import { itemsOf } from '../../engine/assess/states.ts'
import { type Suggestion, suggestionsFor } from '../../engine/assess/suggestions.ts'
import { guidanceOf, templateItems, templateOf } from '../../engine/assess/templates.ts'
import { expiredLinks, isOverdue, workOf } from '../../engine/assess/work.ts'
import { isoDay } from '../../engine/kernel/process/clock.ts'
import type { Assessment, AssessmentCategory, AssessmentItem } from '../../engine/store/assessments.ts'
import {
  type AnyFrameworkId,
  FRAMEWORK_IDS,
  FRAMEWORKS,
  type FrameworkItem,
  type Template,
} from '../../engine/store/framework.ts'
import type { Store } from '../../engine/store/store.ts'
import { type Paged, paged } from '../design/list.tsx'
import type { Visit } from '../http/visit.ts'

export interface FrameworkRow {
  readonly id: AnyFrameworkId
  readonly name: string
  /** The last completed assessment. */
  readonly last: Assessment | undefined
  /** The change of the score since the previous assessment; undefined if there is none. */
  readonly scoreChange: number | undefined
  /** The scores of completed assessments, the oldest first. */
  readonly trend: readonly TrendPoint[]
  /** The open assessment that was changed last. */
  readonly open: AssessmentRow | undefined
  /** What stands beside the score of the last one. */
  readonly basis: string
}

/** An assessment with its progress. */
export interface AssessmentRow {
  readonly assessment: Assessment
  readonly answered: number
  readonly items: number
  /** What stands beside its score. */
  readonly basis: string
}

export interface AssessmentsView {
  /** In the order of the specification. */
  readonly frameworks: readonly FrameworkRow[]
  /** Most recently changed first. */
  readonly open: Paged<AssessmentRow>
  /** Newest first. */
  readonly completed: Paged<AssessmentRow>
}

/** The pages of the lists are those of the query's `open` and `completed`. */
export function assessmentsView(visit: Visit): AssessmentsView {
  const { query } = visit.request
  const lists = assessmentsOf(visit)
  const open = paged(lists.open, query, 'open')
  const completed = paged(lists.completed, query, 'completed')
  const rowOf = rowReader(visit)
  return {
    frameworks: frameworkRows(visit, lists, rowOf),
    open: { ...open, rows: open.rows.map(rowOf) },
    completed: { ...completed, rows: completed.rows.map(rowOf) },
  }
}

/** The assessments of each framework, in the order of the specification. */
function frameworkRows(visit: Visit, { open, completed }: AssessmentLists, rowOf: RowReader): readonly FrameworkRow[] {
  return frameworksOf(visit).map(([id, name]) => {
    const [last, before] = completed.filter(({ frameworkId }) => frameworkId === id)
    const changed = open.find(({ frameworkId }) => frameworkId === id)
    return {
      id,
      name,
      last,
      scoreChange: changeOf(last, before),
      trend: trendOf(completed, id),
      open: changed && rowOf(changed),
      basis: last === undefined ? '' : rowOf(last).basis,
    }
  })
}

/** The built-in frameworks, then the organization's own, with their names. */
function frameworksOf({ site, organization }: Visit): readonly (readonly [AnyFrameworkId, string])[] {
  const own = site.store.ownFrameworks.ofOrganization(organization.id)
  return [
    ...FRAMEWORK_IDS.map((id) => [id, FRAMEWORKS[id]] as const),
    ...own.map(({ id, name }) => [id, name] as const),
  ]
}

/** All assessments, open ones first. Reads all items of each. */
export function allAssessments(visit: Visit): readonly AssessmentRow[] {
  const { open, completed } = assessmentsOf(visit)
  return [...open, ...completed].map(rowReader(visit))
}

interface AssessmentLists {
  /** Most recently changed first. */
  readonly open: readonly Assessment[]
  /** Newest first. */
  readonly completed: readonly Assessment[]
}

function assessmentsOf({ site, organization }: Visit): AssessmentLists {
  const all = site.store.assessments.ofOrganization(organization.id)
  return {
    open: all
      .filter(({ status }) => status !== 'completed')
      .sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? -1 : 1)),
    completed: all.filter(({ status }) => status === 'completed').sort((a, b) => b.completion - a.completion),
  }
}

type RowReader = (assessment: Assessment) => AssessmentRow

/** Reads the items of an assessment, which are a record of their own, once. */
function rowReader({ site: { store }, organization, nowMs }: Visit): RowReader {
  const basis = basesOf(store, organization.id, nowMs)
  const rows = new Map<string, AssessmentRow>()
  return (assessment) => {
    const known = rows.get(assessment.id)
    if (known !== undefined) return known
    const categories = store.assessments.categories(assessment)
    const row = { assessment, ...progressOf(categories), basis: basisText(basis(assessment, categories)) }
    rows.set(assessment.id, row)
    return row
  }
}

function changeOf(last: Assessment | undefined, before: Assessment | undefined): number | undefined {
  const score = last?.result?.overallScore
  const scoreBefore = before?.result?.overallScore
  return score === undefined || scoreBefore === undefined ? undefined : score - scoreBefore
}

/** The assessment of the same framework that was completed before this one. */
export interface PreviousAssessment {
  readonly assessment: Assessment
  /** By their keys. */
  readonly items: ReadonlyMap<string, AssessmentItem>
  /** The change of the overall score since then; undefined until this assessment is completed. */
  readonly scoreChange: number | undefined
}

export interface AssessmentView {
  readonly assessment: Assessment
  readonly categories: readonly AssessmentCategory[]
  /** The framework's current items; undefined if the organization removed it. */
  readonly template: Template | undefined
  readonly answered: number
  readonly items: number
  readonly previous: PreviousAssessment | undefined
  /** Suggested answers to unanswered items, by the key of the item. */
  readonly suggestions: ReadonlyMap<string, Suggestion>
  /** What stands beside the score. */
  readonly basis: ScoreBasis
  /** What an update to the current items would change. */
  readonly newer: ItemCounts | undefined
  /** How the framework's current items differ, also from those of a completed assessment. */
  readonly changes: readonly ItemChange[]
}

export function assessmentView({ site, organization, nowMs }: Visit, id: string): AssessmentView | undefined {
  if (!/^[0-9a-f-]{36}$/.test(id)) return undefined
  const assessment = site.store.assessments.get(organization.id, id)
  if (assessment === undefined) return undefined
  const categories = site.store.assessments.categories(assessment)
  const previous = previousOf(site.store, assessment)
  const template = templateOf(site.store, organization.id, assessment.frameworkId)
  const newer = newerItems(assessment, categories, template)
  const suggestions = suggestionsFor(site.store, assessment, categories, nowMs)
  const basis = basesOf(site.store, organization.id, nowMs)(assessment, categories)
  const changes = itemChanges(assessment, categories, template)
  const progress = progressOf(categories)
  return { assessment, categories, template, ...progress, previous, newer, changes, suggestions, basis }
}

function previousOf({ assessments }: Store, assessment: Assessment): PreviousAssessment | undefined {
  const previous = assessments
    .completed(assessment.organizationId)
    .filter(({ frameworkId }) => frameworkId === assessment.frameworkId)
    .find(({ completion }) => assessment.completion === 0 || completion < assessment.completion)
  if (previous === undefined) return undefined
  const items = itemsOf(assessments.categories(previous))
  return {
    assessment: previous,
    items: new Map(items.map((item) => [itemKey(item.id), item])),
    scoreChange: changeOf(assessment, previous),
  }
}

export function progressOf(categories: readonly AssessmentCategory[]): {
  readonly answered: number
  readonly items: number
} {
  const items = itemsOf(categories)
  return { answered: items.filter(({ answer }) => answer !== 'unanswered').length, items: items.length }
}

/** Which items the page of an item lists: those of its category, or those of the assessment. */
export const ITEM_FILTERS = ['all', 'mine', 'unanswered', 'unsupported', 'must-pass'] as const
export type ItemFilter = (typeof ITEM_FILTERS)[number]

/** An item in the list of a page. */
export interface ListedItem {
  /** The place of its category in the assessment. */
  readonly at: number
  /** Its place in the category. */
  readonly place: number
  readonly item: AssessmentItem
  readonly isUnsupported: boolean
  readonly isOverdue: boolean
}

export interface ItemView extends AssessmentView, Pick<ListedItem, 'at' | 'place' | 'item'> {
  readonly category: AssessmentCategory
  /** The texts that help to answer; undefined if the framework no longer has the item. */
  readonly guidance: FrameworkItem | undefined
  /** Why its answer is no longer supported. */
  readonly reasons: readonly string[]
  readonly show: ItemFilter
  /** What each filter finds. */
  readonly found: ReadonlyMap<ItemFilter, readonly ListedItem[]>
  readonly listed: Paged<ListedItem>
  /** The next one without an answer, among those that the filter finds. */
  readonly next: ListedItem | undefined
  /** Names of members, for the owner. */
  readonly members: readonly string[]
}

const ITEMS_PER_PAGE = 50
/** Names that the page proposes. Others are typed. */
const MEMBERS_PROPOSED_MAX = 100

/**
 * An item at its place, or the first of the list that has no answer. The query's `page` is the page
 * of the list, by default the one with the item.
 *
 * @param shown the filter, as in the address
 */
export function itemView(
  visit: Visit,
  { id, at: givenAt, place: givenPlace }: { readonly id: string; readonly at: string; readonly place?: string },
  shown: string,
): ItemView | undefined {
  const view = assessmentView(visit, id)
  const category = view?.categories[Number(givenAt)]
  if (view === undefined || category === undefined) return undefined
  const { site, organization, identity, nowMs, request } = visit
  const { categories, template, basis, assessment } = view
  const unsupported = new Set([...basis.unsupported.map((each) => each.item), ...basis.expired])
  const today = isoDay(nowMs)
  const all = categories.flatMap(({ items }, at) =>
    items.map((item, place): ListedItem => {
      return { at, place, item, isUnsupported: unsupported.has(item), isOverdue: isOverdue(assessment, item, today) }
    }),
  )
  const known = template === undefined ? undefined : templateItems(template)
  const finds: Readonly<Record<ItemFilter, (row: ListedItem) => boolean>> = {
    all: ({ at }) => at === Number(givenAt),
    mine: ({ item }) => workOf(item).owner === identity.member.name,
    unanswered: ({ item }) => item.answer === 'unanswered',
    unsupported: ({ isUnsupported }) => isUnsupported,
    'must-pass': ({ item }) => known?.get(itemKey(item.id))?.mustPass === true,
  }
  const found = new Map(ITEM_FILTERS.map((each) => [each, all.filter(finds[each])]))
  const show = ITEM_FILTERS.find((each) => each === shown) ?? 'all'
  const rows = found.get(show) ?? []
  const ofCategory = all.filter(finds.all)
  const first = rows.find(finds.unanswered) ?? rows[0] ?? ofCategory[0]
  const current = givenPlace === undefined ? first : ofCategory.find(({ place }) => place === Number(givenPlace))
  if (current === undefined) return undefined
  const index = rows.indexOf(current)
  const query = new URLSearchParams(request.query)
  if (!query.has('page')) query.set('page', String(1 + Math.floor(Math.max(0, index) / ITEMS_PER_PAGE)))
  const open = (show === 'all' ? all : rows).filter(finds.unanswered)
  const isAfter = ({ at, place }: ListedItem): boolean =>
    at > current.at || (at === current.at && place > current.place)
  const { item } = current
  return {
    ...view,
    ...current,
    category: categories[current.at] ?? category,
    guidance: guidanceOf(assessment.frameworkId, item, template),
    reasons: [
      ...basis.unsupported.filter((each) => each.item === item).map(({ facts }) => facts.text),
      ...(basis.expired.includes(item) ? expiredLinks(item, today).map((link) => `Expired: ${link}`) : []),
    ],
    show,
    found,
    listed: paged(rows, query, 'page', ITEMS_PER_PAGE),
    next: open.find(isAfter) ?? open.find((each) => each !== current),
    members: site.store.members
      .ofOrganization(organization.id)
      .slice(0, MEMBERS_PROPOSED_MAX)
      .map(({ name }) => name),
  }
}

export interface ComparisonView extends AssessmentComparison {
  readonly before: Assessment
  readonly after: Assessment
  /** The other assessments of the framework with which it can be compared, the latest first. */
  readonly others: readonly Assessment[]
}

/**
 * Compares an assessment with another completed one of its framework; by default with the one
 * before. undefined: there is none.
 */
export function comparisonView({ site, organization }: Visit, id: string, withId: string): ComparisonView | undefined {
  const { assessments } = site.store
  const after = assessments.ofOrganization(organization.id).find((each) => each.id === id)
  if (after === undefined) return undefined
  const others = assessments
    .completed(organization.id)
    .filter((each) => each.frameworkId === after.frameworkId && each.id !== id)
  const before = withId === '' ? previousOf(site.store, after)?.assessment : others.find((each) => each.id === withId)
  if (before === undefined) return undefined
  const scale = scaleOf(after.frameworkId)
  const compared = compareAssessments(assessments.categories(before), assessments.categories(after), scale)
  return { before, after, others, ...compared }
}
