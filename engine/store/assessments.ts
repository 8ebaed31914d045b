import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import type { FrameworkId, TemplateItem } from './framework.ts'
import { uuidBytes } from './keys.ts'

export const ASSESSMENT_STATUSES = ['draft', 'in_progress', 'completed'] as const
export type AssessmentStatus = (typeof ASSESSMENT_STATUSES)[number]

export const WORD_ANSWERS = ['yes', 'partial', 'no', 'not_applicable', 'unanswered'] as const
/** A word, or how much of the item is there, as a whole number from 0 to 100. */
export type Answer = (typeof WORD_ANSWERS)[number] | number

export interface AssessmentItem extends TemplateItem {
  readonly answer: Answer
  /** What the answer rests on; may be empty. */
  readonly note: string
}

/** The assessment's own copy of a category of its framework: a later release of the template does not change it. */
export interface AssessmentCategory {
  readonly name: string
  readonly weight: number
  readonly items: readonly AssessmentItem[]
}

export interface CategoryScore {
  readonly name: string
  readonly weight: number
  /** 0 to 100; null where no item of the category applies. */
  readonly score: number | null
}

/** What the answers of a completed assessment came to. */
export interface AssessmentResult {
  /** 0 to 100. */
  readonly overallScore: number
  readonly grade: string
  readonly categories: readonly CategoryScore[]
}

/** An assessment without its items, which few need. */
export interface Assessment {
  readonly id: string
  readonly organizationId: string
  readonly frameworkId: FrameworkId
  readonly status: AssessmentStatus
  readonly title: string
  /** When it was made. */
  readonly startedAtMs: number
  /** 0 until it is completed. */
  readonly completedAtMs: number
  readonly updatedAtMs: number
  /**
   * Its place in the order of the organization's completions, from 1; 0 until then. The clock may
   * have been set back in between.
   */
  readonly completion: number
  /** null until it is completed. */
  readonly result: AssessmentResult | null
}

/** The assessments of each organization, each in two records: itself, and its categories with items and answers. */
export class Assessments {
  readonly #assessments: Family<Assessment>
  readonly #categories: Family<readonly AssessmentCategory[]>

  constructor(environment: Environment) {
    this.#assessments = new Family(environment.table('assessments'), 'assessment')
    this.#categories = new Family(environment.table('assessment-answers'), 'answers of an assessment')
  }

  get(organizationId: string, id: string): Assessment | undefined {
    return this.#assessments.get(keyOf(organizationId, id))
  }

  /** In no order that means anything. */
  ofOrganization(organizationId: string): Assessment[] {
    return Array.from(this.#assessments.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** Those that are completed, the latest one first. */
  completed(organizationId: string): Assessment[] {
    return this.ofOrganization(organizationId)
      .filter(({ status }) => status === 'completed')
      .sort((a, b) => b.completion - a.completion)
  }

  categories({ organizationId, id }: Assessment): readonly AssessmentCategory[] {
    const categories = this.#categories.get(keyOf(organizationId, id))
    if (categories === undefined) throw new Error(`the assessment ${id} has no record of its answers`)
    return categories
  }

  /** Inside a transaction of the caller. Without `categories` these stay what they are. */
  put(assessment: Assessment, categories?: readonly AssessmentCategory[]): void {
    const key = keyOf(assessment.organizationId, assessment.id)
    this.#assessments.put(key, assessment)
    if (categories !== undefined) this.#categories.put(key, categories)
  }

  /** Inside a transaction of the caller. */
  remove({ organizationId, id }: Assessment): void {
    const key = keyOf(organizationId, id)
    this.#assessments.remove(key)
    this.#categories.remove(key)
  }
}

function keyOf(organizationId: string, id: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(id)])
}
