import t from 'tap'
import { callbackPath } from '../../../console/sign-in/oidc-flow.ts'
import { secretHash } from '../../../console/sign-in/secrets.ts'
import { Administration } from '../../../engine/admin/administration.ts'
import { MINUTE_MS, SECOND_MS } from '../../../engine/kernel/process/clock.ts'
import { SESSIONS_PER_USER_MAX } from '../../../engine/limits.ts'
import { PASSWORD, setUp } from '../../support/accounts.ts'
import { capturedLog } from '../../support/captured-log.ts'
import type { Browser } from '../../support/console.ts'
import {
  ADA,
  addressIn,
  BOB,
  comeBack,
  isSignedIn,
  type OidcSite,
  redirectUriOf,
  serveBoth,
  setProvider,
  signIn,
  start,
} from '../../support/oidc-site.ts'
import { type OpenidProvider, openidProvider, type ProviderBrowser } from '../../support/openid-provider.ts'
import { makeOrganization } from '../../support/store.ts'

t.test('a person signs in with the provider and becomes a member by their groups', async (t) => {
  const { log, entries } = capturedLog()
  const site = await serveBoth(t, { log })
  const { store, organization, provider, clock } = site
  const browser = site.browser()
  t.match((await browser.get('/sign-in')).text, /Sign in with Okta/)
  const begun = await browser.post('/sign-in/provider', { to: '/platforms?q=a' })
  t.match(begun.headers['set-cookie'], /^__Host-oidc=[\w-]+; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=600$/)
  const url = new URL(addressIn(begun))
  t.match(Object.fromEntries(url.searchParams), {
    redirect_uri: redirectUriOf(site),
    response_type: 'code',
    scope: 'openid email groups',
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
    state: /^[\w-]{43}$/,
    nonce: /^[\w-]{43}$/,
  })
  const answer = await comeBack(browser, await provider.browser().signIn(url.href))
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store' } })
  t.equal(addressIn(answer), '/platforms?q=a', 'a page of this console that the browser requests with all cookies')
  t.match(answer.headers['set-cookie'], [
    /^__Host-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    /^__Host-oidc=; .*Max-Age=0$/,
  ])
  t.ok(await isSignedIn(browser))
  const member = store.members.get({ organizationId: organization.id, name: 'ada@acme.example' })
  t.match(member, { role: 'admin' }, 'the highest role of the groups')
  const [session] = store.sessions.all()
  t.match(session, { userId: member?.userId, providerOrganizationId: organization.id })
  t.equal(session?.hash, secretHash(browser.cookies.get('__Host-session') ?? ''))
  t.ok(clock.nowMs() - (session?.confirmedAtMs ?? 0) < MINUTE_MS, 'the provider said when the person signed in')
  t.same(
    store.auditLog.ofOrganization(organization.id).map(({ actor, action, subject }) => [actor, action, subject]),
    [
      ['operator operator', 'sign-in.set', 'Okta'],
      ['identity provider Okta', 'member.add', 'ada@acme.example'],
      ['member ada@acme.example', 'session.create', 'ada@acme.example'],
    ],
  )
  const again = await signIn(site)
  t.equal(again.answer.status, 200)
  t.equal(store.users.all().length, 1, 'the same user')
  t.notMatch(JSON.stringify(entries), new RegExp(`${provider.clientSecret}|code=|eyJ`))
})

t.test('a flow ends with its first answer, so that a copy of its cookie sends nothing to the provider', async (t) => {
  const site = await serveBoth(t)
  const { provider } = site
  const browser = site.browser()
  const callback = await provider.browser().signIn(await start(browser))
  const cookie = `__Host-oidc=${browser.cookies.get('__Host-oidc')}`
  const answers = (path: string) => site.browser().get(path, { 'sec-fetch-site': 'cross-site', cookie })
  const wrongCode = new URL(callback, site.origin)
  wrongCode.searchParams.set('code', 'wrong')
  t.match(await answers(wrongCode.pathname + wrongCode.search), { status: 502, text: /refused the code/ })
  const before = provider.requests.length
  t.ok(before > 0)
  for (const path of [callback, wrongCode.pathname + wrongCode.search]) {
    t.match(await answers(path), { status: 400, text: /has expired, or was already used/ })
  }
  t.equal(provider.requests.length, before)
  t.equal((await signIn(site)).answer.status, 200, 'another flow')
})

t.test('claims in the ID token need no request for the userinfo', async (t) => {
  const site = await serveBoth(t, { claimsInIdToken: true })
  t.equal((await signIn(site)).answer.status, 200)
  t.notOk(site.provider.requests.includes('/me'))
})

t.test('a role follows the groups at each sign-in; without a group the sessions end', async (t) => {
  const site = await serveBoth(t)
  const { store, organization, provider } = site
  const roleNow = () => store.members.get({ organizationId: organization.id, name: 'ada@acme.example' })?.role
  const { browser } = await signIn(site)
  provider.account = { ...ADA, claims: { ...ADA.claims, groups: ['it'] } }
  await signIn(site)
  t.equal(roleNow(), 'member')
  t.match(store.auditLog.ofOrganization(organization.id).at(-2), {
    actor: 'identity provider Okta',
    action: 'member.role',
    details: { role: 'member', was: 'admin' },
  })
  t.ok(await isSignedIn(browser))
  provider.account = { ...ADA, claims: { ...ADA.claims, groups: ['cooks'] } }
  const refused = await signIn(site)
  t.match(refused.answer, { status: 403, text: /none of your groups has access/ })
  t.notOk(await isSignedIn(refused.browser))
  t.notOk(await isSignedIn(browser), 'the sessions from before have ended')
  provider.account = { ...ADA, claims: { email: 'ada@acme.example' } }
  t.match((await signIn(site)).answer, { status: 403, text: /the provider sent no groups/ })
  setProvider(site, provider, { defaultRole: 'viewer' })
  t.equal((await signIn(site)).answer.status, 200)
  t.equal(roleNow(), 'viewer', 'the default role')
})

t.test('the only owner stays owner, whatever the groups say', async (t) => {
  const site = await serveBoth(t)
  const { store, organization, provider } = site
  setProvider(site, provider, { groups: [{ group: 'it', role: 'owner' }], defaultRole: 'viewer' })
  await signIn(site)
  provider.account = { ...ADA, claims: { email: 'ada@acme.example' } }
  t.equal((await signIn(site)).answer.status, 200)
  t.equal(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' })?.role, 'owner')
  provider.account = { ...BOB, claims: { ...BOB.claims, groups: ['it'] } }
  await signIn(site)
  provider.account = { ...ADA, claims: { email: 'ada@acme.example' } }
  await signIn(site)
  t.equal(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' })?.role, 'viewer')
})

t.test('a removed member does not come back by a sign-in until an owner allows it', async (t) => {
  const site = await serveBoth(t)
  const { store, organization, provider } = site
  const owner = site.signIn('olga@acme.example', 'owner')
  const { browser } = await signIn(site)
  t.equal((await owner.post('/members/ada@acme.example/remove')).status, 303)
  t.notOk(await isSignedIn(browser))
  const refused = await signIn(site)
  t.match(refused.answer, {
    status: 403,
    text: /ada@acme\.example was removed from the organization\. An owner can allow/,
  })
  t.notOk(await isSignedIn(refused.browser))
  provider.account = { ...ADA, claims: { ...ADA.claims, email: 'lovelace@acme.example' } }
  t.match((await signIn(site)).answer, { status: 403, text: /was removed/ }, 'by another name')
  provider.account = { ...ADA, subject: 'another' }
  t.match((await signIn(site)).answer, { status: 403, text: /was removed/ }, 'another account of this name')
  t.same(
    store.members.ofOrganization(organization.id).map(({ name }) => name),
    ['olga@acme.example'],
  )
  t.match((await owner.get('/members')).text, /Removed members.*ada@acme\.example.*admin.*Allow again/s)
  const admin = site.signIn('adam@acme.example', 'admin')
  t.equal((await admin.post('/members/ada@acme.example/allow')).status, 403)
  t.equal((await owner.post('/members/nobody/allow')).status, 404)
  t.equal((await owner.post('/members/ADA@acme.example/allow')).status, 303)
  t.notMatch((await owner.get('/members')).text, /Removed members/)
  t.match(store.auditLog.ofOrganization(organization.id).slice(-2), [
    {
      actor: 'member olga@acme.example',
      action: 'member.remove',
      subject: 'ada@acme.example',
      details: { was: 'admin' },
    },
    {
      actor: 'member olga@acme.example',
      action: 'member.allow',
      subject: 'ada@acme.example',
      details: { was: 'admin' },
    },
  ])
  provider.account = ADA
  t.equal((await signIn(site)).answer.status, 200)
  t.match(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' }), { role: 'admin' })
})

t.test(
  'a removed member with a password does not come back by the provider; adding the member again is enough',
  async (t) => {
    const site = await serveBoth(t)
    const { store, organization, clock } = site
    const { members } = new Administration(store, clock)
    site.signIn('ada@acme.example', 'member')
    site.signIn('olga@acme.example', 'owner')
    members.remove(organization, 'ada@acme.example')
    t.match((await signIn(site)).answer, { status: 403, text: /was removed/ })
    members.add(organization, 'Ada@acme.example', 'viewer')
    t.same(store.removedMembers.ofOrganization(organization.id), [])
    t.match((await signIn(site)).answer, { status: 409, text: /is a member of the organization already/ })
  },
)

t.test('a removed member whom an owner adds by another name connects the account again', async (t) => {
  const site = await serveBoth(t)
  const { store, organization, provider, clock } = site
  const { members } = new Administration(store, clock)
  site.signIn('olga@acme.example', 'owner')
  await signIn(site)
  members.remove(organization, 'ada@acme.example')
  const browser = site.signIn('lovelace@acme.example', 'viewer')
  const address = addressIn(await browser.post('/account/provider'))
  const connected = await comeBack(browser, await provider.browser().signIn(address))
  t.equal(addressIn(connected), '/account?done=connected')
  t.same(store.removedMembers.ofOrganization(organization.id), [])
  t.equal((await signIn(site)).answer.status, 200)
})

t.test('a person is the subject, not the e-mail address', async (t) => {
  const site = await serveBoth(t)
  const { store, organization, provider } = site
  await signIn(site)
  provider.account = { ...ADA, subject: 'another ada' }
  t.match((await signIn(site)).answer, { status: 409, text: /but not with this account of Okta/ })
  provider.account = { ...ADA, claims: { ...ADA.claims, email: 'ada.new@acme.example' } }
  t.equal((await signIn(site)).answer.status, 200)
  t.same(
    store.members.ofOrganization(organization.id).map(({ name }) => name),
    ['ada@acme.example'],
    'the member keeps its name',
  )
  provider.account = { ...BOB, claims: { ...BOB.claims, groups: ['it'], email_verified: false } }
  t.match((await signIn(site)).answer, { status: 502, text: /has not verified your e-mail address/ })
  provider.account = { subject: 'bob', claims: { groups: ['it'] } }
  t.match((await signIn(site)).answer, { status: 502, text: /sent no claim &quot;email&quot;|sent no claim "email"/ })
})

t.test('a matching name does not give a user the account of an existing member', async (t) => {
  const site = await serveBoth(t)
  const { store, organization } = site
  new Administration(store, site.clock).members.add(organization, 'ada@acme.example', 'owner')
  t.match((await signIn(site)).answer, { status: 409, text: /Use your invitation link first/ })
  t.match(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' }), {
    role: 'owner',
    userId: undefined,
  })
})

t.test('a user of a provider does not occupy a name for sign-in', async (t) => {
  const site = await serveBoth(t)
  await signIn(site)
  t.equal(site.store.users.byName('ada@acme.example'), undefined)
  const globex = makeOrganization(site, 'Globex')
  const other = site.signIn('ada@acme.example', 'owner', globex)
  t.ok(await isSignedIn(other))
  new Administration(site.store, site.clock).members.remove(site.organization, 'ada@acme.example')
  t.ok(site.store.users.byName('ada@acme.example'), 'the name of the other user stays')
  t.same(site.store.federatedIdentities.ofOrganization(site.organization.id), [])
})

interface Attack {
  readonly name: string
  /** Changes the address at the provider. */
  readonly there?: (url: URL) => void
  /** Changes the request to the callback. */
  readonly back?: (url: URL, browser: Browser, site: OidcSite) => void
  readonly tamper?: OpenidProvider['tamper']
  readonly status: number
  readonly text: RegExp
}

const ATTACKS: readonly Attack[] = [
  {
    name: 'another state',
    back: (url) => url.searchParams.set('state', 'x'),
    status: 400,
    text: /replaced by another one/,
  },
  { name: 'no state', back: (url) => url.searchParams.delete('state'), status: 400, text: /replaced by another one/ },
  {
    name: 'another nonce',
    there: (url) => url.searchParams.set('nonce', 'x'),
    status: 502,
    text: /for another sign-in or another client/,
  },
  {
    name: 'a code for another verifier (injected code)',
    there: (url) => url.searchParams.set('code_challenge', 'x'.repeat(43)),
    status: 502,
    text: /refused the code/,
  },
  {
    name: 'an answer of another issuer (mix-up)',
    back: (url) => url.searchParams.set('iss', 'https://evil.example'),
    status: 502,
    text: /response is not valid: .*iss/,
  },
  {
    name: 'no issuer from a provider that always sends it',
    back: (url) => url.searchParams.delete('iss'),
    status: 502,
    text: /response is not valid: .*iss/,
  },
  {
    name: 'a code twice in the query',
    back: (url) => url.searchParams.append('code', 'x'),
    status: 502,
    text: /Okta|http/,
  },
  {
    name: 'no cookie',
    back: (_, browser) => browser.cookies.delete('__Host-oidc'),
    status: 400,
    text: /has expired, or was already used/,
  },
  {
    name: 'a cookie of another key',
    back: (_, browser) => browser.cookies.set('__Host-oidc', Buffer.alloc(200, 1).toString('base64url')),
    status: 400,
    text: /has expired, or was already used/,
  },
  {
    name: 'an expired cookie',
    back: (_, __, { clock }) => clock.add(10 * MINUTE_MS),
    status: 400,
    text: /has expired, or was already used/,
  },
  {
    name: 'an ID token with another signature',
    tamper: (path, body) => {
      if (path !== '/token') return body
      const { id_token: token, ...rest } = body as { readonly id_token: string }
      const [header, claims, signature = ''] = token.split('.')
      const other = signature.startsWith('A') ? `B${signature.slice(1)}` : `A${signature.slice(1)}`
      return { ...rest, id_token: [header, claims, other].join('.') }
    },
    status: 502,
    text: /signature/i,
  },
  {
    name: 'no ID token',
    tamper: (path, body) => (path === '/token' ? { ...(body as object), id_token: undefined } : body),
    status: 502,
    text: /Okta|http/,
  },
  {
    name: 'an error of the provider',
    back: (url) => {
      url.searchParams.delete('code')
      url.searchParams.set('error', 'access_denied')
      url.searchParams.set('error_description', '<b>not assigned</b>')
    },
    status: 502,
    text: /Okta did not sign you in: access_denied \(&lt;b>not assigned/,
  },
]

for (const { name, there, back, tamper, status, text } of ATTACKS) {
  t.test(`refused: ${name}`, async (t) => {
    const site = await serveBoth(t)
    const { provider } = site
    provider.tamper = tamper
    const browser = site.browser()
    const address = new URL(await start(browser))
    there?.(address)
    const url = new URL(await provider.browser().signIn(address.href), site.origin)
    back?.(url, browser, site)
    const answer = await comeBack(browser, `${url.pathname}${url.search}`)
    t.match(answer, { status, text })
    t.notOk(browser.cookies.has('__Host-session'))
    t.same(site.store.sessions.all(), [])
    t.same(site.store.members.ofOrganization(site.organization.id), [])
    provider.tamper = undefined
    t.equal((await signIn(site)).answer.status, 200, 'the next sign-in succeeds')
  })
}

t.test('a code works only once', async (t) => {
  const site = await serveBoth(t)
  const browser = site.browser()
  const callback = await site.provider.browser().signIn(await start(browser))
  const flow = browser.cookies.get('__Host-oidc') ?? ''
  t.equal((await comeBack(browser, callback)).status, 200)
  t.match(await comeBack(browser, callback), { status: 400, text: /was already used/ })
  const thief = site.browser()
  thief.cookies.set('__Host-oidc', flow)
  t.match(await comeBack(thief, callback), { status: 400, text: /was already used/ })
  t.notOk(thief.cookies.has('__Host-session'))
})

t.test('a callback of a sign-in that another browser began is refused', async (t) => {
  const site = await serveBoth(t)
  const attacker = site.browser()
  const callback = await site.provider.browser().signIn(await start(attacker))
  const victim = site.browser()
  t.equal((await comeBack(victim, callback)).status, 400)
  await start(victim)
  t.equal((await comeBack(victim, callback)).status, 400)
  t.notOk(victim.cookies.has('__Host-session'))
})

t.test('a sign-in begins only from a page of the console', async (t) => {
  const site = await serveBoth(t)
  const browser = site.browser()
  t.equal((await browser.post('/sign-in/provider', {}, { 'sec-fetch-site': 'cross-site' })).status, 403)
  t.equal((await browser.get('/sign-in/provider')).status, 405)
})

t.test('a provider that cannot be used is named on the page', async (t) => {
  const site = await serveBoth(t)
  const { provider, clock } = site
  const browser = site.browser()
  setProvider(site, { ...provider, issuer: provider.issuer.replace('127.0.0.1', 'localhost') })
  t.match(await browser.post('/sign-in/provider'), { status: 502, text: /another issuer/ })
  setProvider(site, { ...provider, clientSecret: 'wrong' })
  t.match((await signIn(site)).answer, { status: 502, text: /refused the client ID or the client secret/ })
  setProvider(site, provider)
  t.equal((await signIn(site)).answer.status, 200)
  await provider.stop()
  t.equal((await browser.post('/sign-in/provider')).status, 200, 'the metadata is in memory')
  clock.add(61 * MINUTE_MS)
  t.match(await browser.post('/sign-in/provider'), { status: 502, text: /the connection is refused/ })
})

t.test('a lost key of secrets is reported, and repaired by entering the secret again', async (t) => {
  const { renameSync, writeFileSync } = await import('node:fs')
  const site = await serveBoth(t)
  const { provider, directory } = site
  renameSync(`${directory}/secrets.key`, `${directory}/secrets.old`)
  t.match(await site.browser().post('/sign-in/provider'), { status: 503, text: /cannot be decrypted/ })
  writeFileSync(`${directory}/secrets.key`, `${'0'.repeat(64)}\n`, { mode: 0o600 })
  site.clock.add(MINUTE_MS)
  t.match(await site.browser().post('/sign-in/provider'), { status: 503, text: /cannot be decrypted/ })
  setProvider(site, provider)
  t.equal((await signIn(site)).answer.status, 200)
})

t.test('many unfinished sign-ins from one network get 429; successful ones do not count', async (t) => {
  const site = await serveBoth(t)
  for (let made = 0; made < 51; made++) t.equal((await signIn(site)).answer.status, 200)
  for (let made = 0; made < 50; made++) await start(site.browser())
  const answer = await site.browser().post('/sign-in/provider')
  t.match(answer, { status: 429, headers: { 'retry-after': /^\d+$/ }, text: /Too many attempts/ })
})

t.test('behind a proxy, unfinished sign-ins of all users together have no limit', async (t) => {
  const site = await serveBoth(t, { limitsNetworks: false })
  for (let made = 0; made < 51; made++) await start(site.browser())
  t.equal((await signIn(site)).answer.status, 200)
})

t.test('callbacks without a sign-in do not use up the sign-ins of a network', async (t) => {
  const site = await serveBoth(t)
  // A picture in any web page makes browsers of the network send these.
  const path = `${callbackPath(site.organization.id)}?code=x&state=y`
  for (let made = 0; made < 51; made++) t.equal((await comeBack(site.browser(), path)).status, 400)
  t.equal((await signIn(site)).answer.status, 200)
})

t.test('a provider cannot pass a browser on to the provider of another organization (mix-up)', async (t) => {
  const site = await serveBoth(t)
  const { provider, origin } = site
  const mallory = makeOrganization(site, 'Mallory')
  const evil = await openidProvider(t, { redirectUri: redirectUriOf({ origin, organization: mallory }) })
  setProvider(site, evil, {}, mallory)
  // The attacker begins a sign-in at Acme, and the victim one at Mallory.
  const attacker = site.browser()
  const wanted = new URL(await start(attacker, { organization: 'Acme' }))
  const victim = site.browser()
  const begun = new URL(await start(victim, { organization: 'Mallory' }))
  t.not(begun.searchParams.get('redirect_uri'), wanted.searchParams.get('redirect_uri'))
  // Mallory's provider sends the victim to Acme's. Not every provider answers with its issuer.
  wanted.searchParams.set('state', begun.searchParams.get('state') ?? '')
  const callback = new URL(await provider.browser().signIn(wanted.href), origin)
  callback.searchParams.delete('iss')
  evil.requests.length = 0
  const answer = await comeBack(victim, callback.pathname + callback.search)
  t.match(answer, { status: 400, text: /replaced by another one/ })
  t.same(evil.requests, [], 'the code does not reach the other provider')
})

t.test('with several organizations a visitor names one, and sees no other', async (t) => {
  const site = await serveBoth(t)
  makeOrganization(site, 'Globex')
  const { text } = await site.browser().get('/sign-in')
  t.match(text, /Sign in with your organization/)
  t.notMatch(text, /Acme|Globex|Okta/)
  t.match((await site.browser().get('/sign-in?organization=Acme')).text, /value="Acme"/)
  for (const organization of ['Acme', 'acme.example', 'Ada@Acme.Example']) {
    const { answer, browser } = await signIn(site, { fields: { organization } })
    t.equal(answer.status, 200, organization)
    t.match((await browser.get('/platforms')).text, /Acme/)
  }
  for (const organization of ['Globex', 'globex.example', 'nobody', '', '@', 'x'.repeat(300)]) {
    const answer = await site.browser().post('/sign-in/provider', { organization })
    t.match(answer, { status: 404, text: /No organization with this name or domain/ }, organization)
  }
})

t.test('a domain or a name that a member claims does not get the sign-ins of another organization', async (t) => {
  const site = await serveBoth(t)
  const { provider, store, clock } = site
  const mallory = makeOrganization(site, 'Mallory')
  setProvider(site, { ...provider, issuer: 'https://evil.example' }, {}, mallory)
  const admin = site.signIn('mallory@mallory.example', 'owner', mallory)
  const claim = (domain: string) => admin.post('/organization-settings', { domain, evidenceWindowDays: '30' })
  const reachesAcme = async (claimed: string): Promise<void> => {
    for (const organization of ['acme.example', 'ada@acme.example', 'Acme']) {
      t.equal((await signIn(site, { fields: { organization } })).answer.status, 200, `${organization}, ${claimed}`)
    }
  }
  t.equal((await claim('acme.example')).status, 303)
  await reachesAcme('the domain is claimed')
  for (const name of ['acme.example', 'ada@acme.example']) {
    new Administration(store, clock).organizations.rename(mallory, name)
    await reachesAcme(`the name ${name} is claimed`)
  }
  await claim('globex.example')
  const unconfirmed = await site.browser().post('/sign-in/provider', { organization: 'ada@globex.example' })
  t.match(
    unconfirmed,
    { status: 404, text: /No organization with this name or domain/ },
    'a domain that nobody confirmed',
  )
  t.match((await admin.get('/sign-in-settings')).text, /of globex\.example, the operator of the service must confirm/)
})

t.test('a domain leads to the organization for which the operator confirmed it', async (t) => {
  const site = await serveBoth(t)
  const { store, clock, organization } = site
  const globex = makeOrganization(site, 'Globex')
  const operator = new Administration(store, clock).organizations
  const ada = new Administration(store, clock, { kind: 'member', name: 'ada' }).organizations
  store.environment.write(() =>
    store.members.put({ organizationId: organization.id, name: 'ada', role: 'owner', createdAtMs: 0 }),
  )
  const status = async (typed: string): Promise<number> =>
    (await site.browser().post('/sign-in/provider', { organization: typed })).status
  t.equal(await status('a@acme.example'), 200)
  ada.set(organization, { domain: 'acme.test' })
  t.same([await status('a@acme.test'), await status('a@acme.example')], [404, 404])
  ada.set(organization, { domain: 'acme.example' })
  t.equal(await status('a@acme.example'), 200, 'the confirmed domain again')
  operator.set(organization, { domain: 'acme.test' })
  t.same([await status('a@acme.test'), await status('a@acme.example')], [200, 404])
  operator.set(globex, { domain: 'acme.test' })
  t.equal(await status('a@acme.test'), 404, 'a domain of two organizations leads to neither')
  t.equal(await status('Acme'), 200)
})

t.test('a session of a provider has no access to other organizations of the user', async (t) => {
  const site = await serveBoth(t)
  const { provider, store, organization } = site
  const globex = makeOrganization(site, 'Globex')
  const browser = site.signIn('ada@acme.example', 'admin')
  site.signIn('ada@acme.example', 'owner', globex)
  const address = addressIn(await browser.post('/account/provider'))
  const connected = await comeBack(browser, await provider.browser().signIn(address))
  t.equal(addressIn(connected), '/account?done=connected')
  const password = store.sessions.all().find(({ providerOrganizationId }) => providerOrganizationId === undefined)
  t.ok(password, 'the session with the password continues')
  const { browser: other } = await signIn(site, { fields: { organization: 'Acme' } })
  t.equal(store.users.all().length, 1, 'the same user')
  t.notMatch((await other.get('/account')).text, /Globex/)
  await other.post('/organization', { organization: globex.id })
  t.match((await other.get('/account')).text, /Acme/)
  t.notMatch((await other.get('/account')).text, /Globex/)
  t.match((await browser.get('/account')).text, /Globex/)
  t.match(
    store.auditLog.ofOrganization(organization.id).map(({ action }) => action),
    ['sign-in.set', 'sign-in.connect', 'session.create'],
  )
})

/** A user with a password in two organizations, who also signed in with the provider of one. */
async function signedInTwice(site: OidcSite) {
  const globex = makeOrganization(site, 'Globex')
  const own = await setUp(site)
  const [user] = site.store.users.all()
  const member = { organizationId: globex.id, name: 'ada@globex.example', role: 'owner', createdAtMs: 0 } as const
  site.store.environment.write(() => site.store.members.put({ ...member, userId: user?.id ?? '' }))
  const address = addressIn(await own.post('/account/provider'))
  await comeBack(own, await site.provider.browser().signIn(address))
  const { browser: viaProvider, answer } = await signIn(site, { fields: { organization: 'Acme' } })
  return { globex, own, viaProvider, status: answer.status, user }
}

t.test('a session of a provider changes neither the password nor the passkeys of its user', async (t) => {
  const site = await serveBoth(t)
  const { own, viaProvider, status, user } = await signedInTwice(site)
  t.equal(status, 200)
  t.match((await own.get('/account')).text, /Change password/)
  t.notMatch((await viaProvider.get('/account')).text, /Change password|passkey/i)
  const password = 'a new and long pass phrase'
  const fields = { current: PASSWORD, password, repeated: password }
  const refused = await viaProvider.post('/account/password', fields)
  t.match(refused, { status: 403, text: /Sign in with your password or a passkey/ })
  for (const path of ['new', '', 'x/name', 'x/remove']) {
    const answer = await viaProvider.post(`/account/passkeys/${path}`.replace(/\/$/, ''), { name: 'x' })
    t.match(answer, { status: 403, text: /Sign in with your password or a passkey/ }, path)
  }
  t.equal(site.store.users.get(user?.id ?? '')?.passwordHash, user?.passwordHash)
  t.equal((await own.post('/account/password', fields)).status, 303)
})

t.test('a session of a provider neither shows nor ends the other sessions of its user', async (t) => {
  const site = await serveBoth(t)
  const { store } = site
  const { globex, own, viaProvider } = await signedInTwice(site)
  const [other] = store.sessions.all().filter(({ providerOrganizationId }) => providerOrganizationId === undefined)
  const id = other?.id ?? ''
  t.match((await own.get('/account')).text, 'end-others', 'the session with the password shows both')
  t.notMatch((await viaProvider.get('/account')).text, /end-others/)
  await viaProvider.post(`/account/sessions/${id}/end`)
  await viaProvider.post('/account/sessions/end-others')
  for (let made = 0; made < SESSIONS_PER_USER_MAX + 1; made++) {
    site.clock.add(SECOND_MS)
    await signIn(site, { fields: { organization: 'Acme' } })
  }
  t.ok(await isSignedIn(own))
  t.same(store.auditLog.ofOrganization(globex.id), [], 'the other organization has no entries of them')
  t.equal((await own.post('/account/sessions/end-others')).status, 303)
  t.equal(store.sessions.all().length, 1, 'the session with the password ends them')
})

t.test('a provider confirms only its own sessions', async (t) => {
  const site = await serveBoth(t)
  const { own } = await signedInTwice(site)
  site.store.environment.write(() => {
    for (const session of site.store.sessions.all()) site.store.sessions.put({ ...session, confirmedAtMs: 0 })
  })
  const url = addressIn(await own.post('/sign-in/confirm', { form: 'x' }))
  const answer = await comeBack(own, await site.provider.browser().signIn(url))
  t.match(answer, { status: 403, text: /You did not sign in with Okta/ })
  t.match((await own.post('/api-keys', { label: 'one', scopes: ['scores:read'] })).text, /Confirm your password/)
})

t.test('an account at the provider belongs to one user', async (t) => {
  const site = await serveBoth(t)
  const { provider } = site
  await signIn(site)
  const bob = site.signIn('bob@acme.example', 'member')
  const address = addressIn(await bob.post('/account/provider'))
  const answer = await comeBack(bob, await provider.browser().signIn(address))
  t.match(answer, { status: 409, text: /is another user already/ })
  await bob.post('/sign-out')
  const late = site.signIn('carl@acme.example', 'member')
  const begun = addressIn(await late.post('/account/provider'))
  provider.account = BOB
  const callback = await provider.browser().signIn(begun)
  await late.post('/sign-out')
  t.match(await comeBack(late, callback), { status: 403, text: /Your session has ended/ })
})

/** A user of the provider whose sign-in is too old for a sensitive change. */
async function signedInBefore(site: OidcSite): Promise<{ browser: Browser; atProvider: ProviderBrowser }> {
  const atProvider = site.provider.browser()
  const { browser } = await signIn(site, { atProvider })
  site.store.environment.write(() => {
    for (const session of site.store.sessions.all()) site.store.sessions.put({ ...session, confirmedAtMs: 0 })
  })
  return { browser, atProvider }
}

t.test('a sensitive change is confirmed at the provider, and what was typed comes back', async (t) => {
  const site = await serveBoth(t)
  const { store, organization } = site
  const { browser, atProvider } = await signedInBefore(site)
  const before = browser.cookies.get('__Host-session')
  const asked = await browser.post('/api-keys', { label: 'grafana "1"', scopes: ['scores:read', 'discovery:read'] })
  t.match(asked, { status: 200, text: /Confirm with Okta/ })
  const [, formId = ''] = /name="form" value="([0-9a-f]+)"/.exec(asked.text) ?? []
  const url = new URL(addressIn(await browser.post('/sign-in/confirm', { form: formId })))
  t.match(Object.fromEntries(url.searchParams), { prompt: 'login', max_age: '0' })
  const confirmed = await comeBack(browser, await atProvider.signIn(url.href))
  const to = addressIn(confirmed)
  t.not(browser.cookies.get('__Host-session'), before, 'another cookie value')
  const form = (await browser.get(to)).text
  t.match(form, /You are confirmed/)
  t.match(form, /action="\/api-keys"/)
  t.match(form, /name="label" value="grafana &quot;1&quot;"/)
  t.match(form, /value="scores:read".*value="discovery:read"/s)
  const fields = { label: 'grafana "1"', scopes: ['scores:read', 'discovery:read'] }
  t.match(await browser.submit('/api-keys', fields), { status: 200, text: /svc_pk_/ })
  t.equal(store.apiKeys.activeCount(organization.id, site.clock.nowMs()), 1)
  const other = await signIn(site)
  t.equal((await other.browser.get(to)).status, 404, 'another session does not see the form')
})

t.test('a confirmation needs a new sign-in of the same person', async (t) => {
  const site = await serveBoth(t)
  const { provider, clock } = site
  const { browser, atProvider } = await signedInBefore(site)
  const ask = async (): Promise<URL> => {
    const { text } = await browser.post('/api-keys', { label: 'one', scopes: ['scores:read'] })
    const [, form = ''] = /name="form" value="([0-9a-f]+)"/.exec(text) ?? []
    return new URL(addressIn(await browser.post('/sign-in/confirm', { form })))
  }
  // The provider's clock is that of this machine: the sign-in at the provider becomes old.
  clock.add(5 * MINUTE_MS)
  const url = await ask()
  url.searchParams.delete('prompt')
  url.searchParams.delete('max_age')
  const reused = await comeBack(browser, await atProvider.signIn(url.href))
  t.match(reused, { status: 403, text: /did not ask you to sign in again/ })
  t.match(reused.text, /href="\/sign-in\/continue\?form=/, 'the form is not lost')
  clock.set(Date.now())
  provider.account = { ...BOB, claims: { ...BOB.claims, groups: ['it'] } }
  const other = await comeBack(browser, await provider.browser().signIn((await ask()).href))
  t.match(other, { status: 403, text: /as somebody else/ })
  const again = await browser.submit('/api-keys', { label: 'one', scopes: ['scores:read'] })
  t.match(again.text, /Confirm with Okta/, 'still not confirmed')
})

t.test('removed settings end sessions of the provider, and flows that began before', async (t) => {
  const site = await serveBoth(t)
  const { provider, store, clock, organization } = site
  const { browser } = await signIn(site)
  const late = site.browser()
  const callback = await provider.browser().signIn(await start(late))
  new Administration(store, clock).signIn.remove(organization)
  t.notOk(await isSignedIn(browser))
  t.match(await comeBack(late, callback), { status: 409, text: /changed meanwhile/ })
  t.notMatch((await site.browser().get('/sign-in')).text, /Okta/)
  t.equal((await site.browser().post('/sign-in/provider')).status, 404)
})
