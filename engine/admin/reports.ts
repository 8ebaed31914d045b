import { Fault } from '../kernel/process/error-codes.ts'
import { REPORT_SCHEDULES_MAX } from '../limits.ts'
import type { AlertChannel } from '../store/alert-channels.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import type { ReportInterval, ReportSchedule } from '../store/report-schedules.ts'
import { checkedAddresses } from './alert-settings.ts'
import { AuditedChanges, byIdPrefix } from './audited-changes.ts'

export interface NewReportSchedule {
  readonly every: ReportInterval
  /** An alert channel of mail. */
  readonly channel: AlertChannel
  /** None: those of the channel. */
  readonly to: readonly string[]
}

export class ReportChanges extends AuditedChanges {
  /**
   * Records that a report was made, so that the next one shows what changed since. `write` stores
   * the report: if it throws, nothing is recorded.
   *
   * @throws Fault NOT_ALLOWED, and what `write` throws
   */
  make({ id: organizationId, name }: Organization, madeAtMs: number, write: () => void): Organization {
    const { store } = this
    return this.audited('report.create', organizationId, () => {
      const found = store.organizations.get(organizationId)
      if (found === undefined) throw new Fault('NOT_FOUND', `no organization ${name}`)
      write()
      const result = { ...found, lastReportAtMs: madeAtMs }
      store.organizations.update(result)
      return { organizationId, subject: found.name, result }
    })
  }

  /** Mails a report on a schedule. @throws Fault USAGE, CONFLICT at the limit, NOT_ALLOWED. */
  schedule({ id: organizationId, name }: Organization, { every, channel, to }: NewReportSchedule): ReportSchedule {
    const { store, clock } = this
    if (channel.kind !== 'smtp') {
      throw new Fault('USAGE', `${channel.name} is an alert channel of ${channel.kind}; reports need one of smtp`)
    }
    const addresses = checkedAddresses(to)
    if ('fault' in addresses) throw new Fault('USAGE', `--to: ${addresses.fault}`)
    return this.audited('report-schedule.add', organizationId, () => {
      if (store.alertChannels.get(organizationId, channel.id) === undefined) {
        throw new Fault('NOT_FOUND', `the alert channel ${channel.name} was removed meanwhile`)
      }
      if (store.reportSchedules.ofOrganization(organizationId).length >= REPORT_SCHEDULES_MAX) {
        throw new Fault('CONFLICT', `an organization has at most ${REPORT_SCHEDULES_MAX} scheduled reports; remove one`)
      }
      const times = { createdAtMs: clock.nowMs(), reportedAtMs: 0 }
      const result = { id: newUuid(), organizationId, every, channelId: channel.id, to: addresses, ...times }
      store.reportSchedules.put(result)
      return { organizationId, subject: name, details: { every, channel: channel.name, to: addresses }, result }
    })
  }

  /** By id or its beginning. @throws Fault NOT_FOUND, USAGE, CONFLICT, NOT_ALLOWED. */
  unschedule({ id: organizationId, name }: Organization, given: string): ReportSchedule {
    const { store } = this
    return this.audited('report-schedule.remove', organizationId, () => {
      const result = byIdPrefix(store.reportSchedules.ofOrganization(organizationId), given, 'report schedule')
      store.reportSchedules.remove(result)
      return { organizationId, subject: name, details: { every: result.every }, result }
    })
  }
}
