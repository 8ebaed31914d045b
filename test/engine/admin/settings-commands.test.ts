import { join } from 'node:path'
import t from 'tap'
import { admin, runAdmin } from '../../support/programs.ts'

t.test('owners of recommendations, withdrawn invitations and a retention without effect, by commands', async (t) => {
  const acme = ['--data-dir', join(t.testdir({}), 'data'), '--org', 'Acme']
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...acme.slice(0, 2))
  const [assessment] = await admin('assessment', 'create', '--framework', 'hipaa', ...acme)
  const id = String(assessment?.['id'])
  for (const { item_id: item } of await admin('assessment', 'show', id, '--items', ...acme)) {
    await admin('assessment', 'answer', id, String(item), 'no', ...acme)
  }
  await admin('assessment', 'complete', id, ...acme)
  const [first] = await admin('recommendation', 'list', ...acme)
  const named = String(first?.['id'])
  t.match(await admin('recommendation', 'assign', named, 'grace', ...acme), [{ id: named, owner: 'grace' }])
  t.match(await admin('recommendation', 'list', '--owner', 'grace', ...acme), [{ id: named }])
  const withoutOwner = await admin('recommendation', 'list', '--owner', '', ...acme)
  t.notOk(withoutOwner.some((each) => each['id'] === named))
  t.match(await admin('recommendation', 'assign', named, '', ...acme), [{ owner: null }])
  t.match(await runAdmin(['recommendation', 'assign', named, 'x\ny', ...acme]), { status: 2 })

  await admin('member', 'add', 'ada', ...acme)
  await admin('member', 'invite', 'ada', ...acme)
  t.match(await admin('member', 'withdraw', 'ADA', ...acme), [{ name: 'ada', can_sign_in: false }])
  t.match(await runAdmin(['member', 'withdraw', 'ada', ...acme]), { status: 5, stderr: /"ada" has no invitation/ })

  const before = await admin('retention', 'show', ...acme)
  t.match(await admin('retention', 'set', '--audit-days', '90', '--dry-run', ...acme), [
    { scans: 0, audit_entries: 0, sources: 0 },
  ])
  t.same(await admin('retention', 'show', ...acme), before)
})
