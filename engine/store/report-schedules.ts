import type { Environment } from '../kernel/lmdb/environment.ts'
import { OrganizationCollection } from './family.ts'
import { ownKey } from './keys.ts'

export const REPORT_INTERVALS = ['weekly', 'monthly'] as const
export type ReportInterval = (typeof REPORT_INTERVALS)[number]

/** A report that is mailed on a schedule through an SMTP alert channel. */
export interface ReportSchedule {
  readonly id: string
  readonly organizationId: string
  readonly every: ReportInterval
  /** The alert channel whose mail server sends it. */
  readonly channelId: string
  /** Addresses; none: those of the channel. */
  readonly to: readonly string[]
  readonly createdAtMs: number
  /** When the last report was made; the next one shows what changed since then. 0: none was. */
  readonly reportedAtMs: number
}

/** A report in the queue of an alert channel. */
export interface ReportMessage {
  readonly version: 1
  readonly type: 'report'
  /** 32 hex digits. A message that is sent again has the same. */
  readonly id: string
  readonly organization: { readonly id: string; readonly name: string }
  /** The subject of the mail. */
  readonly title: string
  readonly created_at: string
  /** Addresses; none: those of the channel. */
  readonly to: readonly string[]
  /** The text of the mail. */
  readonly text: string
  /** The HTML file, compressed by gzip, in base64. '': too large for a message. */
  readonly html: string
}

/** The scheduled reports of each organization. */
export class ReportSchedules extends OrganizationCollection<
  Pick<ReportSchedule, 'organizationId' | 'id'>,
  ReportSchedule
> {
  constructor(environment: Environment) {
    super(environment.table('report-schedules'), 'report schedule', ({ organizationId, id }) =>
      ownKey(organizationId, id),
    )
  }

  /** Sorted by time of creation. */
  override ofOrganization(organizationId: string): ReportSchedule[] {
    return super.ofOrganization(organizationId).sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))
  }
}
