import { basesOf, basisText, type Caveat, type ScoreBasis } from '../assess/basis.ts'
import type { UnsupportedAnswer } from '../assess/discovery-facts.ts'
import { lawFrom, lawText, resultOf } from '../assess/grade.ts'
import { type ItemCounts, type itemChanges, newerItems } from '../assess/items.ts'
import { scaleOf, scoreOf } from '../assess/score.ts'
import { itemsOf, unansweredOf } from '../assess/states.ts'
import { guidanceOf, templateOf } from '../assess/templates.ts'
import { reviewText, workOf } from '../assess/work.ts'
import type { Shown } from '../kernel/process/table.ts'
import type { Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import { type AnyFrameworkId, profileText, type Template } from '../store/framework.ts'
import { table, timeText } from './command.ts'
import type { AdminContext } from './context.ts'

/** An assessment with what stands beside its score; without, once it is removed. */
export interface RatedAssessment extends Assessment {
  readonly basis?: ScoreBasis
}

export const assessments = table<RatedAssessment>([
  ['Id', 'id'],
  ['Framework', 'framework_id', { hide: 4 }],
  ['Title', 'title', { hide: 7, wrap: true }],
  ['Profile', 'profile', { hide: 3, wrap: true, of: ({ profile }) => profileText(profile) }],
  ['Status', 'status'],
  ['Score', 'overall_score', { hide: 2, of: ({ result }) => result?.overallScore ?? null }],
  ['Grade', 'grade', { hide: 1, of: ({ result }) => result?.grade ?? null }],
  ['N/A %', 'not_applicable_percent', { hide: 8, of: ({ basis }) => basis?.notApplicablePercent ?? null }],
  ['Above facts', 'unsupported_answers', { hide: 9, of: ({ basis }) => basis?.unsupported.length ?? null }],
  ['Started', 'started_at', { hide: 6 }],
  ['Completed', 'completed_at', { hide: 5 }],
  [null, 'updated_at'],
])

/** Assessments of one organization with their bases. */
export function rated({ store, clock, organization }: AdminContext, all: readonly Assessment[]) {
  return store.environment.read(() => {
    const basis = basesOf(store, organization.id, clock.nowMs())
    return all.map((assessment) => ({ ...assessment, basis: basis(assessment) }))
  })
}

/** The score so far counts only answered items. For a completed assessment it is final. */
export function progress(context: AdminContext, assessment: Assessment): Shown {
  const { store, clock } = context
  const categories = store.assessments.categories(assessment)
  const [known] = rated(context, [assessment])
  const template = templateOf(store, assessment.organizationId, assessment.frameworkId)
  const result = assessment.result ?? resultOf(assessment.frameworkId, categories, clock.nowMs())
  const row = {
    ...assessments(known === undefined ? [] : [known]).rows[0],
    overall_score: result?.overallScore ?? null,
    grade: result?.grade ?? null,
    basis: known === undefined ? null : basisText(known.basis),
    items: itemsOf(categories).length,
    unanswered: unansweredOf(categories).length,
    newer_items: newerText(newerItems(assessment, categories, template)),
  }
  const columns = [
    ['Id', 'id'],
    ['Framework', 'framework_id'],
    ['Title', 'title', { wrap: true }],
    ['Profile', 'profile', { wrap: true }],
    ['Status', 'status'],
    ['Score so far', 'overall_score'],
    ['Grade', 'grade'],
    ['Basis', 'basis', { wrap: true }],
    ['Items', 'items'],
    ['Unanswered', 'unanswered'],
    ['Newer items', 'newer_items', { wrap: true }],
  ] as const
  return { columns, rows: [row] }
}

function newerText(counts: ItemCounts | undefined): string | null {
  if (counts === undefined) return null
  return `${counts.added} new, ${counts.changed} changed, ${counts.removed} removed: assessment update`
}

export function categoryScores(frameworkId: AnyFrameworkId, categories: readonly AssessmentCategory[]): Shown {
  const { categories: scores } = scoreOf(categories, scaleOf(frameworkId))
  return table<AssessmentCategory & { readonly score: number | null }>([
    ['Category', 'name', { wrap: true }],
    ['Weight', 'weight', { hide: 2 }],
    ['Items', 'items', { hide: 1, of: ({ items }) => items.length }],
    ['Score', 'score'],
    ['Unanswered', 'unanswered', { wrap: true, of: (category) => unansweredOf([category]).map(({ id }) => id) }],
  ])(categories.map((category, at) => ({ ...category, score: scores[at]?.score ?? null })))
}

export const changes = table<ReturnType<typeof itemChanges>[number]>([
  ['Item', 'item_id', { of: ({ id }) => id }],
  ['Change', 'change', { of: ({ kind }) => kind }],
  ['Check', 'title', { wrap: true }],
])

export function items(
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  template: Template | undefined,
  nowMs: number,
): Shown {
  const columns = [
    ['Item', 'item_id'],
    ['Category', 'category', { hide: 1 }],
    ['Weight', 'weight', { hide: 3 }],
    ['Priority', 'priority', { hide: 2 }],
    ['Answer', 'answer'],
    ['Note', 'note', { hide: 4, wrap: true }],
    ['Owner', 'owner', { hide: 6, wrap: true }],
    ['Due', 'due_on', { hide: 5 }],
    ['Law from', 'law_from', { hide: 7 }],
    ['Check', 'title', { wrap: true }],
  ] as const
  const rows = categories.flatMap((category) =>
    category.items.map((item) => ({ category: category.name, ...oneItem(assessment, item, template, nowMs).rows[0] })),
  )
  return { columns, rows }
}

function historyText(value: unknown): string {
  return (value as readonly { at: string; by: string; field: string; to: string }[])
    .map(({ at, by, field, to }) => `${at} ${field} ${to || 'none'} (${by})`)
    .join(', ')
}

/** One item with the texts that help to answer it. */
export function oneItem(
  { frameworkId }: Assessment,
  item: AssessmentItem,
  template: Template | undefined,
  nowMs: number,
): Shown {
  const asked = guidanceOf(frameworkId, item, template)
  const { owner, dueOn, links, review, history } = workOf(item)
  return table<AssessmentItem>([
    ['Item', 'item_id', { of: ({ id }) => id }],
    ['Check', 'title', { wrap: true }],
    ['Question', 'question', { wrap: true, of: ({ question = null }) => question }],
    ['Yes', 'yes', { wrap: true, of: () => asked?.guidance?.yes ?? null }],
    ['Partial', 'partial', { wrap: true, of: () => asked?.guidance?.partial ?? null }],
    ['No', 'no', { wrap: true, of: () => asked?.guidance?.no ?? null }],
    ['Evidence', 'evidence', { wrap: true, of: () => asked?.guidance?.evidence ?? null }],
    ['Recommendation', 'recommendation', { wrap: true }],
    ['Profiles', 'baselines', { wrap: true, of: () => asked?.baselines ?? [] }],
    ['References', 'references', { wrap: true, of: () => asked?.references ?? [] }],
    [
      'Law',
      'law',
      {
        wrap: true,
        text: () => lawText(asked?.law),
        of: () =>
          (asked?.law ?? []).map(({ reference, appliesFrom, source }) => {
            return { reference, applies_from: appliesFrom, source }
          }),
      },
    ],
    ['Not in force until', 'law_from', { of: ({ id }) => lawFrom(frameworkId, id, nowMs) ?? null }],
    ['Weight', 'weight'],
    ['Priority', 'priority'],
    ['Answer', 'answer'],
    ['Note', 'note', { wrap: true }],
    ['Owner', 'owner', { of: () => owner }],
    ['Due', 'due_on', { of: () => dueOn }],
    ['Links', 'links', { wrap: true, of: () => links }],
    ['Review', 'review', { wrap: true, of: () => reviewText(review) }],
    [
      'Changes',
      'changes',
      {
        wrap: true,
        text: historyText,
        of: () => history.map(({ atMs, ...change }) => ({ at: timeText(atMs), ...change })),
      },
    ],
  ])([item])
}

/** Answers that are better than what discovery shows. */
export const unsupported = table<UnsupportedAnswer>([
  ['Not supported', 'item_id', { of: ({ item }) => item.id }],
  ['Answer', 'answer', { of: ({ item }) => item.answer }],
  ['Discovery now', 'discovery', { wrap: true, of: (answer) => answer.facts.text }],
  [null, 'discovery_before', { of: ({ item }) => item.facts?.text ?? null }],
])

/** What a reader of the score has to know, with the reason. */
export const caveats = table<Caveat>([
  ['Item', 'item_id'],
  ['Check', 'title', { hide: 1, wrap: true }],
  ['Caveat', 'kind'],
  ['Reason', 'reason', { wrap: true }],
])

/** An assessment, and then the caveats of its score. */
export function withCaveats(context: AdminContext, assessment: Assessment): Shown {
  const { output } = context
  const [known] = rated(context, [assessment])
  const shown = assessments(known === undefined ? [] : [known])
  const listed = caveats(known?.basis.caveats ?? [])
  if (!output.isTable) return { ...shown, rows: [{ ...shown.rows[0], caveats: listed.rows }] }
  if (listed.rows.length === 0) return shown
  output.show(shown)
  return listed
}
