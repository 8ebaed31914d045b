import { itemsOf } from '../../engine/assess/states.ts'
import type { Assessment, AssessmentCategory } from '../../engine/store/assessments.ts'
import { FRAMEWORK_IDS, FRAMEWORKS, type FrameworkId } from '../../engine/store/framework.ts'
import type { Visit } from '../http/visit.ts'

export interface FrameworkRow {
  readonly id: FrameworkId
  readonly name: string
  /** The last completed assessment. */
  readonly last: Assessment | undefined
  /** The change of the score since the previous assessment; undefined if there is none. */
  readonly scoreChange: number | undefined
}

export interface OpenRow {
  readonly assessment: Assessment
  readonly answered: number
  readonly items: number
}

export interface AssessmentsView {
  /** In the order of the specification. */
  readonly frameworks: readonly FrameworkRow[]
  /** Drafts and assessments in progress, most recently changed first. */
  readonly open: readonly OpenRow[]
  /** Newest first. */
  readonly completed: readonly Assessment[]
}

export function assessmentsView({ site, organization }: Visit): AssessmentsView {
  const { assessments } = site.store
  const completed = assessments.completed(organization.id)
  const open = assessments.ofOrganization(organization.id).filter(({ status }) => status !== 'completed')
  return {
    frameworks: FRAMEWORK_IDS.map((id) => {
      const [last, before] = completed.filter(({ frameworkId }) => frameworkId === id)
      const score = last?.result?.overallScore
      const scoreBefore = before?.result?.overallScore
      const scoreChange = score === undefined || scoreBefore === undefined ? undefined : score - scoreBefore
      return { id, name: FRAMEWORKS[id], last, scoreChange }
    }),
    open: open
      .sort((a, b) => b.updatedAtMs - a.updatedAtMs || (a.id < b.id ? -1 : 1))
      .map((assessment) => ({ assessment, ...progressOf(assessments.categories(assessment)) })),
    completed,
  }
}

export interface AssessmentView {
  readonly assessment: Assessment
  readonly categories: readonly AssessmentCategory[]
  readonly answered: number
  readonly items: number
}

export function assessmentView({ site, organization }: Visit, id: string): AssessmentView | undefined {
  if (!/^[0-9a-f-]{36}$/.test(id)) return undefined
  const assessment = site.store.assessments.get(organization.id, id)
  if (assessment === undefined) return undefined
  const categories = site.store.assessments.categories(assessment)
  return { assessment, categories, ...progressOf(categories) }
}

function progressOf(categories: readonly AssessmentCategory[]): { readonly answered: number; readonly items: number } {
  const items = itemsOf(categories)
  return { answered: items.filter(({ answer }) => answer !== 'unanswered').length, items: items.length }
}
