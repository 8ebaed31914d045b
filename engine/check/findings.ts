import { FINDINGS_NAMED_MAX } from '../limits.ts'
import { printable } from '../process/table.ts'

/** Something in the store that contradicts what must hold. */
export interface Finding {
  readonly table: string
  /** '' where it is not known whose it is. */
  readonly organizationId: string
  readonly found: string
  readonly expected: string
}

/** What a check found; a store may be so damaged that only the first are kept. */
export class Findings {
  readonly named: Finding[] = []
  count = 0

  add(finding: Finding): void {
    this.count++
    if (this.named.length < FINDINGS_NAMED_MAX) this.named.push(finding)
  }
}

/** One line. What stands in a damaged record may be anything. */
export function findingLine({ table, organizationId, found, expected }: Finding): string {
  const whose = organizationId === '' ? 'of nobody' : `of ${organizationId}`
  return printable(`${table} ${whose}: found ${found}, expected ${expected}`)
}
