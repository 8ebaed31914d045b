import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration, OPERATOR } from '../../../../engine/admin/administration.ts'
import { reportDocument } from '../../../../engine/export/report/article.tsx'
import { type ReportContent, reportContent } from '../../../../engine/export/report/content.ts'
import { DAY_MS } from '../../../../engine/kernel/process/clock.ts'
import { runScan } from '../../../../engine/scan/scan-runner.ts'
import type { Organization } from '../../../../engine/store/organizations.ts'
import { RegistryInForce } from '../../../../engine/store/registry-in-force.ts'
import { acmeSite } from '../../../support/acme-site.ts'
import { admin, runAdmin } from '../../../support/programs.ts'
import { makeOrganization, NOON, openStore, registries, Sender, type TestStore } from '../../../support/store.ts'

function scan({ store, clock }: TestStore, { id }: Organization, names: readonly string[]): void {
  const sender = new Sender()
  const events = names.map((name) => sender.event(name, clock.nowMs()))
  store.environment.write(() => store.buffer.append(id, events))
  runScan(store, registries, id, 'administrator', clock)
}

function contentOf({ store, clock }: TestStore, { id }: Organization, sinceMs?: number): ReportContent {
  const registry = new RegistryInForce(store)
  const organization = store.organizations.get(id)
  if (organization === undefined) throw new Error('no organization')
  return store.environment.read(() => reportContent({ store, registry }, organization, clock.nowMs(), { sinceMs }))
}

function documentOf(site: TestStore, organization: Organization): string {
  const content = contentOf(site, organization)
  if (content.findings === undefined) throw new Error('no findings')
  return reportDocument(content, content.findings)
}

t.test('a report compares with the last report, and says who decided what', async (t) => {
  const site = acmeSite(t, { startMs: NOON - 20 * DAY_MS })
  const { store, clock, organization: acme } = site
  t.equal(contentOf(site, acme).findings, undefined, 'before the first scan')
  scan(site, acme, ['claude.ai'])
  const first = contentOf(site, acme)
  t.match(first, { isSinceLast: false, sinceMs: clock.nowMs() - 30 * DAY_MS })
  t.match(first.findings, { platforms: 1, change: { risk: undefined, newPlatforms: 1, newNames: ['Claude'] } })

  const administration = new Administration(store, clock, OPERATOR)
  const madeMs = clock.nowMs()
  administration.reports.make(acme, madeMs, () => {})
  clock.add(10 * DAY_MS)
  administration.approvals.add(acme, new RegistryInForce(store).catalogOf(acme.id), ['claude'], { owner: 'IT' })
  scan(site, acme, ['claude.ai', 'chat.deepseek.com'])
  const second = contentOf(site, acme)
  t.match(second, { isSinceLast: true, sinceMs: madeMs })
  t.match(second.findings, {
    platforms: 2,
    byState: { approved: 1, waiting: 1, rejected: 0, expired: 0 },
    change: { risk: Number, newPlatforms: 1, newNames: ['DeepSeek'], approved: 1, rejected: 0 },
    decisions: [{ name: 'Claude', state: 'approved', by: 'operator operator', owner: 'IT' }],
  })
  t.equal(second.findings?.change.risks.length, 2)
  t.equal(second.findings?.risks[0]?.name, 'DeepSeek', 'the highest risk first')
  t.match(contentOf(site, acme, NOON - 30 * DAY_MS), { isSinceLast: false, findings: { change: { newPlatforms: 2 } } })
})

t.test('a report that could not be written is not the last one', async (t) => {
  const site = openStore(t)
  const acme = makeOrganization(site, 'Acme')
  scan(site, acme, ['claude.ai'])
  const { reports } = new Administration(site.store, site.clock, OPERATOR)
  const fails = (): void => {
    throw new Error('no space')
  }
  t.throws(() => reports.make(acme, NOON, fails), { message: 'no space' })
  t.equal(site.store.organizations.get(acme.id)?.lastReportAtMs, undefined)
  t.notOk(site.store.auditLog.ofOrganization(acme.id).some(({ action }) => action === 'report.create'))
})

t.test('the document needs nothing else, runs no script, and quotes all text', async (t) => {
  const site = openStore(t)
  const acme = makeOrganization(site, '<script>alert(1)</script>')
  scan(site, acme, ['claude.ai', 'chatgpt.com'])
  const html = documentOf(site, acme)
  t.ok(html.startsWith('<!DOCTYPE html>\n<html lang="en">'))
  t.match(html, 'Use of AI at &lt;script')
  t.notMatch(html, /<(?:script|link|img|iframe|object|embed|base|form|a)\b/)
  t.notMatch(html, /\bhttps?:|url\(|@import|\son\w+=|\sstyle=/)
  const [, style = ''] = /<style>([\s\S]*?)<\/style>/.exec(html) ?? []
  const hash = createHash('sha256').update(style).digest('base64')
  const [, policy = ''] = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(html) ?? []
  t.equal(
    policy.replaceAll('&#39;', "'"),
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`,
  )
  t.match(html, /<svg[^>]*role="img" aria-label="Platforms by decision"/)
  t.match(style, '@media print')
})

t.test('posture-admin report writes a private file, and replaces it', async (t) => {
  const directory = t.testdir()
  const data = ['--data-dir', join(directory, 'service')]
  const file = join(directory, 'report.html')
  const [made] = await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  t.ok(made)
  const early = await runAdmin(['report', '--out', file, ...data])
  t.match(early, { status: 5, stderr: /no scan has completed yet/ })
  await admin('scan', 'run', ...data)
  const [first] = await admin('report', '--out', file, ...data)
  t.match(first, { file, organization: 'Acme' })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.match(readFileSync(file, 'utf8'), /no AI platform was seen at Acme/)
  const [second] = await admin('report', '--out', file, '--since', '2026-01-31', ...data)
  t.match(second, { since: '2026-01-31T00:00:00Z' })
  t.match(readFileSync(file, 'utf8'), /Change since January 31, 2026/)
  await admin('report', '--out', file, ...data)
  t.match(readFileSync(file, 'utf8'), /Change since the last report, /)
  const nowhere = await runAdmin(['report', '--out', join(directory, 'none/report.html'), ...data])
  t.match(nowhere, { status: 4, stderr: /--out .*none\/report\.html: cannot \w+: no such file or directory/ })
  const future = await runAdmin(['report', '--out', file, '--since', '2999-01-01', ...data])
  t.match(future, { stderr: /expected a date in the past/ })
})
