import t from 'tap'
import { basesOf, basisText } from '../../../engine/assess/basis.ts'
import { writeAssessment } from '../../../engine/assess/transfer.ts'
import { reportContent } from '../../../engine/export/report/content.ts'
import type { Answer, Assessment } from '../../../engine/store/assessments.ts'
import { RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import { type AlertSite, alertSite } from '../../support/alerts.ts'

const SEVEN = ['claude.ai', 'chatgpt.com', 'gemini.google.com', 'perplexity.ai', 'grok.com', 'chat.deepseek.com']

function basisOf({ store, organization, clock }: AlertSite, assessment: Assessment) {
  return store.environment.read(() => basesOf(store, organization.id, clock.nowMs())(assessment))
}

function answerAll({ administration, organization, store }: AlertSite, made: Assessment, answer: Answer): void {
  for (const { id } of store.assessments.categories(made).flatMap(({ items }) => items)) {
    administration.assessments.answer(organization, made.id, id, answer)
  }
}

t.test('all yes beside platforms that nobody approved: the answers above the facts stand beside the A', async (t) => {
  const site = alertSite(t)
  const { administration, organization, store, clock } = site
  const { assessments } = administration
  const items = ['INV-1', 'INV-2', 'INV-3', 'MOD-2', 'MOD-7', 'GOV-1', 'GOV-2']
  site.scan(SEVEN)
  const first = assessments.create(organization, 'ai-security', 'Spring', items)
  answerAll(site, first, 'yes')
  assessments.answer(organization, first.id, 'GOV-2', 'not_applicable', 'The parent company answers for it')
  const completed = assessments.complete(organization, first.id)
  t.match(completed.result, { overallScore: 100, grade: 'A' })
  const text = '7 selected items, 14% not applicable, 5 answers above the facts'
  t.equal(basisText(basisOf(site, completed)), text)
  t.match(basisOf(site, completed).caveats, [
    { itemId: 'INV-1', kind: 'above the facts', reason: /^Answered yes. Discovery: AI platforms found: 6; / },
    { itemId: 'INV-2' },
    { itemId: 'INV-3' },
    { itemId: 'MOD-2' },
    { itemId: 'MOD-7' },
    { itemId: 'GOV-2', kind: 'not applicable', reason: 'The parent company answers for it' },
  ])
  const registry = new RegistryInForce(store)
  const report = store.environment.read(() => reportContent({ store, registry }, organization, clock.nowMs()))
  t.match(report.scores, [{ score: 100, grade: 'A', basis: text }])
  const oscal = writeAssessment(completed, store.assessments.categories(completed), 'oscal')
  t.match(oscal, /"not-applicable-percent",\s+"ns": "[^"]+",\s+"value": "14"/)
  t.match(oscal, /"unsupported-answers",\s+"ns": "[^"]+",\s+"value": "5"/)

  const carried = assessments.create(organization, 'ai-security', 'Autumn', items, first.id)
  t.equal(basisOf(site, carried).caveats.length, 6, 'carried over, and still named')
  const again = assessments.complete(organization, carried.id)
  t.equal(basisOf(site, again).unsupported.length, 5)
  site.scan([])
  t.equal(basisOf(site, completed).unsupported.length, 5, 'an earlier one has the facts of its completion')
})

t.test('PCI DSS says how many items are met, and which must-pass items are not', async (t) => {
  const site = alertSite(t)
  const { assessments } = site.administration
  const made = assessments.create(site.organization, 'pci-dss', 'PCI', ['8.4.1', '8.4.2', '1.2.1'])
  answerAll(site, made, 'yes')
  assessments.answer(site.organization, made.id, '8.4.1', 'partial')
  const completed = assessments.complete(site.organization, made.id)
  t.match(completed.result, { overallScore: 67, grade: 'D' })
  t.equal(
    basisText(basisOf(site, completed)),
    '3 selected items, 2 of 3 met, 0% not applicable, 0 answers above the facts, must pass: 8.4.1',
  )
  const earlier = basisOf(site, { ...completed, result: { overallScore: 91, grade: 'A', categories: [] } })
  t.equal(
    basisText(earlier),
    '3 selected items, 0% not applicable, 0 answers above the facts, completed under earlier rules',
  )
  t.same(earlier.caveats, [], 'rules of today do not explain its grade')
})
