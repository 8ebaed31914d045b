import t from 'tap'
import { serveConsole } from '../support/console.ts'
import { frameworkFile } from '../support/framework-file.ts'

t.test('a framework is added from a file, assessed, replaced and removed', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/assessments')).text, 'href="/frameworks"')
  t.match((await admin.get('/frameworks')).text, /No own framework/)
  const added = await admin.post('/frameworks', { text: frameworkFile([{ id: 'A-1' }]) })
  t.match(added, { status: 303, headers: { location: '/frameworks?done=added' } })
  t.match((await admin.get('/frameworks')).text, /Acme baseline.*own-acme/s)
  t.match((await admin.get('/assessments')).text, '<option value="own-acme">Acme baseline</option>')

  const made = await admin.post('/assessments', { framework: 'own-acme', title: '' })
  const path = String(made.headers['location'])
  t.match((await admin.get(path)).text, /Acme baseline/)
  t.match((await admin.get(`${path}/categories/0`)).text, /Each account names a person/)
  t.equal((await admin.post(`${path}/categories/0/items/0`, { answer: 'no' })).status, 303)
  t.equal((await admin.post('/frameworks', { text: frameworkFile([{ id: 'A-1' }, { id: 'A-2' }]) })).status, 303)
  t.match((await admin.get(path)).text, /other items now: 1 new, 0 changed, 0 removed/)
  t.equal((await admin.post(`${path}/update`)).status, 303)
  t.equal((await admin.post(`${path}/categories/0/items/1`, { answer: 'yes' })).status, 303)
  t.match(await admin.post(`${path}/complete`), { status: 303 })
  t.match((await admin.get(path)).text, />50 · F</)
  t.match((await admin.get('/recommendations')).text, /own-acme/)

  t.match(await admin.post('/frameworks/own-acme/remove'), { status: 303 })
  t.same(store.ownFrameworks.ofOrganization(organization.id), [])
  t.match((await admin.get(path)).text, /Acme baseline/, 'its assessment stays')
  t.equal((await admin.post('/frameworks/own-acme/remove')).status, 404)
  t.equal((await admin.post('/assessments', { framework: 'own-acme', title: '' })).status, 404)
})

const REFUSED: readonly { name: string; text: string; message: RegExp }[] = [
  { name: 'nothing', text: ' ', message: /Choose a file/ },
  {
    name: 'two errors',
    text: frameworkFile([{ id: 'A', weight: 0 }, { id: 'B C' }]),
    message: /line 14, .*line 22, /s,
  },
  { name: 'no YAML', text: 'id: "x', message: /line 1: not YAML/ },
  { name: 'too much', text: 'x'.repeat(1024 * 1024 + 1), message: /At most 1024 KiB/ },
]
for (const { name, text, message } of REFUSED) {
  t.test(`a framework file with ${name} is refused with its lines`, async (t) => {
    const site = await serveConsole(t)
    const answer = await site.signIn('a', 'admin').post('/frameworks', { text })
    t.equal(answer.status, 400)
    t.match(answer.text, message)
  })
}

t.test('a framework of 1,200 items with long texts can be uploaded', async (t) => {
  const site = await serveConsole(t)
  const items = Array.from({ length: 1200 }, (_, at) => ({
    ...{
      id: `A-${at}`,
      question: `Does ${'x'.repeat(150)} have an owner?`,
      evidence: 'List of accounts '.repeat(6).trim(),
    },
    ...{ recommendation: 'Give each account an owner. '.repeat(6).trim() },
  }))
  const text = frameworkFile(items)
  t.ok(text.length > 800_000)
  t.equal((await site.signIn('a', 'admin').post('/frameworks', { text })).status, 303)
  t.match(site.store.ownFrameworks.ofOrganization(site.organization.id), [{ items: 1200 }])
})
