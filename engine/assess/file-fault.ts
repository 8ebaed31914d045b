import { ASSESSMENT_FAULTS_NAMED_MAX } from '../limits.ts'
import { Fault } from '../process/error-codes.ts'

/** All errors in an assessment file, so that they can be fixed together. */
export class AssessmentFileFault extends Fault {
  /** One line per error: the place, the found and the expected value. */
  readonly lines: readonly string[]

  constructor(lines: readonly string[]) {
    const named = lines.slice(0, ASSESSMENT_FAULTS_NAMED_MAX)
    if (lines.length > named.length) named.push(`and ${lines.length - named.length} more`)
    super('ASSESSMENT_FILE', named.join('; '))
    this.lines = named
  }
}
