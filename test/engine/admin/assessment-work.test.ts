import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../engine/kernel/process/clock.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { Store } from '../../../engine/store/store.ts'
import { admin, runAdmin } from '../../support/programs.ts'
import { registries, Sender } from '../../support/store.ts'

t.test('discovery suggests, people are assigned, and two assessments are compared, by commands', async (t) => {
  const data = join(t.testdir({}), 'data')
  const acme = ['--data-dir', data, '--org', 'Acme']
  const [made] = await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', data)
  const organizationId = String(made?.['id'])
  const scan = async (name: string): Promise<void> => {
    const store = new Store(data)
    const event = new Sender().event(name, systemClock.nowMs())
    store.environment.write(() => store.buffer.append(organizationId, [event]))
    runScan(store, registries, organizationId, 'administrator', systemClock)
    await store.close()
  }
  await admin('approval', 'add', 'claude', ...acme)
  await scan('claude.ai')
  const create = async (): Promise<string> => {
    const [created] = await admin('assessment', 'create', '--framework', 'ai-security', '--profile', 'INV-3', ...acme)
    return String(created?.['id'])
  }
  const first = await create()
  const discovery = ['suggest', first, '--from', 'discovery', ...acme]
  t.match(await admin('assessment', ...discovery), [
    { item_id: 'INV-3', answer: 'yes', accepted: false, discovery: { topic: 'shadow_ai' }, sources: [] },
  ])
  t.same(await admin('assessment', 'suggest', first, '--from', 'hipaa', ...acme), [])
  t.match(await admin('assessment', ...discovery, '--accept', 'INV-3'), [{ accepted: true }])
  const assigned = ['--owner', 'grace', '--due', '2099-12-01', '--link', 'https://a.example/1', 'https://a.example/2']
  t.match(await admin('assessment', 'assign', first, 'inv-3', ...acme, ...assigned), [
    { item_id: 'INV-3', owner: 'grace', due_on: '2099-12-01', links: ['https://a.example/1', 'https://a.example/2'] },
  ])
  t.match(await runAdmin(['assessment', 'assign', first, 'INV-3', '--due', 'soon', ...acme]), {
    status: 2,
    stderr: /due date: found "soon", expected a date such as 2026-12-01/,
  })
  t.match(await admin('assessment', 'show', first, '--item', 'INV-3', ...acme), [
    {
      note: /^Accepted from discovery: AI platforms found: 1; not approved: 0; without a decision: 0; /,
      owner: 'grace',
      changes: [
        { field: 'answer', to: 'yes' },
        { field: 'note' },
        { field: 'owner', to: 'grace' },
        { field: 'due' },
        { field: 'links' },
      ],
    },
  ])
  await admin('assessment', 'complete', first, ...acme)
  t.match(await admin('assessment', 'show', first, ...acme), [{ unsupported: [] }])
  await scan('chatgpt.com')
  t.match(await admin('assessment', 'show', first, ...acme), [
    { unsupported: [{ item_id: 'INV-3', answer: 'yes', discovery: /not approved: 1/ }] },
  ])

  const second = await create()
  await admin('assessment', 'answer', second, 'INV-3', 'partial', ...acme)
  await admin('assessment', 'assign', second, 'INV-3', '--owner', 'ada', '--due', '2099-01-15', ...acme)
  t.match(await admin('assessment', 'comment', second, 'INV-3', 'See ticket 7', ...acme), [
    { item_id: 'INV-3', changes: [{}, {}, {}, { field: 'comment', to: 'See ticket 7' }] },
  ])
  t.match(await admin('assessment', 'items', '--owner', 'ada', ...acme), [
    { assessment_id: second, item_id: 'INV-3', answer: 'partial', due_on: '2099-01-15', overdue: false },
  ])
  t.same(await admin('assessment', 'items', '--owner', 'grace', ...acme), [], 'that assessment is completed')
  await admin('assessment', 'complete', second, ...acme)
  t.match(await admin('assessment', 'compare', first, second, ...acme), [
    { item_id: 'INV-3', before: 'yes', after: 'partial', effect: -50 },
    { item_id: 'Other effects', effect: 0 },
    { item_id: 'Score', before: 100, after: 50, effect: -50 },
  ])
  const [recommendation] = await admin('recommendation', 'list', ...acme)
  t.match(recommendation, { owner: 'ada', due_on: '2099-01-15' })
  const id = String(recommendation?.['id'])
  t.match(await admin('recommendation', 'assign', id, 'ada', '--due', '2099-02-01', ...acme), [
    { due_on: '2099-02-01' },
  ])
  const [law] = await admin('assessment', 'create', '--framework', 'ai-security', '--profile', 'PEO-5', ...acme)
  const asked = ['assessment', 'show', String(law?.['id']), ...acme]
  const duty = { reference: 'AIACT Art. 26(2)', applies_from: '2027-12-02' }
  t.match(await admin(...asked, '--item', 'PEO-5'), [{ law: [duty], law_from: '2027-12-02' }])
  t.match(await admin(...asked, '--items'), [{ item_id: 'PEO-5', law: [duty] }])
  const [other] = await admin('assessment', 'create', '--framework', 'hipaa', ...acme)
  const mixed = ['assessment', 'compare', first, String(other?.['id']), ...acme]
  t.match(await runAdmin(mixed), { status: 5, stderr: /the first is of ai-security, the second of hipaa/ })
})
