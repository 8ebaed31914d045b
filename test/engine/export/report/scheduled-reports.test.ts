import { randomBytes } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { Deliveries } from '../../../../engine/alert/deliveries.ts'
import {
  lastDueMs,
  nextDueMs,
  previousDueMs,
  ScheduledReports,
} from '../../../../engine/export/report/scheduled-reports.ts'
import { DAY_MS, HOUR_MS, isoSeconds } from '../../../../engine/kernel/process/clock.ts'
import { networkOf } from '../../../../engine/kernel/process/network.ts'
import { RegistryInForce } from '../../../../engine/store/registry-in-force.ts'
import { REPORT_INTERVALS, type ReportInterval, type ReportMessage } from '../../../../engine/store/report-schedules.ts'
import { type AlertSite, alertSite, overdueRecommendations } from '../../../support/alerts.ts'
import { admin, runAdmin } from '../../../support/programs.ts'
import * as fc from '../../../support/property.ts'
import { type Mail, smtpServer } from '../../../support/smtp-server.ts'
import { quietLog } from '../../../support/store.ts'

const MAIL = { kind: 'smtp', host: 'localhost', from: 'posture@acme.example', to: ['soc@acme.example'] } as const

t.test('reports are due on Mondays and on the first of a month, at 06:00 UTC', async (t) => {
  const rows: readonly (readonly [every: ReportInterval, now: string, last: string, next: string])[] = [
    ['weekly', '2026-11-20T12:00:00Z', '2026-11-16T06:00:00Z', '2026-11-23T06:00:00Z'],
    ['weekly', '2026-11-23T05:59:59Z', '2026-11-16T06:00:00Z', '2026-11-23T06:00:00Z'],
    ['weekly', '2026-11-23T06:00:00Z', '2026-11-23T06:00:00Z', '2026-11-30T06:00:00Z'],
    ['monthly', '2026-12-31T23:59:59Z', '2026-12-01T06:00:00Z', '2027-01-01T06:00:00Z'],
    ['monthly', '2027-03-01T05:59:59Z', '2027-02-01T06:00:00Z', '2027-03-01T06:00:00Z'],
    ['monthly', '2028-02-29T12:00:00Z', '2028-02-01T06:00:00Z', '2028-03-01T06:00:00Z'],
  ]
  for (const [every, now, last, next] of rows) {
    const nowMs = Date.parse(now)
    t.same([isoSeconds(lastDueMs(every, nowMs)), isoSeconds(nextDueMs(every, nowMs))], [last, next], `${every} ${now}`)
  }
  const anyTime = fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) })
  fc.assert(
    fc.property(anyTime, fc.constantFrom(...REPORT_INTERVALS), (nowMs, every) => {
      const [last, next] = [lastDueMs(every, nowMs), nextDueMs(every, nowMs)]
      const date = new Date(last)
      t.ok(last <= nowMs && nowMs < next)
      t.equal(lastDueMs(every, next), next)
      t.equal(previousDueMs(every, next), last)
      t.equal(every === 'weekly' ? date.getUTCDay() : date.getUTCDate(), 1)
      t.equal(date.getUTCHours(), 6)
    }),
    { numRuns: 300 },
  )
})

function reportsOf({ store, clock }: AlertSite): ScheduledReports {
  return new ScheduledReports({ store, registry: new RegistryInForce(store) }, clock, quietLog)
}

/** The parts of a mail with an attachment: the text, and the attached file. */
function partsOf({ text }: Mail): { readonly text: string; readonly file: string } {
  const [, boundary = ''] = /boundary="([^"]+)"/.exec(text) ?? []
  const [, first = '', second = ''] = text.split(`--${boundary}`)
  const [head = '', ...body] = second.split('\r\n\r\n')
  const encoded = body.join('\r\n\r\n')
  const isBase64 = /Content-Transfer-Encoding: base64/i.test(head)
  return { text: first, file: isBase64 ? Buffer.from(encoded, 'base64').toString() : encoded }
}

t.test('a report is mailed once when it is due, with what changed since the last one', async (t) => {
  const site = alertSite(t)
  const { store, clock, administration, organization } = site
  const { port, mails, ca } = await smtpServer(t, site.directory)
  const channel = site.addChannel({ ...MAIL, port, ca, user: 'posture', password: 'right' })
  const { reports } = administration
  reports.schedule(organization, { every: 'weekly', channel, to: ['boss@acme.example', 'ciso@acme.example'] })
  reports.schedule(organization, { every: 'monthly', channel, to: [] })
  const scheduled = reportsOf(site)
  const take = async (): Promise<Mail[]> => {
    mails.length = 0
    // As if two processes did it, or a killed one again.
    await Promise.all([scheduled.poll(), reportsOf(site).poll()])
    await scheduled.poll()
    await site.deliver()
    return [...mails]
  }
  clock.set(Date.parse('2026-11-22T23:00:00Z'))
  t.same(await take(), [], 'not due')
  clock.set(Date.parse('2026-11-23T06:00:00Z'))
  t.same(await take(), [], 'nothing to report before the first scan')
  site.scan(['claude.ai'])
  site.administration.alerts.mute(organization, 'new-platform', true)
  site.evaluate()
  await site.deliver()
  const [first, ...others] = await take()
  t.same(others, [])
  t.match(first, { from: MAIL.from, to: ['boss@acme.example', 'ciso@acme.example'], user: 'posture', secure: true })
  t.match(first?.text, /^Subject: Use of AI at Acme, November 23, 2026\r$/m)
  t.match(first?.text, /Content-Disposition: attachment; filename=use-of-ai-2026-11-23\.html/)
  const { text, file } = first === undefined ? { text: '', file: '' } : partsOf(first)
  t.match(text, /1 AI platform was used at Acme/)
  t.ok(file.startsWith('<!DOCTYPE html>') && file.trimEnd().endsWith('</html>'))
  t.match(file, /Change since November 16, 2026/)
  t.same(await take(), [], 'once')
  clock.add(7 * DAY_MS)
  site.scan(['chatgpt.com'])
  const [second] = await take()
  t.match(second && partsOf(second).file, /Change since November 23, 2026/)
  // The service does not run for three weeks.
  clock.set(Date.parse('2026-12-22T12:00:00Z'))
  const late = await take()
  t.same(late.map(({ to }) => to).sort(), [['boss@acme.example', 'ciso@acme.example'], MAIL.to], 'one of each schedule')
  clock.set(Date.parse('2026-12-01T12:00:00Z'))
  t.same(await take(), [], 'the clock was set back')
  clock.set(Date.parse('2026-12-28T06:00:00Z'))
  t.equal((await take()).length, 1)
  t.match(
    store.auditLog.ofOrganization(organization.id).filter(({ action }) => action === 'report.create'),
    Array.from({ length: 5 }, () => ({ actor: 'service', subject: 'Acme', details: { channel: 'smtp' } })),
  )
  t.equal(store.organizations.get(organization.id)?.lastReportAtMs, undefined, 'not the last report of a person')
  t.match(scheduled.status(), { failed: 0 })
})

t.test('a report waits for the mail server, is the same in each attempt, and then a dead letter', async (t) => {
  const site = alertSite(t)
  const { store, clock, administration, organization } = site
  let isDown = true
  const { port, mails, ca } = await smtpServer(t, site.directory, {
    authOptional: true,
    onRcptTo: (_address, _session, done) => {
      done(isDown ? Object.assign(new Error('try later'), { responseCode: 451 }) : undefined)
    },
  })
  const channel = site.addChannel({ ...MAIL, port, ca }, { severityMin: 'critical' })
  administration.reports.schedule(organization, { every: 'weekly', channel, to: [] })
  site.scan(['claude.ai'])
  clock.set(Date.parse('2026-11-23T07:00:00Z'))
  await reportsOf(site).poll()
  await site.deliver()
  clock.add(HOUR_MS)
  await site.deliver()
  t.match(store.alertChannels.state(organization.id, channel.id), { attempts: 2, failure: /451/ })
  const waiting = JSON.parse(store.alertChannels.first(organization.id, channel.id)?.json ?? '{}') as ReportMessage
  site.scan(['chatgpt.com'])
  isDown = false
  clock.add(HOUR_MS)
  await site.deliver()
  t.equal(mails.length, 1)
  const [mail] = mails
  t.match(mail?.text, new RegExp(`^Message-ID: <${waiting.id}@acme\\.example>`, 'm'))
  t.equal(
    mail && partsOf(mail).file.replaceAll('\r\n', '\n').trimEnd(),
    gunzipSync(Buffer.from(waiting.html, 'base64')).toString().trimEnd(),
  )
  isDown = true
  clock.add(7 * DAY_MS)
  await reportsOf(site).poll()
  await site.deliver()
  clock.add(DAY_MS)
  await site.deliver()
  const [letter] = store.alertChannels.deadLetters(organization.id, channel.id)
  t.match(letter, { failure: /451/, json: /"type":"report"/ })
  isDown = false
  administration.alerts.retry(organization, channel.name)
  await site.deliver()
  t.equal(mails.length, 2)
})

t.test('a report that is too large for a message is mailed as its summary, once', async (t) => {
  const site = alertSite(t)
  const { clock, administration, organization } = site
  const { port, mails, ca } = await smtpServer(t, site.directory, { authOptional: true })
  const channel = site.addChannel({ ...MAIL, port, ca })
  administration.reports.schedule(organization, { every: 'weekly', channel, to: [] })
  site.scan(['claude.ai'])
  // Text that no compression makes shorter.
  const remove = overdueRecommendations(site, 10, () => randomBytes(8000).toString('base64'))
  clock.set(Date.parse('2026-11-23T07:00:00Z'))
  const scheduled = reportsOf(site)
  await scheduled.poll()
  await scheduled.poll()
  t.match(scheduled.status(), { queued: 1, failed: 0 })
  await site.deliver()
  t.equal(mails.length, 1)
  const { text = '' } = mails[0] ?? {}
  t.match(text, /1 AI platform was used at Acme/)
  t.match(text.replace(/=\r\n/g, ''), /too large to be attached.*posture-admin report --out/)
  t.notMatch(text, /Content-Disposition/)
  remove()
})

t.test('a report goes to allowed addresses only, and ends with its organization', async (t) => {
  const site = alertSite(t)
  const { clock, administration, organization, store } = site
  const { port, mails, ca } = await smtpServer(t, site.directory, { authOptional: true })
  const channel = site.addChannel({ ...MAIL, port, ca })
  administration.reports.schedule(organization, { every: 'monthly', channel, to: [] })
  site.scan(['claude.ai'])
  clock.set(Date.parse('2026-12-01T06:00:00Z'))
  await reportsOf(site).poll()
  const other = networkOf('192.0.2.0/24')
  const options = { secrets: site.secrets, allowed: other === undefined ? [] : [other], version: '1.2.3' }
  const refusing = new Deliveries(store, clock, quietLog, options)
  refusing.poll()
  await refusing.idle()
  t.match(store.alertChannels.state(organization.id, channel.id).failure, /--outbound-networks/)
  administration.organizations.remove(organization, () => {})
  clock.add(HOUR_MS)
  await site.deliver()
  t.same(mails, [])
  clock.set(Date.parse('2027-01-01T06:00:00Z'))
  const scheduled = reportsOf(site)
  await scheduled.poll()
  t.match(scheduled.status(), { queued: 0, failed: 0 })
  for (const removal of store.removals.all()) for (const _step of store.removals.finish(removal));
  t.same(store.reportSchedules.all(), [])
})

t.test('posture-admin report schedule adds, lists and removes schedules', async (t) => {
  const site = alertSite(t)
  const { directory, store, organization } = site
  const data = ['--data-dir', directory]
  site.addChannel(MAIL, { name: 'mail' })
  site.addChannel({ kind: 'syslog', host: 'siem.acme.example' })
  const add = ['report', 'schedule', 'add', '--every', 'weekly', '--channel']
  const [added] = await admin(...add, 'MAIL', '--to', 'boss@acme.example', '--to', 'b@acme.example', ...data)
  t.match(added, { every: 'weekly', channel: 'mail', to: ['boss@acme.example', 'b@acme.example'], last_at: null })
  t.match(added?.['next_at'], /T06:00:00Z$/)
  t.match(await admin('report', 'schedule', 'list', ...data), [{ id: added?.['id'] }])
  const fails = async (words: readonly string[], error: RegExp): Promise<void> => {
    const { status, stderr } = await runAdmin([...words, ...data])
    t.not(status, 0)
    t.match(stderr, error)
  }
  await fails([...add, 'syslog'], /is an alert channel of syslog; reports need one of smtp/)
  await fails([...add, 'none'], /no alert channel "none"/)
  await fails([...add, 'mail', '--to', 'boss'], /--to: Expected a mail address/)
  await fails([...add, 'mail', '--as', 'mallory'], /mallory is not a member/)
  await fails(['report', 'schedule', 'add', '--every', 'daily', '--channel', 'mail'], /expected one of weekly, monthly/)
  await fails(['report'], /required option '--out <file>' not specified/)
  await fails(['report', 'shedule'], /unknown command 'shedule'.*Did you mean schedule/)
  await fails(['alert', 'channel', 'remove', 'mail'], /mail mails reports; first remove them/)
  for (let at = 1; at < 10; at++) await admin(...add, 'mail', ...data)
  await fails([...add, 'mail'], /at most 10 scheduled reports/)
  const removed = await admin('report', 'schedule', 'remove', String(added?.['id']).slice(0, 8), ...data)
  t.match(removed, [{ id: added?.['id'] }])
  await fails(['report', 'schedule', 'remove', String(added?.['id'])], /no report schedule/)
  t.equal(store.reportSchedules.ofOrganization(organization.id).length, 9)
  const actions = store.auditLog.ofOrganization(organization.id).map(({ action }) => action)
  t.ok(actions.includes('report-schedule.add') && actions.includes('report-schedule.remove'))
  t.equal(await admin('alert', 'dead-letters', 'list', ...data).then((rows) => rows.length), 0)
})
