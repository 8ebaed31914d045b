import { Fault } from '../kernel/process/error-codes.ts'
import { ASSESSMENT_FAULTS_NAMED_MAX } from '../limits.ts'

/** All errors in an assessment file, so that they can be fixed together. */
export class AssessmentFileFault extends Fault {
  /** One line per error: the place, the found and the expected value. */
  readonly lines: readonly string[]

  constructor(lines: readonly string[]) {
    const named = firstLines(lines)
    super('ASSESSMENT_FILE', named.join('; '))
    this.lines = named
  }
}

/** The first lines, and the number of the others. */
export function firstLines(lines: readonly string[]): string[] {
  const named = lines.slice(0, ASSESSMENT_FAULTS_NAMED_MAX)
  return lines.length > named.length ? [...named, `and ${lines.length - named.length} more`] : named
}
