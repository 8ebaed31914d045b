import { ASSESSMENT_FAULTS_NAMED_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'

/** All that is wrong in the file of an assessment, so that it is corrected in one go. */
export class AssessmentFileFault extends Fault {
  /** A line each: the place, what was found there, and what was expected. */
  readonly lines: readonly string[]

  constructor(lines: readonly string[]) {
    const named = lines.slice(0, ASSESSMENT_FAULTS_NAMED_MAX)
    if (lines.length > named.length) named.push(`and ${lines.length - named.length} more`)
    super('ASSESSMENT_FILE', named.join('; '))
    this.lines = named
  }
}
