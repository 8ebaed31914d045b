import type { Command } from 'commander'
import { discoveryFacts, unsupportedAnswers } from '../../assess/discovery-facts.ts'
import { gradeOf } from '../../assess/grade.ts'
import { type ItemCounts, itemChanges, newerItems } from '../../assess/items.ts'
import { scoreOf } from '../../assess/score.ts'
import { itemsOf, unansweredOf } from '../../assess/states.ts'
import { guidanceOf, templateOf } from '../../assess/templates.ts'
import { workOf } from '../../assess/work.ts'
import { systemClock } from '../../process/clock.ts'
import { printsTable } from '../../process/table.ts'
import type { Assessment, AssessmentCategory, AssessmentItem } from '../../store/assessments.ts'
import { type AnyFrameworkId, profileText, type Template } from '../../store/framework.ts'
import type { Store } from '../../store/store.ts'
import { itemIn } from '../assessments.ts'
import { byIdPrefix } from '../id-prefix.ts'
import { ASSESSMENT_ID } from './assessment-file.ts'
import { ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

export function addShow(assessment: Command): void {
  const one = ofOrganization(
    sharedOptions(
      assessment
        .command('show')
        .description('Show the progress and score of an assessment')
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
    .option('--items', 'Show every item with its answer instead')
    .option('--item <item>', 'Show the question of one item and what counts as each answer instead')
    .option('--changes', "Show how the framework's current items differ instead")
  one.action((id: string, options: { org?: string; items?: boolean; item?: string; changes?: boolean }) =>
    withStore(one, ({ store, administration }) => {
      const all = store.assessments.ofOrganization(administration.organization(options.org).id)
      const found = byIdPrefix(all, id, 'assessment')
      const categories = store.assessments.categories(found)
      const template = templateOf(store, found.organizationId, found.frameworkId)
      if (options.items) {
        printItems(one, found, categories, template)
        return
      }
      if (options.changes) {
        printChanges(one, found, categories, template)
        return
      }
      if (options.item !== undefined) {
        printItem(one, found, itemIn(categories, options.item), template)
        return
      }
      const unsupported = unsupportedRows(store, found, categories)
      const { json } = one.opts<{ json?: boolean }>()
      if (printsTable({ ...(json === undefined ? {} : { json }) })) {
        printProgress(one, store, found)
        printCategories(one, categories)
        if (unsupported.length > 0) printUnsupported(one, unsupported)
      } else {
        const more = { categories: categoryRows(categories), unsupported }
        show(one, { columns: [], rows: [{ ...progressOf(store, found), ...more }] })
      }
    }),
  )
}

export function printAssessments(command: Command, assessments: readonly Assessment[]): void {
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Framework', 'framework_id', { hide: 4 }],
      ['Title', 'title', { hide: 7, wrap: true }],
      ['Profile', 'profile', { hide: 3, wrap: true }],
      ['Status', 'status'],
      ['Score', 'overall_score', { hide: 2 }],
      ['Grade', 'grade', { hide: 1 }],
      ['Started', 'started_at', { hide: 6 }],
      ['Completed', 'completed_at', { hide: 5 }],
    ],
    rows: assessments.map(rowOf),
  })
}

function rowOf(assessment: Assessment): Record<string, unknown> {
  return {
    id: assessment.id,
    framework_id: assessment.frameworkId,
    title: assessment.title,
    profile: profileText(assessment.profile),
    status: assessment.status,
    overall_score: assessment.result?.overallScore ?? null,
    grade: assessment.result?.grade ?? null,
    started_at: timeText(assessment.startedAtMs),
    completed_at: timeText(assessment.completedAtMs),
    updated_at: timeText(assessment.updatedAtMs),
  }
}

/** The score so far counts only answered items. For a completed assessment it is final. */
export function printProgress(command: Command, store: Store, assessment: Assessment): void {
  show(command, {
    columns: [
      ['Id', 'id'],
      ['Framework', 'framework_id'],
      ['Title', 'title', { wrap: true }],
      ['Profile', 'profile', { wrap: true }],
      ['Status', 'status'],
      ['Score so far', 'overall_score'],
      ['Grade', 'grade'],
      ['Items', 'items'],
      ['Unanswered', 'unanswered'],
      ['Newer items', 'newer_items', { wrap: true }],
    ],
    rows: [progressOf(store, assessment)],
  })
}

function progressOf(store: Store, assessment: Assessment): Record<string, unknown> {
  const categories = store.assessments.categories(assessment)
  const template = templateOf(store, assessment.organizationId, assessment.frameworkId)
  const { overallScore } = scoreOf(categories)
  return {
    ...rowOf(assessment),
    overall_score: assessment.result?.overallScore ?? overallScore,
    grade: assessment.result?.grade ?? (overallScore === null ? null : gradeOf(overallScore)),
    items: itemsOf(categories).length,
    unanswered: unansweredOf(categories).length,
    newer_items: newerText(newerItems(assessment, categories, template)),
  }
}

function printCategories(command: Command, categories: readonly AssessmentCategory[]): void {
  show(command, {
    columns: [
      ['Category', 'name', { wrap: true }],
      ['Weight', 'weight', { hide: 2 }],
      ['Items', 'items', { hide: 1 }],
      ['Score', 'score'],
      ['Unanswered', 'unanswered', { wrap: true }],
    ],
    rows: categoryRows(categories),
  })
}

function categoryRows(categories: readonly AssessmentCategory[]): Record<string, unknown>[] {
  const { categories: scores } = scoreOf(categories)
  return categories.map((category, at) => ({
    name: category.name,
    weight: category.weight,
    score: scores[at]?.score ?? null,
    items: category.items.length,
    unanswered: unansweredOf([category]).map(({ id }) => id),
  }))
}

function printItems(
  command: Command,
  { frameworkId }: Assessment,
  categories: readonly AssessmentCategory[],
  template: Template | undefined,
): void {
  show(command, {
    columns: [
      ['Item', 'item_id'],
      ['Category', 'category', { hide: 1 }],
      ['Weight', 'weight', { hide: 3 }],
      ['Priority', 'priority', { hide: 2 }],
      ['Answer', 'answer'],
      ['Note', 'note', { hide: 4, wrap: true }],
      ['Owner', 'owner', { hide: 6, wrap: true }],
      ['Due', 'due_on', { hide: 5 }],
      ['Check', 'title', { wrap: true }],
    ],
    rows: categories.flatMap((category) =>
      category.items.map((item) => ({ category: category.name, ...itemRow(frameworkId, item, template) })),
    ),
  })
}

function printChanges(
  command: Command,
  assessment: Assessment,
  categories: readonly AssessmentCategory[],
  template: Template | undefined,
): void {
  show(command, {
    columns: [
      ['Item', 'item_id'],
      ['Change', 'change'],
      ['Check', 'title', { wrap: true }],
    ],
    rows: itemChanges(assessment, categories, template).map(({ kind, id, title }) => ({
      item_id: id,
      change: kind,
      title,
    })),
  })
}

function historyText(value: unknown): string {
  const changes = value as readonly {
    readonly at: string
    readonly by: string
    readonly field: string
    readonly to: string
  }[]
  return changes.map(({ at, by, field, to }) => `${at} ${field} ${to || 'none'} (${by})`).join(', ')
}

/** One item with the texts that help to answer it. */
function printItem(
  command: Command,
  { frameworkId }: Assessment,
  item: AssessmentItem,
  template: Template | undefined,
): void {
  show(command, {
    columns: [
      ['Item', 'item_id'],
      ['Check', 'title', { wrap: true }],
      ['Question', 'question', { wrap: true }],
      ['Yes', 'yes', { wrap: true }],
      ['Partial', 'partial', { wrap: true }],
      ['No', 'no', { wrap: true }],
      ['Evidence', 'evidence', { wrap: true }],
      ['Recommendation', 'recommendation', { wrap: true }],
      ['Profiles', 'baselines', { wrap: true }],
      ['References', 'references', { wrap: true }],
      ['Weight', 'weight'],
      ['Priority', 'priority'],
      ['Answer', 'answer'],
      ['Note', 'note', { wrap: true }],
      ['Owner', 'owner'],
      ['Due', 'due_on'],
      ['Links', 'links', { wrap: true }],
      ['Changes', 'changes', { wrap: true, text: historyText }],
    ],
    rows: [itemRow(frameworkId, item, template)],
  })
}

function itemRow(
  frameworkId: AnyFrameworkId,
  item: AssessmentItem,
  template: Template | undefined,
): Record<string, unknown> {
  const asked = guidanceOf(frameworkId, item, template)
  const { owner, dueOn, links, history } = workOf(item)
  return {
    item_id: item.id,
    title: item.title,
    question: item.question ?? null,
    yes: asked?.guidance?.yes ?? null,
    partial: asked?.guidance?.partial ?? null,
    no: asked?.guidance?.no ?? null,
    evidence: asked?.guidance?.evidence ?? null,
    baselines: asked?.baselines ?? [],
    references: asked?.references ?? [],
    weight: item.weight,
    priority: item.priority,
    answer: item.answer,
    note: item.note,
    owner,
    due_on: dueOn,
    links,
    changes: history.map(({ atMs, ...change }) => ({ at: timeText(atMs), ...change })),
    recommendation: item.recommendation,
  }
}

/** Answers that discovery supported at completion, and does not support now. */
function unsupportedRows(store: Store, assessment: Assessment, categories: readonly AssessmentCategory[]) {
  const facts = store.environment.read(() => discoveryFacts(store, assessment.organizationId, systemClock.nowMs()))
  return unsupportedAnswers(assessment, categories, facts).map(({ item, facts: { text } }) => ({
    item_id: item.id,
    answer: item.answer,
    discovery: text,
    discovery_before: item.facts?.text ?? null,
  }))
}

function printUnsupported(command: Command, rows: ReturnType<typeof unsupportedRows>): void {
  show(command, {
    columns: [
      ['No longer supported', 'item_id'],
      ['Answer', 'answer'],
      ['Discovery now', 'discovery', { wrap: true }],
    ],
    rows,
  })
}

function newerText(counts: ItemCounts | undefined): string | null {
  if (counts === undefined) return null
  return `${counts.added} new, ${counts.changed} changed, ${counts.removed} removed: assessment update`
}
