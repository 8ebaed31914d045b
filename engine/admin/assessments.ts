import { completeAssessment } from '../assess/complete.ts'
import { itemKey } from '../assess/rules.ts'
import { assertMayRemove, itemsOf, statusAfterAnswer } from '../assess/states.ts'
import { loadTemplates } from '../assess/templates.ts'
import type { AssessmentContent } from '../assess/transfer-json.ts'
import { ASSESSMENTS_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'
import type { Answer, Assessment } from '../store/assessments.ts'
import { FRAMEWORKS, type FrameworkId } from '../store/framework.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { type Changes, checkText } from './changes.ts'
import { byIdPrefix } from './id-prefix.ts'

export class AssessmentChanges {
  readonly #changes: Changes

  constructor(changes: Changes) {
    this.#changes = changes
  }

  /**
   * Creates a draft with the framework's own items. @throws Fault CONFLICT at the limit, USAGE,
   * NOT_ALLOWED.
   */
  create(organization: Organization, frameworkId: FrameworkId, title: string = FRAMEWORKS[frameworkId]): Assessment {
    checkText('--title', title)
    const categories = loadTemplates()[frameworkId].map((category) => ({
      ...category,
      items: category.items.map((item) => ({ ...item, answer: 'unanswered' as const, note: '' })),
    }))
    return this.#changes.make('assessment.create', organization.id, () => {
      const assessment = this.#add(organization, { frameworkId, title, categories })
      return { ...about(assessment), result: assessment }
    })
  }

  /**
   * Imports an assessment. With `complete`, completes it in the same transaction. @throws Fault
   * CONFLICT, NOT_ALLOWED.
   */
  import(organization: Organization, imported: AssessmentContent, options: { complete?: boolean } = {}): Assessment {
    checkText('title', imported.title)
    const { store, clock } = this.#changes
    return this.#changes.make('assessment.import', organization.id, () => {
      const added = this.#add(organization, imported)
      const result = options.complete ? completeAssessment(store, added, imported.categories, clock.nowMs()) : added
      return { ...about(result), result }
    })
  }

  /**
   * Answers one item. Without `note`, the item keeps its note.
   *
   * @throws Fault NOT_FOUND, CONFLICT if the assessment is completed, USAGE, NOT_ALLOWED
   */
  answer(organization: Organization, idOrPrefix: string, item: string, answer: Answer, note?: string): Assessment {
    const { store, clock } = this.#changes
    return this.#changes.make('assessment.change', organization.id, () => {
      const before = this.#existing(organization, idOrPrefix)
      const answers = store.assessments.categories(before)
      const found = itemsOf(answers).find(({ id }) => itemKey(id) === itemKey(item))
      if (found === undefined) {
        throw new Fault(
          'NOT_FOUND',
          `no item ${JSON.stringify(item)} in the assessment; assessment show --items has all`,
        )
      }
      const categories = answers.map((category) => ({
        ...category,
        items: category.items.map((each) => (each === found ? { ...each, answer, note: note ?? each.note } : each)),
      }))
      const status = statusAfterAnswer(before.status, categories)
      const result: Assessment = { ...before, status, updatedAtMs: clock.nowMs() }
      store.assessments.put(result, categories)
      const change = about(result)
      return { ...change, details: { ...change.details, item: found.id, answer, was: found.answer }, result }
    })
  }

  /**
   * @throws Fault NOT_FOUND, CONFLICT if an item is unanswered or the assessment is already
   *   completed, NOT_ALLOWED
   */
  complete(organization: Organization, idOrPrefix: string): Assessment {
    const { store, clock } = this.#changes
    return this.#changes.make('assessment.complete', organization.id, () => {
      const before = this.#existing(organization, idOrPrefix)
      const result = completeAssessment(store, before, store.assessments.categories(before), clock.nowMs())
      return { ...about(result), result }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if it is completed, NOT_ALLOWED */
  remove(organization: Organization, idOrPrefix: string): Assessment {
    const { store } = this.#changes
    return this.#changes.make('assessment.remove', organization.id, () => {
      const assessment = this.#existing(organization, idOrPrefix)
      assertMayRemove(assessment.status)
      store.assessments.remove(assessment)
      return { ...about(assessment), result: assessment }
    })
  }

  #existing(organization: Organization, idOrPrefix: string): Assessment {
    return byIdPrefix(this.#changes.store.assessments.ofOrganization(organization.id), idOrPrefix, 'assessment')
  }

  #add(organization: Organization, { frameworkId, title, categories }: AssessmentContent): Assessment {
    const { store, clock } = this.#changes
    if (store.assessments.ofOrganization(organization.id).length >= ASSESSMENTS_MAX) {
      throw new Fault(
        'CONFLICT',
        `${organization.name} has ${ASSESSMENTS_MAX} assessments already; remove one that is not completed first`,
      )
    }
    const nowMs = clock.nowMs()
    const assessment: Assessment = {
      id: newUuid(),
      organizationId: organization.id,
      frameworkId,
      status: statusAfterAnswer('draft', categories),
      title,
      startedAtMs: nowMs,
      completedAtMs: 0,
      updatedAtMs: nowMs,
      completion: 0,
      result: null,
    }
    store.assessments.put(assessment, categories)
    return assessment
  }
}

function about({ organizationId, id, frameworkId, status, title, result }: Assessment) {
  const score = result === null ? {} : { overall_score: result.overallScore, grade: result.grade }
  return { organizationId, subject: title, details: { id, framework: frameworkId, status, ...score } }
}
