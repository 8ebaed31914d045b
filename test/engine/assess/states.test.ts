import t from 'tap'
import { assertMayComplete, assertMayRemove, statusAfterAnswer } from '../../../engine/assess/states.ts'
import type { Answer, AssessmentStatus } from '../../../engine/store/assessments.ts'
import { category, item } from '../../support/assessments.ts'

type Outcome = AssessmentStatus | 'gone' | RegExp

const FINAL = /the assessment is completed: /

/** The effect of each action in each state, with the assessment's answers at that time. */
const ROWS: readonly {
  state: AssessmentStatus
  action: 'answer' | 'complete' | 'remove'
  answers: readonly Answer[]
  next: Outcome
}[] = [
  { state: 'draft', action: 'answer', answers: ['yes', 'unanswered'], next: 'in_progress' },
  { state: 'draft', action: 'answer', answers: [0, 'unanswered'], next: 'in_progress' },
  { state: 'draft', action: 'answer', answers: ['not_applicable', 'unanswered'], next: 'in_progress' },
  { state: 'draft', action: 'answer', answers: ['unanswered', 'unanswered'], next: 'draft' },
  {
    state: 'draft',
    action: 'complete',
    answers: ['unanswered', 'unanswered'],
    next: /^2 items are unanswered: I0, I1$/,
  },
  { state: 'draft', action: 'complete', answers: [], next: /no item of the assessment applies/ },
  { state: 'draft', action: 'remove', answers: ['unanswered'], next: 'gone' },
  { state: 'in_progress', action: 'answer', answers: ['yes', 'no'], next: 'in_progress' },
  { state: 'in_progress', action: 'answer', answers: ['unanswered'], next: 'in_progress' },
  { state: 'in_progress', action: 'complete', answers: ['yes', 0, 'not_applicable'], next: 'completed' },
  { state: 'in_progress', action: 'complete', answers: ['yes', 'unanswered'], next: /^1 item is unanswered: I1$/ },
  {
    state: 'in_progress',
    action: 'complete',
    answers: Array.from({ length: 7 }, () => 'unanswered' as const),
    next: /^7 items are unanswered: I0, I1, I2, I3, I4, \.\.\.$/,
  },
  { state: 'in_progress', action: 'complete', answers: ['not_applicable'], next: /no item of the assessment applies/ },
  { state: 'in_progress', action: 'remove', answers: ['yes'], next: 'gone' },
  { state: 'completed', action: 'answer', answers: ['yes'], next: FINAL },
  { state: 'completed', action: 'complete', answers: ['yes'], next: FINAL },
  { state: 'completed', action: 'remove', answers: ['yes'], next: FINAL },
]

for (const { state, action, answers, next } of ROWS) {
  t.test(`${state}, ${action} with ${answers.join(', ') || 'no items'}: ${next}`, async (t) => {
    const categories = [
      category(
        'All',
        1,
        answers.map((answer, at) => item(`I${at}`, answer)),
      ),
    ]
    const act = (): Outcome => {
      switch (action) {
        case 'answer':
          return statusAfterAnswer(state, categories)
        case 'complete':
          assertMayComplete(state, categories)
          return 'completed'
        case 'remove':
          assertMayRemove(state)
          return 'gone'
      }
    }
    if (next instanceof RegExp) t.throws(act, { code: 'CONFLICT', message: next })
    else t.equal(act(), next)
  })
}
