/** Stored with each sender, so defined in the store. */
export { newCounts, OUTCOMES, Outcome, type OutcomeName, totalOf } from '../store/outcomes.ts'
