import { basesOf, basisText } from '../../engine/assess/basis.ts'
import { compareAssessments, trendOf } from '../../engine/assess/compare.ts'
import { itemChanges, newerItems } from '../../engine/assess/items.ts'
import { itemKey } from '../../engine/assess/rules.ts'
import { scaleOf } from '../../engine/assess/score.ts'
import { itemsOf } from '../../engine/assess/states.ts'
import { suggestionsFor } from '../../engine/assess/suggestions.ts'
import { guidanceOf, templateItems, templateOf } from '../../engine/assess/templates.ts'
import { expiredLinks, isOverdue, workOf } from '../../engine/assess/work.ts'
import { isoDay } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import type { Assessment, AssessmentCategory, AssessmentItem } from '../../engine/store/assessments.ts'
import { type AnyFrameworkId, FRAMEWORK_IDS, FRAMEWORKS } from '../../engine/store/framework.ts'
import type { Store } from '../../engine/store/store.ts'
import { paged } from '../design/list.tsx'
import type { Visit } from '../http/visit.ts'

/** An assessment with its progress, and what stands beside its score. */
export interface AssessmentRow {
  readonly assessment: Assessment
  readonly answered: number
  readonly items: number
  readonly basis: string
}

/** The frameworks in the order of the specification, with their assessments. */
export function assessmentsView(visit: Visit) {
  const { open, completed } = assessmentsOf(visit)
  const rowOf = rowReader(visit)
  const frameworks = frameworksOf(visit).map(([id, name]) => {
    const [last, before] = completed.filter(({ frameworkId }) => frameworkId === id)
    const changed = open.find(({ frameworkId }) => frameworkId === id)
    return {
      ...{ id, name },
      /** The last completed assessment. */
      last: last && rowOf(last),
      scoreChange: changeOf(last, before),
      trend: trendOf(completed, id),
      /** The open assessment that was changed last. */
      open: changed && rowOf(changed),
    }
  })
  return { frameworks, open, completed, rowOf }
}

export type FrameworkRow = ReturnType<typeof assessmentsView>['frameworks'][number]

/** The built-in frameworks, then the organization's own, with their names. */
function frameworksOf({ site, organization }: Visit): readonly (readonly [AnyFrameworkId, string])[] {
  const own = site.store.ownFrameworks.ofOrganization(organization.id)
  return [
    ...FRAMEWORK_IDS.map((id) => [id, FRAMEWORKS[id]] as const),
    ...own.map(({ id, name }) => [id, name] as const),
  ]
}

/** The open assessments, most recently changed first, and the completed ones, newest first. */
function assessmentsOf({ site, organization }: Visit) {
  const all = site.store.assessments.ofOrganization(organization.id)
  return {
    open: all
      .filter(({ status }) => status !== 'completed')
      .sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? -1 : 1)),
    completed: all.filter(({ status }) => status === 'completed').sort((a, b) => b.completion - a.completion),
  }
}

/** Reads the items of assessments, each of which is a record of its own. */
function rowReader({ site: { store }, organization, nowMs }: Visit): (assessment: Assessment) => AssessmentRow {
  const basis = basesOf(store, organization.id, nowMs)
  return (assessment) => {
    const categories = store.assessments.categories(assessment)
    return { assessment, ...progressOf(categories), basis: basisText(basis(assessment, categories)) }
  }
}

/** The change of the score; undefined if there is none. */
function changeOf(last: Assessment | undefined, before: Assessment | undefined): number | undefined {
  const score = last?.result?.overallScore
  const scoreBefore = before?.result?.overallScore
  return score === undefined || scoreBefore === undefined ? undefined : score - scoreBefore
}

/** @throws Fault NOT_FOUND */
export function assessmentView({ site, organization, nowMs }: Visit, id: string) {
  const { store } = site
  const assessment = /^[0-9a-f-]{36}$/.test(id) ? store.assessments.get(organization.id, id) : undefined
  if (assessment === undefined) throw new Fault('NOT_FOUND', 'This organization has no such assessment')
  const categories = store.assessments.categories(assessment)
  /** The framework's current items; undefined if the organization removed it. */
  const template = templateOf(store, organization.id, assessment.frameworkId)
  return {
    ...{ assessment, categories, template },
    ...progressOf(categories),
    previous: previousOf(store, assessment),
    /** What an update to the current items would change. */
    newer: newerItems(assessment, categories, template),
    /** How the framework's current items differ, also from those of a completed assessment. */
    changes: itemChanges(assessment, categories, template),
    /** Suggested answers to unanswered items, by the key of the item. */
    suggestions: suggestionsFor(store, assessment, categories, nowMs),
    /** What stands beside the score. */
    basis: basesOf(store, organization.id, nowMs)(assessment, categories),
  }
}

export type AssessmentView = ReturnType<typeof assessmentView>

/** The assessment of the same framework that was completed before this one. */
function previousOf({ assessments }: Store, assessment: Assessment) {
  const previous = assessments
    .completed(assessment.organizationId)
    .filter(({ frameworkId }) => frameworkId === assessment.frameworkId)
    .find(({ completion }) => assessment.completion === 0 || completion < assessment.completion)
  if (previous === undefined) return undefined
  const items = itemsOf(assessments.categories(previous))
  return {
    assessment: previous,
    /** By their keys. */
    items: new Map(items.map((item) => [itemKey(item.id), item])),
    scoreChange: changeOf(assessment, previous),
  }
}

export function progressOf(categories: readonly AssessmentCategory[]) {
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

const ITEMS_PER_PAGE = 50
/** Names that the page proposes. Others are typed. */
const MEMBERS_PROPOSED_MAX = 100

/**
 * An item at its place, or the first of the list that has no answer. The query's `page` is the page
 * of the list, by default the one with the item.
 *
 * @param shown the filter, as in the address
 * @throws Fault NOT_FOUND
 */
export function itemView(
  visit: Visit,
  { id, at: givenAt, place: givenPlace }: { readonly id: string; readonly at: string; readonly place?: string },
  shown: string,
) {
  const view = assessmentView(visit, id)
  const category = view.categories[Number(givenAt)]
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
  if (current === undefined || category === undefined) {
    throw new Fault('NOT_FOUND', 'The assessment has no such item')
  }
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
    /** The texts that help to answer; undefined if the framework no longer has the item. */
    guidance: guidanceOf(assessment.frameworkId, item, template),
    /** Why its answer is no longer supported. */
    reasons: [
      ...basis.unsupported.filter((each) => each.item === item).map(({ facts }) => facts.text),
      ...(basis.expired.includes(item) ? expiredLinks(item, today).map((link) => `Expired: ${link}`) : []),
    ],
    show,
    /** What each filter finds. */
    found,
    listed: paged(rows, query, 'page', ITEMS_PER_PAGE),
    /** The next one without an answer, among those that the filter finds. */
    next: open.find(isAfter) ?? open.find((each) => each !== current),
    members: site.store.members
      .ofOrganization(organization.id)
      .slice(0, MEMBERS_PROPOSED_MAX)
      .map(({ name }) => name),
  }
}

export type ItemView = ReturnType<typeof itemView>

/**
 * Compares an assessment with another completed one of its framework; by default with the one
 * before. @throws Fault NOT_FOUND
 */
export function comparisonView({ site, organization, request }: Visit, id: string) {
  const { assessments } = site.store
  const withId = request.query.get('with') ?? ''
  const after = assessments.ofOrganization(organization.id).find((each) => each.id === id)
  const others = assessments
    .completed(organization.id)
    .filter((each) => each.frameworkId === after?.frameworkId && each.id !== id)
  const chosen = others.find((each) => each.id === withId)
  const before = withId === '' && after ? previousOf(site.store, after)?.assessment : chosen
  if (after === undefined || before === undefined) {
    throw new Fault('NOT_FOUND', 'This organization has no such assessment to compare')
  }
  const scale = scaleOf(after.frameworkId)
  const compared = compareAssessments(assessments.categories(before), assessments.categories(after), scale)
  return { before, after, others, ...compared }
}
