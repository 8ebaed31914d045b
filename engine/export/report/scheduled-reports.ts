import { gzipSync } from 'node:zlib'
import { type Clock, DAY_MS, HOUR_MS, isoSeconds, SECOND_MS } from '../../kernel/process/clock.ts'
import { isFault } from '../../kernel/process/error-codes.ts'
import { logFailure } from '../../kernel/process/failure.ts'
import { faultPoint } from '../../kernel/process/fault-point.ts'
import type { Logger } from '../../kernel/process/log.ts'
import type { MetricRow } from '../../kernel/process/metrics.ts'
import { newUuid } from '../../store/keys.ts'
import type { Organization } from '../../store/organizations.ts'
import type { ReportInterval, ReportMessage, ReportSchedule } from '../../store/report-schedules.ts'
import { type ReportSource, reportContent } from './content.ts'
import { dateText } from './text.ts'

const POLL_EVERY_MS = 30 * SECOND_MS
/**
 * An entry of a queue has at most 64 KB. A report has about 10 KB, compressed. A larger one is
 * mailed as its summary, which says where the whole report is.
 */
const MESSAGE_BYTES_MAX = 60 * 1024
/** The actor in the audit log. */
const ACTOR = 'service'

/** What scheduled reports did since the start. */
export interface ScheduledReportStatus {
  readonly queued: number
  /** Attempts to make a report that failed; they are repeated. */
  readonly failed: number
}

/**
 * Makes the reports that are due, and queues them for their alert channels, which deliver them as
 * durably as alerts.
 *
 * One transaction queues a report and notes that it was made: after a kill, a report is neither
 * missing nor made twice. If the service did not run when reports were due, it makes one of each
 * schedule. Before the first completed scan there is nothing to report, and reports wait for it.
 */
export class ScheduledReports {
  readonly #source: ReportSource
  readonly #clock: Clock
  readonly #log: Logger
  #queued = 0
  #failed = 0
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined

  constructor(source: ReportSource, clock: Clock, log: Logger) {
    this.#source = source
    this.#clock = clock
    this.#log = log
  }

  start(): void {
    const poll = (): void => {
      this.#running ??= this.poll().finally(() => {
        this.#running = undefined
      })
    }
    this.#timer = setInterval(poll, POLL_EVERY_MS)
    poll()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  status(): ScheduledReportStatus {
    return { queued: this.#queued, failed: this.#failed }
  }

  /** Makes the reports that are due. Never rejects. */
  async poll(): Promise<void> {
    const { environment, reportSchedules } = this.#source.store
    const nowMs = this.#clock.nowMs()
    const due = environment.read(() => reportSchedules.all()).filter((schedule) => isDue(schedule, nowMs))
    for (const schedule of due) {
      try {
        if (await this.#make(schedule, nowMs)) this.#queued++
      } catch (error) {
        this.#failed++
        // Logged by the service while the disk is full.
        if (isFault(error, 'STORE_FULL')) continue
        const { organizationId: organization, id } = schedule
        logFailure(this.#log, error, 'could not make a scheduled report; retrying', {
          fields: { organization, schedule: id },
        })
      }
    }
  }

  /** Returns whether a report was queued. */
  async #make(schedule: ReportSchedule, nowMs: number): Promise<boolean> {
    const { store } = this.#source
    const { organizationId, id, every, reportedAtMs } = schedule
    // Loaded on demand: most services mail no reports.
    const { reportDocument, summaryText } = await import('./article.tsx')
    const made = store.environment.read(() => {
      const organization = store.organizations.get(organizationId)
      if (organization === undefined) return undefined
      const sinceMs = reportedAtMs === 0 ? previousDueMs(every, lastDueMs(every, nowMs)) : reportedAtMs
      return { organization, content: reportContent(this.#source, organization, nowMs, { sinceMs }) }
    })
    if (made?.content.findings === undefined) return false
    const { content, organization } = made
    const { findings } = made.content
    const html = gzipSync(reportDocument(content, findings)).toString('base64')
    const text = summaryText(content, findings)
    const json = messageJson(organization, schedule, { html, text, nowMs })
    faultPoint('reports:prepared')
    const isQueued = store.environment.write(() => {
      const now = store.reportSchedules.get({ organizationId, id })
      // Another process made it, or the schedule, its channel or the organization was removed.
      if (now?.reportedAtMs !== reportedAtMs || !store.organizations.exists(organizationId)) return false
      const channel = store.alertChannels.get(organizationId, now.channelId)
      if (channel === undefined) return false
      store.alertChannels.append(organizationId, channel.id, json, nowMs)
      store.reportSchedules.put({ ...now, reportedAtMs: nowMs })
      store.auditLog.append({
        organizationId,
        timeMs: nowMs,
        actor: ACTOR,
        action: 'report.create',
        subject: organization.name,
        details: { every, channel: channel.name },
      })
      return true
    })
    faultPoint('reports:queued')
    return isQueued
  }
}

/** After the clock was set back, a report in the future counts as one of now. */
function isDue({ every, createdAtMs, reportedAtMs }: ReportSchedule, nowMs: number): boolean {
  return lastDueMs(every, nowMs) > Math.min(Math.max(createdAtMs, reportedAtMs), nowMs)
}

function messageJson(
  organization: Organization,
  schedule: ReportSchedule,
  report: { readonly html: string; readonly text: string; readonly nowMs: number },
): string {
  const json = JSON.stringify(messageOf(organization, schedule, report))
  if (Buffer.byteLength(json) <= MESSAGE_BYTES_MAX) return json
  return JSON.stringify(messageOf(organization, schedule, { ...report, html: '' }))
}

function messageOf(
  { id, name }: Organization,
  { to }: ReportSchedule,
  { html, text, nowMs }: { readonly html: string; readonly text: string; readonly nowMs: number },
): ReportMessage {
  return {
    version: 1,
    type: 'report',
    id: newUuid().replaceAll('-', ''),
    organization: { id, name },
    title: `Use of AI at ${name}, ${dateText(nowMs)}`,
    created_at: isoSeconds(nowMs),
    ...{ to, text, html },
  }
}

/** Before the thread of the reports has started. */
const NOTHING: ScheduledReportStatus = { queued: 0, failed: 0 }

/** The Prometheus metrics of scheduled reports. */
export function reportRows({ queued, failed }: ScheduledReportStatus = NOTHING): MetricRow[] {
  return [
    ['posture_reports_queued_total', 'counter', 'Scheduled reports that were made and queued for mail', queued],
    [
      'posture_reports_failed_total',
      'counter',
      'Attempts to make a scheduled report that failed; they are repeated',
      failed,
    ],
  ]
}

/** Reports are made at this hour (UTC), on Mondays and on the first of a month. */
const HOUR = 6
const MONDAY = 1
const WEEK_DAYS = 7

/** The last time until `nowMs` at which reports of an interval were due. */
export function lastDueMs(every: ReportInterval, nowMs: number): number {
  const hour = new Date(nowMs - HOUR * HOUR_MS)
  const [year, month] = [hour.getUTCFullYear(), hour.getUTCMonth()]
  if (every === 'monthly') return Date.UTC(year, month, 1, HOUR)
  const sinceMonday = (hour.getUTCDay() - MONDAY + WEEK_DAYS) % WEEK_DAYS
  return Date.UTC(year, month, hour.getUTCDate() - sinceMonday, HOUR)
}

/** The first time after `nowMs` at which reports of an interval are due. */
export function nextDueMs(every: ReportInterval, nowMs: number): number {
  const last = lastDueMs(every, nowMs)
  if (every === 'weekly') return last + WEEK_DAYS * DAY_MS
  const first = new Date(last)
  return Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1, HOUR)
}

/** The beginning of the interval that ends at a due time. */
export function previousDueMs(every: ReportInterval, dueMs: number): number {
  return lastDueMs(every, dueMs - 1)
}
