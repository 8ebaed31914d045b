import { FINDINGS_NAMED_MAX } from '../limits.ts'
import { printable } from '../process/table.ts'

/** A violated invariant of the store. */
export interface Finding {
  readonly table: string
  /** '' if the organization is unknown. */
  readonly organizationId: string
  readonly found: string
  readonly expected: string
}

/** The findings of a check. Only the first are kept, in case the store is badly damaged. */
export class Findings {
  readonly named: Finding[] = []
  count = 0

  add(finding: Finding): void {
    this.count++
    if (this.named.length < FINDINGS_NAMED_MAX) this.named.push(finding)
  }
}

/** Formats a finding as one line. A damaged record can contain any characters. */
export function findingLine({ table, organizationId, found, expected }: Finding): string {
  const owner = organizationId === '' ? 'of no organization' : `of ${organizationId}`
  return printable(`${table} ${owner}: found ${found}, expected ${expected}`)
}
