import t from 'tap'
import { runScan } from '../../engine/scan/scan-runner.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'
import { makeOrganization, NOON, registries, Sender } from '../support/store.ts'

/** Chats of three clients with a platform, on two days. */
function useDeepSeek({ store, clock, organization }: TestConsole): void {
  const sender = new Sender()
  const yesterday = NOON - 86_400_000
  store.environment.write(() =>
    store.buffer.append(organization.id, [
      sender.event('chat.deepseek.com', yesterday, { client: '192.0.2.1', count: 5 }),
      sender.event('chat.deepseek.com', NOON - 60_000, { client: '192.0.2.2', count: 2, blocked: 1, method: 'tls' }),
      sender.event('api.deepseek.com', NOON - 60_000, { client: '192.0.2.3' }),
    ]),
  )
  runScan(store, registries, organization.id, 'schedule', clock)
}

const scan = ({ store, clock, organization }: TestConsole) =>
  runScan(store, registries, organization.id, 'administrator', clock)

t.test('a platform has its risk as a product, its confidence by kind, its names and its days', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const { status, text } = await site.signIn('v', 'viewer').get('/platforms/DeepSeek')
  t.equal(status, 200)
  t.match(text, /not approved/)
  t.match(text, /<b>85<\/b> in the registry/)
  t.match(text, /chat\.deepseek\.com<\/span><\/td><td class="n">7</)
  t.match(text, /api\.deepseek\.com<\/span><\/td><td class="n">1</)
  t.match(text, /3 clients, 8 matches, 2 days/)
  t.match(text, /1 blocked by the device/)
  t.match(text, /19 Nov: 1 clients not approved, 0 approved/)
  t.match(text, /20 Nov: 2 clients not approved, 0 approved/)
  t.match(text, /Name: 0\.70 of 1/)
  t.notMatch(text, /<form[^>]+approve/, 'a viewer is offered no decision')
})

t.test('an approval shows at once, and its risk after the next scan; then it can be withdrawn', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const admin = site.signIn('a', 'admin')
  const before = (await admin.get('/platforms/DeepSeek')).text
  t.match(before, /action="\/platforms\/DeepSeek\/approve"/)
  const approved = await admin.post('/platforms/DeepSeek/approve')
  t.match(approved, { status: 303, headers: { location: '/platforms/DeepSeek?done=approved' } })
  const waiting = (await admin.get('/platforms/DeepSeek?done=approved')).text
  t.match(waiting, /DeepSeek is approved/)
  t.match(waiting, /The next scan updates the risk/)
  t.match(waiting, /not approved<\/span>/, 'the figures are still those of the last scan')
  scan(site)
  const after = (await admin.get('/platforms/DeepSeek')).text
  t.match(after, /<b>0\.25<\/b> because it is approved/)
  t.notMatch(after, /waits for the next scan/)
  t.match(await admin.post('/platforms/DeepSeek/withdraw'), { status: 303 })
  t.match((await admin.get('/platforms/DeepSeek')).text, /waits for the next scan/)
  const actions = site.store.auditLog.ofOrganization(site.organization.id).map(({ action }) => action)
  t.same(actions, ['approval.add', 'approval.remove'])
})

t.test('a platform of the registry that was not seen says so; an unknown one is not found', async (t) => {
  const { signIn } = await serveConsole(t)
  const viewer = signIn('v', 'viewer')
  t.match((await viewer.get('/platforms/ChatGPT')).text, /Not seen in the last 30 days/)
  t.equal((await viewer.get('/platforms/%3Cscript%3E')).status, 404)
  t.equal((await signIn('a', 'admin').post('/platforms/Nothing/approve')).status, 404)
})

t.test('another organization sees nothing of it', async (t) => {
  const site = await serveConsole(t)
  useDeepSeek(site)
  const other = makeOrganization(site, 'Globex')
  const { text } = await site.signIn('g', 'owner', other).get('/platforms/DeepSeek')
  t.match(text, /Not seen/)
  t.notMatch(text, /chat\.deepseek\.com/)
})
