import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { type AnyFrameworkId, type DiscoveryTopic, frameworkName, type TemplateItem } from './framework.ts'
import { uuidBytes } from './keys.ts'

export type AssessmentStatus = 'draft' | 'in_progress' | 'completed'

export const WORD_ANSWERS = ['yes', 'partial', 'no', 'not_applicable', 'unanswered'] as const
/** A word, or the degree of fulfillment as a whole number from 0 to 100. */
export type Answer = (typeof WORD_ANSWERS)[number] | number

/** What scans and senders showed about a topic at some time. */
export interface DiscoveryFacts {
  readonly topic: DiscoveryTopic
  /** The answer that the facts support. */
  readonly level: 'yes' | 'partial' | 'no'
  /** One line, with the time of the last scan. */
  readonly text: string
  /** When the facts were read. */
  readonly atMs: number
}

/** A change of an item, or a comment on it. */
export interface WorkChange {
  readonly atMs: number
  /** As in the audit log: `operator root`, or `member alice@acme.example`. */
  readonly by: string
  readonly field: 'answer' | 'note' | 'owner' | 'due' | 'links' | 'review' | 'comment'
  /** The new value; of links, their number, of a note its beginning, of a review its state, of a comment its text. */
  readonly to: string
}

/** An answer that somebody submitted for review, or approved. */
export interface ItemReview {
  readonly state: 'submitted' | 'approved'
  /** As in the audit log. */
  readonly by: string
  readonly atMs: number
}

/** Who works on an item, until when, and what changed. */
export interface ItemWork {
  /** '' if nobody does. */
  readonly owner: string
  /** A day such as `2026-12-01`; '' if there is none. */
  readonly dueOn: string
  /** Addresses, some followed by a blank and the day on which the evidence expires. */
  readonly links: readonly string[]
  /** Absent unless submitted, and in early releases. */
  readonly review?: ItemReview
  /** Oldest first. */
  readonly history: readonly WorkChange[]
}

export interface AssessmentItem extends TemplateItem {
  readonly answer: Answer
  /** The evidence for the answer. May be empty. */
  readonly note: string
  /** What discovery showed at completion; absent if nothing, and in early releases. */
  readonly facts?: DiscoveryFacts
  /** Absent until something changes, and in early releases. */
  readonly work?: ItemWork
}

/**
 * A copy of a category of the framework: later releases of the template do not change the
 * assessment.
 */
export interface AssessmentCategory {
  readonly name: string
  readonly weight: number
  readonly items: readonly AssessmentItem[]
}

export interface CategoryScore {
  readonly name: string
  readonly weight: number
  /** 0 to 100. null if no item of the category applies. */
  readonly score: number | null
}

/** The scores of a completed assessment. */
export interface AssessmentResult {
  /** 0 to 100. */
  readonly overallScore: number
  readonly grade: string
  readonly categories: readonly CategoryScore[]
  /** Which rules of scores and grades it follows (RULES in grade.ts); absent in early releases. */
  readonly rules?: number
}

/** The framework of an assessment for people. */
export function frameworkOf(assessment: Pick<Assessment, 'frameworkId' | 'frameworkName'>): string {
  return assessment.frameworkName ?? frameworkName(assessment.frameworkId)
}

/** An assessment without its items. */
export interface Assessment {
  readonly id: string
  readonly organizationId: string
  readonly frameworkId: AnyFrameworkId
  /** Of an organization's own framework, which may be removed later. */
  readonly frameworkName?: string
  readonly status: AssessmentStatus
  readonly title: string
  /** The version of the framework's items that it has; absent for files and in early releases. */
  readonly template?: string
  /** Which part of the framework it is, by names of profiles and ids of items; absent for all. */
  readonly profile?: readonly string[]
  /** When the assessment was created. */
  readonly startedAtMs: number
  /** 0 until completed. */
  readonly completedAtMs: number
  readonly updatedAtMs: number
  /**
   * Its place in the order of the organization's completions, from 1; 0 until then. The clock may
   * have been set back in between.
   */
  readonly completion: number
  /** null until completed. */
  readonly result: AssessmentResult | null
}

/**
 * The assessments of each organization, each in two records: the assessment, and its categories
 * with items and answers.
 */
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

  /** In arbitrary order. */
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

  /** Requires a write transaction. Without `categories`, the stored ones are kept. */
  put(assessment: Assessment, categories?: readonly AssessmentCategory[]): void {
    const key = keyOf(assessment.organizationId, assessment.id)
    this.#assessments.put(key, assessment)
    if (categories !== undefined) this.#categories.put(key, categories)
  }

  remove({ organizationId, id }: Assessment): void {
    const key = keyOf(organizationId, id)
    this.#assessments.remove(key)
    this.#categories.remove(key)
  }
}

function keyOf(organizationId: string, id: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), uuidBytes(id)])
}
