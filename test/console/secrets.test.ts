import t from 'tap'
import { ACTIVE_API_KEYS_MAX } from '../../engine/admin/api-keys.ts'
import { hashSecret, isApiKey, isMonitoringToken } from '../../engine/store/access-key.ts'
import { serveConsole } from '../support/console.ts'
import { NOON } from '../support/store.ts'

const TOKEN = /svc_mt_[0-9a-f]{48}/
const KEY = /svc_pk_[0-9a-f]{64}/

t.test('a monitoring token is generated, shown once without a trace in any cache, and revoked', async (t) => {
  const { signIn, store } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  t.match((await admin.get('/monitoring-tokens')).text, /No active token/)
  const answer = await admin.submit('/monitoring-tokens', { label: ' fw-01 ' }, { 'accept-encoding': 'gzip' })
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store', 'content-encoding': undefined } })
  const [raw = ''] = TOKEN.exec(answer.text) ?? []
  t.ok(isMonitoringToken(raw))
  const stored = store.monitoringTokens.byHash(hashSecret(raw))
  t.match(stored, { label: 'fw-01', createdAtMs: NOON })
  const list = (await admin.get('/monitoring-tokens')).text
  t.match(list, `svc_mt_${stored?.visible}`)
  t.notMatch(list, TOKEN)
  t.equal((await admin.post(`/monitoring-tokens/${stored?.id}/revoke`)).status, 303)
  t.equal(store.monitoringTokens.byHash(hashSecret(raw)), undefined)
  t.match((await admin.get('/monitoring-tokens')).text, /1 revoked or expired/)
  t.equal((await admin.post(`/monitoring-tokens/${stored?.id}/revoke`)).status, 409)
})

t.test('a wrong label is refused with what was typed', async (t) => {
  const { signIn, store, organization } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  t.match(await admin.submit('/monitoring-tokens', { label: '  ' }), { status: 400, text: /Enter a label/ })
  const long = 'x'.repeat(300)
  const answer = await admin.submit('/monitoring-tokens', { label: long })
  t.equal(answer.status, 400)
  t.match(answer.text, long)
  t.match(answer.text, /expected one line of 1 to 255 bytes/)
  t.equal(store.monitoringTokens.activeCount(organization.id, NOON), 0)
})

t.test('an API key is created with scopes, shown once, and revoked', async (t) => {
  const { signIn, store, organization, clock } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  t.match((await admin.get('/api-keys')).text, /No active key/)
  const scopes = ['scores:read', 'discovery:read']
  const answer = await admin.submit('/api-keys', { label: 'grafana', scopes })
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store' } })
  const [raw = ''] = KEY.exec(answer.text) ?? []
  t.ok(isApiKey(raw))
  const key = store.apiKeys.byHash(hashSecret(raw))
  t.match(key, { label: 'grafana', scopes })
  const keyId = key?.id ?? ''
  store.environment.write(() => store.keyUses.put({ organizationId: organization.id, keyId, timeMs: NOON }))
  clock.add(3 * 3_600_000)
  const later = (await signIn('a', 'admin').get('/api-keys')).text
  t.match(later, /3 hours ago/)
  t.notMatch(later, KEY)
  t.equal((await signIn('a', 'admin').post(`/api-keys/${keyId}/revoke`)).status, 303)
  t.equal(store.apiKeys.byHash(hashSecret(raw)), undefined)
})

t.test(
  'loading the page of a new secret again makes no other, and does not show it; nor to another session',
  async (t) => {
    const { signIn, store, organization } = await serveConsole(t)
    const admin = signIn('a', 'admin')
    const answer = await admin.post('/monitoring-tokens', { label: 'one' })
    const page = String(answer.headers['location'])
    t.match(answer, { status: 303, text: '' })
    t.notMatch((await signIn('b', 'owner').get(page)).text, /svc_mt_[0-9a-f]{48}/)
    t.match((await admin.get(page)).text, /svc_mt_[0-9a-f]{48}/)
    t.notMatch((await admin.get(page)).text, /svc_mt_[0-9a-f]{48}/)
    t.equal(store.monitoringTokens.activeCount(organization.id, NOON), 1)
  },
)

t.test('a key needs a label and a scope that exists; 25 are active at most', async (t) => {
  const { signIn, store, organization } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  t.match(await admin.submit('/api-keys', { label: 'one' }), { status: 400, text: /Choose at least one/ })
  t.match(await admin.submit('/api-keys', { label: 'one', scopes: ['all'] }), { status: 400, text: /value="one"/ })
  for (let made = 0; made < ACTIVE_API_KEYS_MAX; made++) {
    await admin.submit('/api-keys', { label: `key ${made}`, scopes: ['scores:read'] })
  }
  t.match((await admin.get('/api-keys')).text, /25 keys are active, which is the limit/)
  t.equal((await admin.submit('/api-keys', { label: 'more', scopes: ['scores:read'] })).status, 409)
  t.equal(store.apiKeys.activeCount(organization.id, NOON), ACTIVE_API_KEYS_MAX)
})

t.test('the scan frequency is saved; an unknown one is refused', async (t) => {
  const { signIn, store, organization } = await serveConsole(t)
  const admin = signIn('a', 'admin')
  t.match((await admin.get('/scan-frequency')).text, /value="daily" checked/)
  t.match((await admin.get('/scan-frequency')).text, /No scan has run yet/)
  t.equal((await admin.post('/scan-frequency', { frequency: 'hourly' })).status, 303)
  t.equal(store.organizations.get(organization.id)?.scanFrequency, 'hourly')
  t.match((await admin.get('/scan-frequency?done=set')).text, /Scans run hourly from now on/)
  t.notMatch((await admin.get('/scan-frequency?done=constructor')).text, /class="notice/)
  t.equal((await admin.post('/scan-frequency', { frequency: 'never' })).status, 400)
  t.match((await signIn('v', 'viewer').get('/scan-frequency')).text, /<fieldset disabled/)
})
