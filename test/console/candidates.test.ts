import t from 'tap'
import { SKETCH_BYTES } from '../../engine/store/candidates.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { makeOrganization } from '../support/store.ts'

const PATH = '/candidates'

/** Stores a candidate of the organization for each name. */
function candidatesIn({ store, organization, clock }: TestConsole, ...names: readonly string[]): void {
  const seen = { firstSeenMs: clock.nowMs() - 1000, lastSeenMs: clock.nowMs() }
  const deltas = names.map((name) => {
    return {
      organizationId: organization.id,
      name,
      requests: 2,
      withAi: 1,
      ...seen,
      clients: new Uint8Array(SKETCH_BYTES),
    }
  })
  store.environment.write(() => store.candidates.add(deltas, () => true))
}

t.test('candidates are listed, dismissed, restored and handed to the form of custom platforms', async (t) => {
  const site = await serveConsole(t)
  const admin = site.signIn('a', 'admin')
  t.match((await admin.get(PATH)).text, /No candidate/)
  candidatesIn(site, 'unknown.ai', 'llm.corp.example')
  const { text } = await admin.get(PATH)
  t.match(text, /llm\.corp\.example.*AI term in the name, requested with AI platforms.*unknown\.ai/s)
  t.match(await admin.rows(`${PATH}.csv`), [
    { Name: 'llm.corp.example', Signals: 'ai_term with_ai', Score: '70', Requests: '2', Clients: '' },
    { Name: 'unknown.ai', Signals: 'ai_domain with_ai', Score: '60' },
  ])
  t.match(text, '/own-platforms?name=unknown.ai&amp;domains=unknown.ai')
  t.match(
    (await admin.get('/own-platforms?name=unknown.ai&domains=unknown.ai')).text,
    /value="unknown\.ai".*>unknown\.ai</s,
  )
  t.equal((await admin.post(`${PATH}/unknown.ai/dismiss`)).status, 303)
  t.notMatch((await admin.get(PATH)).text, /unknown\.ai/)
  t.match((await admin.get(`${PATH}?show=dismissed`)).text, /unknown\.ai/)
  t.equal((await admin.post(`${PATH}/unknown.ai/restore`)).status, 303)
  t.match((await admin.get(PATH)).text, /unknown\.ai/)
  t.equal((await admin.post(`${PATH}/none.ai/dismiss`)).status, 404)
})

t.test('members of other roles and organizations', async (t) => {
  const site = await serveConsole(t)
  candidatesIn(site, 'unknown.ai')
  const viewer = site.signIn('v', 'viewer')
  const { text } = await viewer.get(PATH)
  t.match(text, /unknown\.ai/)
  t.notMatch(text, /Dismiss unknown|Add unknown/)
  t.equal((await viewer.post(`${PATH}/unknown.ai/dismiss`)).status, 403)
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get(PATH)).text, /unknown\.ai/)
  t.equal((await foreign.post(`${PATH}/unknown.ai/dismiss`)).status, 404)
})

t.test('a name of a platform is no longer listed', async (t) => {
  const site = await serveConsole(t)
  candidatesIn(site, 'unknown.ai', 'perplexity.ai')
  const { text } = await site.signIn('a', 'admin').get(PATH)
  t.match(text, /unknown\.ai/)
  t.notMatch(text, /perplexity\.ai/)
})
