import { FORMATS } from '../formats/formats.ts'
import { Verdict } from '../formats/log-line.ts'
import type { OutcomeName } from '../store/outcomes.ts'
import type { CandidatesSkipped } from './candidate-table.ts'

/** Verdicts are 0 to 5. */
export const VERDICTS = 6
/** Outcomes by verdict. `unmatched` applies to an event that matches no platform. */
export const OUTCOME_OF_VERDICT = {
  [Verdict.unknown]: 'unknown',
  [Verdict.event]: 'unmatched',
  [Verdict.noDomain]: 'noDomain',
  [Verdict.skip]: 'skipped',
  [Verdict.reject]: 'rejected',
  [Verdict.ambiguous]: 'ambiguous',
} as const satisfies Record<Verdict, OutcomeName>

/** Counters of log messages since the start. */
export interface LineStatus {
  /** Messages by format and verdict. '': no format recognized. */
  readonly formats: readonly { readonly format: string; readonly verdicts: readonly number[] }[]
  /** Coverage reports skipped by the rate limit. */
  readonly coverageSkipped: number
  /** Names of users that were shortened, and fields that could not be stored as a name. */
  readonly usersTruncated: number
  readonly usersRefused: number
  readonly candidatesSkipped: CandidatesSkipped
}

/** @param counts of each verdict, by format in the order of FORMATS, then those without a format */
export function verdictsByFormat(counts: Float64Array): LineStatus['formats'] {
  return [...FORMATS.map(({ id }) => id), ''].map((format, index) => ({
    format,
    verdicts: Array.from(counts.subarray(index * VERDICTS, (index + 1) * VERDICTS)),
  }))
}
