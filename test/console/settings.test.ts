import t from 'tap'
import { hashSecret } from '../../engine/store/access-key.ts'
import { retentionOf } from '../../engine/store/retention.ts'
import { serveConsole } from '../support/console.ts'
import { makeOrganization, NOON } from '../support/store.ts'

const DAY_MS = 86_400_000
const KEY = /svc_pk_[0-9a-f]{64}/

t.test('a key is rotated: the new one is shown once, the old one ends now or after a grace period', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const admin = site.signIn('a', 'admin')
  const newKey = async () => {
    const { text } = await admin.submit('/api-keys', { label: 'grafana', scopes: ['scores:read'] })
    return store.apiKeys.byHash(hashSecret(KEY.exec(text)?.[0] ?? ''))
  }
  const old = await newKey()
  const path = `/api-keys/${old?.id}/rotate`
  t.match((await admin.get(path)).text, /The old key ends/)
  t.equal((await site.signIn('m', 'member').get(path)).status, 403)
  const answer = await admin.submit(path, { grace: '0' }, { 'accept-encoding': 'gzip' })
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store', 'content-encoding': undefined } })
  const [raw = ''] = KEY.exec(answer.text) ?? []
  t.match(store.apiKeys.byHash(hashSecret(raw)), { label: 'grafana', scopes: ['scores:read'] })
  t.equal(store.apiKeys.byHash(Buffer.from(old?.hash ?? '', 'hex')), undefined, 'revoked')
  t.notMatch((await admin.get('/api-keys')).text, KEY)
  t.equal((await admin.get(path)).status, 404)

  const kept = await newKey()
  t.equal((await admin.submit(`/api-keys/${kept?.id}/rotate`, { grace: '24' })).status, 200)
  t.match(store.apiKeys.get(organization.id, kept?.id ?? ''), { revokedAtMs: 0, expiresAtMs: NOON + DAY_MS })
  const expiring = `/api-keys/${kept?.id}/rotate`
  t.match(await admin.post(expiring, { grace: '0' }), { status: 400, text: /Enter a date in the future/ })
  t.match(await admin.post(expiring, { grace: '0', expires: '2020-01-01' }), { status: 400, text: /2020-01-01/ })
  t.match(await admin.post(expiring, { grace: '5', expires: '2999-01-01' }), { status: 400, text: /Choose when/ })
  t.equal((await admin.post(expiring, { grace: '0', expires: '2999-01-01' })).status, 303)
  const rows = await admin.rows('/api-keys.csv')
  t.match(rows.map(({ Label, Scopes, Status }) => [Label, Scopes, Status]).sort(), [
    ['grafana', 'scores:read', 'active'],
    ['grafana', 'scores:read', 'active'],
    ['grafana', 'scores:read', 'active'],
    ['grafana', 'scores:read', 'revoked'],
    ['grafana', 'scores:read', 'revoked'],
  ])
  clock.add(91 * DAY_MS)
  t.match((await site.signIn('a', 'admin').get('/api-keys')).text, /unused<\/span>/)
})

t.test('an owner renames the organization; an admin sets its domain and evidence window', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const path = '/organization-settings'
  const owner = site.signIn('o', 'owner')
  const admin = site.signIn('a', 'admin')
  const stored = () => store.organizations.get(organization.id)
  makeOrganization(site, 'Globex')
  t.match(await owner.post(`${path}/name`, { name: 'globex' }), { status: 409, text: /value="globex"/ })
  t.match(await owner.post(`${path}/name`, { name: '  ' }), { status: 400, text: /Enter a name/ })
  t.equal((await admin.post(`${path}/name`, { name: 'Acme Inc' })).status, 403)
  t.equal((await owner.post(`${path}/name`, { name: 'Acme Inc' })).status, 303)
  t.equal(stored()?.name, 'Acme Inc')
  const set = (domain: string, evidenceWindowDays: string) => admin.post(path, { domain, evidenceWindowDays })
  t.match(await set('a b', '30'), { status: 400, text: /expected a domain.*value="a b"/s })
  t.match(await set('acme.example', '0'), { status: 400, text: /expected a whole number from 1/ })
  t.match(await set('acme.example', 'x'), { status: 400, text: /Enter a number of days/ })
  const cleared = await set('', '60')
  t.match(cleared, { status: 400, text: /id="domain"[^>]* value required/ }, 'a field that was cleared stays empty')
  t.equal((await set('inc.acme.example', '60')).status, 303)
  t.match(stored(), { domain: 'inc.acme.example', evidenceWindowDays: 60 })
  const viewer = (await site.signIn('v', 'viewer').get(path)).text
  t.match(viewer, /inc\.acme\.example/)
  t.notMatch(viewer, /action="\/organization-settings/)
})

t.test('retention shows what it would delete before it is saved', async (t) => {
  const site = await serveConsole(t)
  const { store, organization } = site
  const admin = site.signIn('a', 'admin')
  const entry = { organizationId: organization.id, actor: 'member a', action: 'token.generate', details: {} }
  store.environment.write(() => {
    for (let days = 200; days >= 1; days--) {
      store.auditLog.append({ ...entry, timeMs: NOON - days * DAY_MS, subject: 'one' })
    }
  })
  const days = { scanDays: '30', auditDays: '150', sourceDays: '400', clientDays: '30' }
  const before = store.auditLog.lastSequence(organization.id)
  const { text } = await admin.get(`/retention?${new URLSearchParams(days)}`)
  t.match(text, /These days would delete 50 records now.*Entries of the audit log: 50/s)
  t.match(text, /value="150"/)
  t.equal(store.auditLog.lastSequence(organization.id), before, 'a preview changes nothing')
  t.match(await admin.get('/retention?scanDays=1&auditDays=5&sourceDays=1'), {
    status: 400,
    text: /value="5".*from 90 to 3650/s,
  })
  t.equal((await admin.post('/retention', { ...days, scanDays: '' })).status, 400)
  t.equal((await site.signIn('m', 'member').post('/retention', days)).status, 403)
  t.equal((await admin.post('/retention', days)).status, 303)
  const stored = store.organizations.get(organization.id) ?? organization
  t.same(retentionOf(stored), { scanDays: 30, auditDays: 150, sourceDays: 400, clientDays: 30 })
})
