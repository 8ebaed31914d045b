import { completeAssessment } from '../assess/complete.ts'
import { carriedOver, currentItems, updatedItems } from '../assess/items.ts'
import {
  checkRule,
  comment as commentRule,
  dueOn as dueOnRule,
  itemKey,
  links as linksRule,
  note as noteRule,
  owner as ownerRule,
} from '../assess/rules.ts'
import { assertMayRemove, itemsOf, statusAfterAnswer } from '../assess/states.ts'
import { templateOf } from '../assess/templates.ts'
import type { AssessmentContent } from '../assess/transfer-json.ts'
import {
  assertSeen,
  assertSeenWork,
  checkNotPast,
  commentedItem,
  editedItem,
  type ItemEdit,
  type ReviewStep,
  reviewedItem,
  type SeenItem,
  type SeenWork,
  workOf,
} from '../assess/work.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { ASSESSMENTS_MAX } from '../limits.ts'
import type { Answer, Assessment, AssessmentCategory, AssessmentItem } from '../store/assessments.ts'
import { type AnyFrameworkId, frameworkName, profileText } from '../store/framework.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import type { Action } from './actions.ts'
import { AuditedChanges, byIdPrefix, checkText } from './audited-changes.ts'

export interface ImportOptions {
  readonly complete?: boolean
  /** When it was completed elsewhere; by default now. */
  readonly completedAtMs?: number | undefined
}

export interface FillOptions extends ImportOptions {
  readonly title?: string | undefined
}

type ChangeOfItem = (found: AssessmentItem, actor: string, nowMs: number) => AssessmentItem

export class AssessmentChanges extends AuditedChanges {
  /**
   * Creates a draft with the framework's own items, or those of a profile: names of profiles and
   * ids of items.
   *
   * @param from an assessment of the framework whose answers and notes are carried over, where the
   *   question is the same
   * @throws Fault CONFLICT at the limit or for another framework, NOT_FOUND, USAGE, NOT_ALLOWED.
   */
  create(
    organization: Organization,
    frameworkId: AnyFrameworkId,
    givenTitle?: string,
    profile?: readonly string[],
    from?: string,
  ): Assessment {
    const { store } = this
    const own = store.ownFrameworks.get(organization.id, frameworkId)
    const title = givenTitle ?? own?.name ?? frameworkName(frameworkId)
    checkText('--title', title)
    const current = currentItems(frameworkId, profile, templateOf(store, organization.id, frameworkId))
    return this.audited('assessment.create', organization.id, () => {
      const earlier = from === undefined ? undefined : this.find(organization, from)
      if (earlier !== undefined && earlier.frameworkId !== frameworkId) {
        throw new Fault(
          'CONFLICT',
          `the earlier assessment is of ${earlier.frameworkId}, the new one is of ${frameworkId}`,
        )
      }
      const answers = earlier === undefined ? [] : itemsOf(store.assessments.categories(earlier))
      const { categories, carried } = carriedOver(current.categories, answers)
      const assessment = this.#add(organization, { frameworkId, title, ...current, categories })
      const change = about(assessment)
      const details = earlier === undefined ? {} : { from: earlier.id, carried_over: carried }
      return { ...change, details: { ...change.details, ...details }, result: assessment }
    })
  }

  /**
   * Gives an open assessment the current items of its framework and profile. Answers and notes are
   * kept by the ids of items.
   *
   * @throws Fault NOT_FOUND, CONFLICT if the assessment is completed, NOT_ALLOWED.
   */
  update(organization: Organization, idOrPrefix: string): Assessment {
    const { store, clock } = this
    return this.audited('assessment.update', organization.id, () => {
      const before = this.find(organization, idOrPrefix)
      const categories = store.assessments.categories(before)
      const { counts, ...updated } = updatedItems(
        before,
        categories,
        templateOf(store, organization.id, before.frameworkId),
      )
      if (updated.categories.length === 0) throw new Fault('CONFLICT', 'no item of its profile exists any more')
      const status = statusAfterAnswer(before.status, updated.categories)
      const { template } = updated
      const result: Assessment = { ...before, status, template, updatedAtMs: clock.nowMs() }
      store.assessments.put(result, updated.categories)
      const change = about(result)
      return { ...change, details: { ...change.details, ...counts }, result }
    })
  }

  /**
   * One that was made elsewhere. With `complete` it is completed in the same transaction.
   *
   * @throws Fault CONFLICT, NOT_ALLOWED.
   */
  import(organization: Organization, imported: AssessmentContent, options: ImportOptions = {}): Assessment {
    checkText('title', imported.title)
    return this.audited('assessment.import', organization.id, () => {
      return this.#imported(this.#add(organization, imported), imported.categories, options)
    })
  }

  /**
   * Answers the items of an open assessment as a file does. Items that the file does not have, or
   * does not answer, stay as they are, and so do notes without a new one.
   *
   * @throws Fault NOT_FOUND; CONFLICT where the assessment is completed, is of another framework,
   *   or lacks an item; NOT_ALLOWED.
   */
  fill(organization: Organization, idOrPrefix: string, file: AssessmentContent, options: FillOptions = {}): Assessment {
    if (options.title !== undefined) checkText('--title', options.title)
    const { store, clock } = this
    return this.audited('assessment.import', organization.id, (actor) => {
      const before = this.find(organization, idOrPrefix)
      if (before.frameworkId !== file.frameworkId) {
        throw new Fault('CONFLICT', `the assessment is of ${before.frameworkId}, the file is of ${file.frameworkId}`)
      }
      const stored = store.assessments.categories(before)
      const categories = filled(stored, itemsOf(file.categories), actor, clock.nowMs())
      const status = statusAfterAnswer(before.status, categories)
      const title = options.title ?? before.title
      const changed: Assessment = { ...before, status, title, updatedAtMs: clock.nowMs() }
      store.assessments.put(changed, categories)
      return this.#imported(changed, categories, options)
    })
  }

  #imported(
    assessment: Assessment,
    categories: readonly AssessmentCategory[],
    { complete = false, completedAtMs }: ImportOptions,
  ) {
    const { store, clock } = this
    const result = complete
      ? completeAssessment(store, assessment, categories, clock.nowMs(), completedAtMs)
      : assessment
    return { ...about(result), result }
  }

  /**
   * Answers one item. Without `answer` or `note`, the item keeps its own.
   *
   * @param seen what the person saw of the item: a later change of somebody else is a conflict
   * @throws Fault NOT_FOUND, CONFLICT if the assessment is completed, USAGE, NOT_ALLOWED
   */
  answer(
    organization: Organization,
    idOrPrefix: string,
    item: string,
    answer: Answer | undefined,
    note?: string,
    seen?: SeenItem,
  ): Assessment {
    const change: ChangeOfItem = (found, actor, nowMs) => {
      const edit = { ...(answer === undefined ? {} : { answer }), ...(note === undefined ? {} : { note }) }
      if (seen !== undefined) assertSeen(found, edit, seen)
      const edited = editedItem(found, edit, actor, nowMs)
      if (edited.answer === 'not_applicable' && edited.note === '') {
        throw new Fault('USAGE', `${found.id}: give the reason as its evidence if it is not applicable`)
      }
      return edited
    }
    return this.#changeItem('assessment.change', organization, idOrPrefix, item, change, (edited, found) => {
      return { answer: edited.answer, was: found.answer }
    })
  }

  /**
   * Sets who works on an item, until when, and the addresses of its evidence. Absent fields stay as
   * they are.
   *
   * @param seen what the person saw of the item: a later change of somebody else is a conflict
   * @throws Fault NOT_FOUND, CONFLICT if the assessment is completed, USAGE, NOT_ALLOWED
   */
  assign(
    organization: Organization,
    idOrPrefix: string,
    item: string,
    given: Omit<ItemEdit, 'answer'>,
    seen?: SeenWork,
  ): Assessment {
    checkRule('owner', ownerRule, given.owner)
    checkRule('due date', dueOnRule, given.dueOn)
    checkRule('links', linksRule, given.links)
    checkRule('note', noteRule, given.note)
    const change: ChangeOfItem = (found, actor, nowMs) => {
      if (seen !== undefined) assertSeenWork(found, given, seen)
      if (given.dueOn !== workOf(found).dueOn) checkNotPast(given.dueOn, nowMs)
      return editedItem(found, given, actor, nowMs)
    }
    return this.#changeItem('assessment.assign', organization, idOrPrefix, item, change, (edited) => {
      const { owner, dueOn: due, links } = workOf(edited)
      return { owner, due, links: links.length }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT at the limit or if the assessment is completed, USAGE, NOT_ALLOWED */
  comment(organization: Organization, idOrPrefix: string, item: string, text: string): Assessment {
    checkRule('comment', commentRule, text)
    const change: ChangeOfItem = (found, actor, nowMs) => commentedItem(found, text, actor, nowMs)
    return this.#changeItem('assessment.comment', organization, idOrPrefix, item, change, () => ({}))
  }

  /**
   * A step of the review of an item: submit its answer, approve it, which locks the item, or reopen
   * it.
   *
   * @throws Fault NOT_FOUND; CONFLICT if the step is not possible now; NOT_ALLOWED
   */
  review(organization: Organization, idOrPrefix: string, item: string, step: ReviewStep): Assessment {
    const action = step === 'submit' ? 'assessment.submit' : 'assessment.approve'
    const change: ChangeOfItem = (found, actor, nowMs) => reviewedItem(found, step, actor, nowMs)
    return this.#changeItem(action, organization, idOrPrefix, item, change, ({ answer }) => ({ answer, step }))
  }

  /** Changes one item of an open assessment. @param details for the audit log, of the item after and before */
  #changeItem(
    action: Action,
    organization: Organization,
    idOrPrefix: string,
    item: string,
    change: ChangeOfItem,
    details: (after: AssessmentItem, before: AssessmentItem) => Readonly<Record<string, string | number>>,
  ): Assessment {
    const { store, clock } = this
    return this.audited(action, organization.id, (actor) => {
      const before = this.find(organization, idOrPrefix)
      const categories = store.assessments.categories(before)
      const found = itemIn(categories, item)
      const nowMs = clock.nowMs()
      const after = change(found, actor, nowMs)
      const changed = withItem(categories, found, after)
      const status = statusAfterAnswer(before.status, changed)
      const result: Assessment = { ...before, status, updatedAtMs: nowMs }
      store.assessments.put(result, changed)
      const entry = about(result)
      return { ...entry, details: { ...entry.details, item: found.id, ...details(after, found) }, result }
    })
  }

  /**
   * @throws Fault NOT_FOUND, CONFLICT if an item is unanswered or the assessment is already
   *   completed, NOT_ALLOWED
   */
  complete(organization: Organization, idOrPrefix: string): Assessment {
    const { store, clock } = this
    return this.audited('assessment.complete', organization.id, () => {
      const before = this.find(organization, idOrPrefix)
      const result = completeAssessment(store, before, store.assessments.categories(before), clock.nowMs())
      return { ...about(result), result }
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if it is completed, NOT_ALLOWED */
  remove(organization: Organization, idOrPrefix: string): Assessment {
    const { store } = this
    return this.audited('assessment.remove', organization.id, () => {
      const assessment = this.find(organization, idOrPrefix)
      assertMayRemove(assessment.status)
      store.assessments.remove(assessment)
      return { ...about(assessment), result: assessment }
    })
  }

  /** @throws Fault NOT_FOUND, USAGE, CONFLICT where several ids begin so. */
  find(organization: Organization, idOrPrefix: string): Assessment {
    return byIdPrefix(this.store.assessments.ofOrganization(organization.id), idOrPrefix, 'assessment')
  }

  #add(
    organization: Organization,
    { frameworkId, title, template, profile, categories }: AssessmentContent,
  ): Assessment {
    const { store, clock } = this
    if (store.assessments.ofOrganization(organization.id).length >= ASSESSMENTS_MAX) {
      throw new Fault(
        'CONFLICT',
        `${organization.name} has ${ASSESSMENTS_MAX} assessments already; remove one that is not completed first`,
      )
    }
    const nowMs = clock.nowMs()
    const own = store.ownFrameworks.get(organization.id, frameworkId)
    const assessment: Assessment = {
      id: newUuid(),
      organizationId: organization.id,
      frameworkId,
      ...(own === undefined ? {} : { frameworkName: own.name }),
      status: statusAfterAnswer('draft', categories),
      title,
      ...(template === undefined ? {} : { template }),
      ...(profile === undefined ? {} : { profile }),
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

function withItem(
  categories: readonly AssessmentCategory[],
  before: AssessmentItem,
  after: AssessmentItem,
): AssessmentCategory[] {
  return categories.map((category) => ({
    ...category,
    items: category.items.map((each) => (each === before ? after : each)),
  }))
}

/** @throws Fault NOT_FOUND */
export function itemIn(categories: readonly AssessmentCategory[], item: string): AssessmentItem {
  const found = itemsOf(categories).find(({ id }) => itemKey(id) === itemKey(item))
  if (found !== undefined) return found
  throw new Fault('NOT_FOUND', `no item ${JSON.stringify(item)} in the assessment; assessment show --items has all`)
}

/** Items that a refusal names. */
const ITEMS_NAMED_MAX = 5

/**
 * The categories with the answers and notes of `given`.
 *
 * @throws Fault CONFLICT that names answered items of `given` that are not there.
 */
function filled(
  categories: readonly AssessmentCategory[],
  given: readonly AssessmentItem[],
  by: string,
  atMs: number,
): AssessmentCategory[] {
  const byKey = new Map(given.map((item) => [itemKey(item.id), item]))
  const known = new Set(itemsOf(categories).map(({ id }) => itemKey(id)))
  const says = ({ answer, note, work }: AssessmentItem): boolean =>
    answer !== 'unanswered' || note !== '' || work !== undefined
  const unknown = given.filter((item) => says(item) && !known.has(itemKey(item.id))).map(({ id }) => id)
  if (unknown.length > 0) {
    const more = unknown.length > ITEMS_NAMED_MAX ? ', ...' : ''
    const named = `${unknown.slice(0, ITEMS_NAMED_MAX).join(', ')}${more}`
    throw new Fault('CONFLICT', `the assessment lacks ${unknown.length} of the file's items: ${named}`)
  }
  const answered = (item: AssessmentItem): AssessmentItem => {
    const found = byKey.get(itemKey(item.id))
    if (found === undefined) return item
    const { answer, note } = found
    const { owner, dueOn, links } = workOf(found)
    const edit: ItemEdit = {
      ...(answer === 'unanswered' ? {} : { answer }),
      ...(note === '' ? {} : { note }),
      ...(owner === '' ? {} : { owner }),
      ...(dueOn === '' ? {} : { dueOn }),
      ...(links.length === 0 ? {} : { links }),
    }
    return editedItem(item, edit, by, atMs)
  }
  return categories.map((category) => ({ ...category, items: category.items.map(answered) }))
}

function about({ organizationId, id, frameworkId, status, title, profile, result }: Assessment) {
  const score = result === null ? {} : { overall_score: result.overallScore, grade: result.grade }
  const part = profile === undefined ? {} : { profile: profileText(profile) }
  return { organizationId, subject: title, details: { id, framework: frameworkId, ...part, status, ...score } }
}
