import t from 'tap'
import { publishedList } from '../support/assessments.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { makeOrganization } from '../support/store.ts'

/** Starts an assessment as an admin, and answers every item. */
async function assessed(site: TestConsole, answer: string): Promise<string> {
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  const { headers } = await admin.post('/assessments', { framework: 'ai-security', title: '' })
  const path = String(headers['location'])
  const [assessment] = store.assessments.ofOrganization(organization.id)
  if (assessment === undefined) throw new Error('no assessment')
  for (const [at, { items }] of store.assessments.categories(assessment).entries()) {
    const fields = items.flatMap((_, index) => [
      [`answer-${index}`, answer],
      [`note-${index}`, 'seen'],
    ])
    t.match(await admin.post(`${path}/categories/${at}`, Object.fromEntries(fields)), { status: 303 })
  }
  return path
}

t.test('an assessment goes from its draft to a score, and its recommendations to the API', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get('/assessments')).text, /No assessment is in progress/)
  t.match((await admin.get('/recommendations')).text, /No recommendation yet/)
  const path = await assessed(site, 'partial')
  t.match((await admin.get('/assessments')).text, /In progress/)
  t.match((await admin.get(path)).text, /action="[^"]+\/complete"/)
  t.match(await admin.post(`${path}/complete`), { status: 303, headers: { location: `${path}?done=completed` } })
  t.match((await admin.get(path)).text, />50 · F</)
  t.match((await admin.get('/assessments')).text, />50 · F</)
  const entries = store.auditLog.ofOrganization(organization.id)
  const items = store.assessments.categories(store.assessments.ofOrganization(organization.id)[0] as never)
  const count = items.reduce((sum, each) => sum + each.items.length, 0)
  t.equal(entries.filter(({ action }) => action === 'assessment.change').length, count)

  const [first] = store.recommendations.ofOrganization(organization.id)
  const changed = await admin.post(`/recommendations/${first?.id}`, { status: 'dismissed', back: 'status=open' })
  t.match(changed, { status: 303, headers: { location: '/recommendations?status=open&done=status' } })
  const published = JSON.stringify(publishedList(store, organization.id, 'recommendations'))
  t.match(published, /dismissed/)
  t.match((await admin.get('/recommendations?status=dismissed')).text, new RegExp(`/recommendations/${first?.id}`))
  t.notMatch((await admin.get('/recommendations')).text, new RegExp(`/recommendations/${first?.id}`))
  t.equal((await admin.post(`/recommendations/${first?.id}`, { status: 'gone' })).status, 400)
})

t.test('saving a category again changes nothing; a wrong answer or a missing field neither', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const path = await assessed(site, 'yes')
  const admin = site.signIn('a', 'admin')
  const before = store.auditLog.lastSequence(organization.id)
  t.equal((await admin.post(`${path}/categories/0`, { 'answer-0': 'yes', 'note-0': 'seen' })).status, 303)
  t.equal((await admin.post(`${path}/categories/0`, {})).status, 303)
  t.match(await admin.post(`${path}/categories/0`, { 'answer-0': '101' }), { status: 400, text: /from 0 to 100/ })
  t.equal((await admin.post(`${path}/categories/99`, {})).status, 404)
  t.equal(store.auditLog.lastSequence(organization.id), before)
})

t.test('an unfinished assessment is not completed; a member answers and does not complete', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  const { headers } = await admin.post('/assessments', { framework: 'hipaa', title: 'Autumn' })
  const path = String(headers['location'])
  t.match(await admin.post(`${path}/complete`), { status: 409, text: /unanswered/ })
  t.match((await admin.get(path)).text, /Autumn/)
  t.equal((await site.signIn('m', 'member').post(`${path}/complete`)).status, 403)
  t.notMatch((await site.signIn('v', 'viewer').get(path)).text, /<select name="answer/)
  t.match(await admin.post('/assessments', { framework: 'none' }), { status: 400, text: /Choose a framework/ })
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.equal((await foreign.get(path)).status, 404)
  t.equal((await foreign.post(`${path}/complete`)).status, 404)
  t.notMatch((await foreign.get('/assessments')).text, /Autumn/)
})
