import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { callbackPath } from '../../console/sign-in/oidc-flow.ts'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { capturedLog } from '../support/captured-log.ts'
import { type Browser, serveConsole, type TestConsole } from '../support/console.ts'
import { listenOn } from '../support/free-port.ts'
import { type OpenidProvider, openidProvider } from '../support/openid-provider.ts'
import { makeOrganization } from '../support/store.ts'

const PATH = '/sign-in-settings'

interface Site extends TestConsole {
  readonly provider: OpenidProvider
  readonly owner: Browser
}

async function serveBoth(
  t: Parameters<typeof serveConsole>[0],
  more: Parameters<typeof serveConsole>[1] = {},
): Promise<Site> {
  const site = await serveConsole(t, more)
  const provider = await openidProvider(t, { redirectUri: site.origin + callbackPath(site.organization.id) })
  return { ...site, provider, owner: site.signIn('olga@acme.example', 'owner') }
}

function valuesFor({ issuer, clientId, clientSecret }: OpenidProvider) {
  return {
    name: 'Okta',
    ...{ issuer, clientId, clientSecret },
    ...{ scopes: 'openid  email groups', nameClaim: 'email', groupsClaim: 'groups' },
    ...{ group: ['security', '', ' it '], role: ['admin', 'viewer', 'member'], defaultRole: 'none' },
  }
}

t.test('an owner sets up a provider; the secret is in no page, log, record or audit entry', async (t) => {
  const { log, entries } = capturedLog()
  const { owner, provider, store, organization, origin, directory } = await serveBoth(t, { log })
  const { text } = await owner.get(PATH)
  t.match(text, origin + callbackPath(organization.id))
  t.match(text, /Set up an identity provider/)
  const values = valuesFor(provider)
  t.match(await owner.post(PATH, values), { status: 303, headers: { location: `${PATH}?done=set` } })
  const stored = store.identityProviders.get(organization.id)
  t.match(stored, {
    ...{ name: 'Okta', issuer: provider.issuer, clientId: 'console', scopes: ['openid', 'email', 'groups'] },
    groups: [
      { group: 'security', role: 'admin' },
      { group: 'it', role: 'member' },
    ],
  })
  t.same(provider.requests, ['/.well-known/openid-configuration', '/token'], 'the settings were tried first')
  const page = (await owner.get(`${PATH}?done=set`)).text
  t.match(page, /The settings are saved/)
  t.match(page, /value="security"/)
  const kept = await owner.post(PATH, { ...values, clientSecret: '', name: 'SSO' })
  t.equal(kept.status, 303, 'an empty field keeps the secret')
  t.same(store.identityProviders.get(organization.id)?.clientSecret, stored?.clientSecret)
  t.match(store.auditLog.ofOrganization(organization.id).at(-1), {
    actor: 'member olga@acme.example',
    action: 'sign-in.set',
    details: { secret: 'kept', groups: 'security: admin, it: member' },
  })
  const files = readdirSync(join(directory, 'store')).map((name) => readFileSync(join(directory, 'store', name)))
  const shown = [page, text, JSON.stringify(store.auditLog.all()), JSON.stringify(entries)].map((each) =>
    Buffer.from(each),
  )
  for (const bytes of [...files, ...shown]) t.notOk(bytes.includes(provider.clientSecret))
})

t.test('wrong values come back with what was typed, except the secret', async (t) => {
  const { owner, provider, store, organization } = await serveBoth(t)
  const values = valuesFor(provider)
  const rows: readonly (readonly [Record<string, string | string[]>, RegExp])[] = [
    [{ issuer: 'login' }, /Expected a URL/],
    [{ issuer: 'http://login.example.com' }, /http is for localhost only/],
    [{ issuer: 'https://u:p@login.example.com' }, /without query, fragment and user name/],
    [{ issuer: 'https://login.example.com/.well-known/openid-configuration' }, /without \/\.well-known/],
    [{ issuer: `${provider.issuer}/other` }, /Check the issuer URL/],
    [{ issuer: 'http://127.0.0.1:1' }, /the connection is refused/],
    [{ clientSecret: 'wrong' }, /refused the client ID or the client secret/],
    [{ clientSecret: '' }, /Enter the client secret/],
    [{ clientSecret: 'x'.repeat(1025) }, /Expected at most 1024 bytes/],
    [{ name: ' ' }, /The name is required/],
    [{ scopes: 'email' }, /The scope openid is required/],
    [{ group: ['a', 'a'], role: ['viewer', 'admin'] }, /A group has two roles/],
    [{ group: ['a'], role: ['king'] }, /Expected a role/],
    [{ group: [], role: [] }, /Nobody could sign in/],
    [
      { group: Array.from({ length: 101 }, (_, at) => `g${at}`), role: Array(101).fill('viewer') },
      /at most 100 groups/,
    ],
    [{ defaultRole: 'king' }, /Expected none or a role/],
  ]
  for (const [wrong, message] of rows) {
    const answer = await owner.post(PATH, { ...values, ...wrong })
    t.match(answer, { status: 400, text: message }, String(message))
    t.match(answer.text, /value="console"/)
    t.notMatch(answer.text, provider.clientSecret)
  }
  t.equal(store.identityProviders.get(organization.id), undefined)
  await provider.stop()
  t.match(await owner.post(PATH, values), { status: 400, text: /the connection is refused/ })
  t.equal((await owner.post(PATH, { ...values, unchecked: 'yes' })).status, 303)
})

t.test('the secret of one provider is never sent to another', async (t) => {
  const { owner, provider, store, organization } = await serveBoth(t)
  const values = valuesFor(provider)
  await owner.post(PATH, values)
  let asked = 0
  const evil = createServer((_, response) => {
    asked++
    response.end()
  })
  const issuer = `http://127.0.0.1:${await listenOn(t, evil)}`
  for (const unchecked of ['', 'yes']) {
    const answer = await owner.post(PATH, { ...values, issuer, clientSecret: '', unchecked })
    t.match(answer, { status: 400, text: /Enter the client secret/ })
  }
  t.equal(asked, 0)
  t.equal(store.identityProviders.get(organization.id)?.issuer, provider.issuer)
})

t.test('the connection is tested', async (t) => {
  const { owner, provider } = await serveBoth(t)
  t.match(await owner.post(`${PATH}/test`), { status: 409, text: /Save the settings first/ })
  await owner.post(PATH, valuesFor(provider))
  t.match(await owner.post(`${PATH}/test`), { status: 200, text: /The connection works/ })
  provider.tamper = (path, body) => (path === '/token' ? { error: 'invalid_client' } : body)
  t.match(await owner.post(`${PATH}/test`), { status: 200, text: /refused the client ID or the client secret/ })
  provider.tamper = (path, body) => (path === '/token' ? { error: 'server_error' } : body)
  t.match(await owner.post(`${PATH}/test`), { status: 200, text: /The provider answers/ })
  provider.tamper = (path, body) =>
    path.startsWith('/.well') ? { ...(body as object), token_endpoint: 'http://192.0.2.1/' } : body
  t.match(await owner.post(`${PATH}/test`), { status: 200, text: /has no token_endpoint with https/ })
  await provider.stop()
  t.match(await owner.post(`${PATH}/test`), { status: 200, text: /The provider cannot be used.*refused/s })
})

t.test('settings need a confirmation; the form opens after it, and no page repeats a secret', async (t) => {
  const { owner, provider, clock, store } = await serveBoth(t)
  clock.add(11 * MINUTE_MS)
  const { text } = await owner.get(PATH)
  t.match(text, /Set up sign-in/)
  t.notMatch(text, /name="clientSecret"/)
  t.match((await owner.post(`${PATH}/edit`)).text, /Sign in again/)
  const user = store.users.byName('olga@acme.example')
  store.environment.write(() => user && store.users.put({ ...user, passwordHash: 'any' }))
  const asked = await owner.post(PATH, valuesFor(provider))
  t.match(asked.text, /Confirm your password/)
  t.match(asked.text, /name="issuer" value="http/)
  t.notMatch(asked.text, new RegExp(`${provider.clientSecret}|name="clientSecret"`))
  t.equal(store.identityProviders.isEmpty(), true)
})

t.test('an owner removes the provider; others see neither page nor settings', async (t) => {
  const site = await serveBoth(t)
  const { owner, provider, store, organization } = site
  await owner.post(PATH, valuesFor(provider))
  const foreign = site.signIn('g', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get(PATH)).text, /Okta|value="console"/)
  t.equal((await foreign.post(`${PATH}/remove`)).status, 404)
  t.equal((await site.signIn('a', 'admin').get(PATH)).status, 403)
  t.equal((await owner.post(`${PATH}/remove`)).status, 303)
  t.equal(store.identityProviders.get(organization.id), undefined)
  t.match((await owner.get(`${PATH}?done=removed`)).text, /The identity provider is removed/)
})
