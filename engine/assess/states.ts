import { Fault } from '../kernel/process/error-codes.ts'
import type { AssessmentCategory, AssessmentItem, AssessmentStatus } from '../store/assessments.ts'
import { pointsOf } from './score.ts'

/*
 * The transitions of an assessment:
 *
 *   state        answer                     complete                     remove
 *   draft        in_progress, once an item  refused                      removed
 *                has an answer
 *   in_progress  in_progress                completed, if every item is  removed
 *                                           answered and one applies
 *   completed    refused                    refused                      refused
 */

/** Maximum items listed in a refusal. */
const UNANSWERED_NAMED_MAX = 5

export function itemsOf(categories: readonly AssessmentCategory[]): AssessmentItem[] {
  return categories.flatMap(({ items }) => items)
}

export function unansweredOf(categories: readonly AssessmentCategory[]): AssessmentItem[] {
  return itemsOf(categories).filter(({ answer }) => answer === 'unanswered')
}

/** The state of an assessment with these answers. @throws Fault CONFLICT if it is completed. */
export function statusAfterAnswer(
  status: AssessmentStatus,
  categories: readonly AssessmentCategory[],
): AssessmentStatus {
  assertNotCompleted(status, 'its answers cannot change')
  if (status === 'draft' && itemsOf(categories).every(({ answer }) => answer === 'unanswered')) return 'draft'
  return 'in_progress'
}

/** @throws Fault CONFLICT with what is missing */
export function assertMayComplete(status: AssessmentStatus, categories: readonly AssessmentCategory[]): void {
  assertNotCompleted(status, 'it cannot be completed again')
  const unanswered = unansweredOf(categories)
  if (unanswered.length > 0) {
    const named = unanswered.slice(0, UNANSWERED_NAMED_MAX).map(({ id }) => id)
    const more = unanswered.length > named.length ? ', ...' : ''
    const items = unanswered.length === 1 ? 'item is' : 'items are'
    throw new Fault('CONFLICT', `${unanswered.length} ${items} unanswered: ${named.join(', ')}${more}`)
  }
  if (itemsOf(categories).every(({ answer }) => pointsOf(answer) === undefined)) {
    throw new Fault('CONFLICT', 'no item of the assessment applies, so there is no score')
  }
}

/** @throws Fault CONFLICT if it is completed, because scores and recommendations depend on it */
export function assertMayRemove(status: AssessmentStatus): void {
  assertNotCompleted(status, 'it cannot be removed')
}

function assertNotCompleted(status: AssessmentStatus, consequence: string): void {
  if (status === 'completed') throw new Fault('CONFLICT', `the assessment is completed: ${consequence}`)
}
