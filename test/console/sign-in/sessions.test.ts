import t from 'tap'
import type { Route } from '../../../console/http/router.ts'
import { ROUTES } from '../../../console/routes.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../engine/kernel/process/clock.ts'
import { isSignedIn, PASSWORD, setUp } from '../../support/accounts.ts'
import { Authenticator } from '../../support/authenticator.ts'
import { type Browser, serveConsole, type TestConsole } from '../../support/console.ts'
import { ORIGIN, servePasskeys, signInByPasskey, withPasskey } from '../../support/passkeys.ts'

const NAME = 'ada@acme.example'

/** Actions on secrets, members and sign-in settings. */
const isSensitive = (access: string): boolean => /^(api-key|token|member|sign-in)\.(?!read$)/.test(access)
const CONFIRMED = ROUTES.filter(({ confirmed }) => confirmed === true)
const pathOf = ({ path }: Route): string => path.replace(/:\w+/g, 'none')

/** A browser that sends this session cookie. */
function withCookie(site: TestConsole, value: string | undefined): Browser {
  const browser = site.browser()
  browser.cookies.set('__Host-session', String(value))
  return browser
}

/** All that a form could have changed, except when sessions were used. */
function contents({ store, organization }: TestConsole): string {
  const secrets = [store.apiKeys, store.monitoringTokens].map((family) => family.ofOrganization(organization.id))
  const users = store.users.all()
  const passkeys = users.map(({ id }) => store.passkeys.ofUser(id))
  const members = store.members.ofOrganization(organization.id)
  return JSON.stringify([secrets, users, passkeys, members, store.auditLog.ofOrganization(organization.id)])
}

t.test('every change of keys, tokens, members and sign-in settings needs a confirmation', (t) => {
  const sensitive = ROUTES.filter(({ method, access }) => method === 'POST' && isSensitive(access))
  t.ok(sensitive.length > 5)
  for (const { path, confirmed } of sensitive) t.ok(confirmed, path)
  for (const { method, path } of CONFIRMED) t.equal(method, 'POST', path)
  t.end()
})

for (const route of CONFIRMED) {
  t.test(`after ten minutes, ${route.path} asks for a confirmation, and changes nothing before it`, async (t) => {
    const site = await servePasskeys(t)
    const owner = await setUp(site)
    const path = pathOf(route)
    const fields = { label: 'typed "before"', role: 'viewer' }
    site.clock.add(10 * MINUTE_MS - SECOND_MS)
    t.notMatch((await owner.post(path, fields)).text, /Confirm your password/, 'a second before')
    site.clock.add(SECOND_MS)
    const before = contents(site)
    const asked = await owner.post(path, fields)
    t.match(asked, { status: 200, text: /<h1>Confirm your password/ })
    t.match(asked.text, `action="${path}"`)
    t.match(asked.text, /name="label" value="typed &quot;before&quot;"/)
    for (const proof of [{ 'confirm-password': 'wrong' }, { 'confirm-passkey': '{}' }]) {
      t.equal((await owner.post(path, { ...fields, ...proof })).status, 403)
    }
    t.equal(contents(site), before)
    t.notMatch((await owner.post(path, { ...fields, 'confirm-password': PASSWORD })).text, /Confirm your password/)
  })
}

t.test('fixation: a sign-in by passkey never keeps the cookie that the browser sent', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  const planted = owner.cookies.get('__Host-session')
  for (const value of ['planted', planted]) {
    const victim = withCookie(site, value)
    t.equal((await signInByPasskey(victim, authenticator)).status, 303)
    t.not(victim.cookies.get('__Host-session'), value)
    t.ok(await isSignedIn(victim))
  }
  t.notOk(await isSignedIn(owner), 'the session that the browser had before has ended')
})

t.test('a cookie is invalid after its session ended for any reason', async (t) => {
  const site = await serveConsole(t)
  const ends: readonly {
    readonly name: string
    readonly end: (browser: Browser, other: Browser) => Promise<unknown>
  }[] = [
    { name: 'sign-out', end: (browser) => browser.post('/sign-out') },
    {
      name: 'revoked elsewhere',
      end: (_, other) => other.post('/account/sessions/end-others'),
    },
    {
      name: 'a new password',
      end: (_, other) =>
        other.post('/account/password', { current: PASSWORD, password: `${PASSWORD} 2`, repeated: `${PASSWORD} 2` }),
    },
  ]
  await setUp(site)
  for (const { name, end } of ends) {
    const [browser, other] = [site.browser(), site.browser()]
    for (const each of [browser, other]) await each.post('/sign-in', { name: NAME, password: PASSWORD })
    const cookie = browser.cookies.get('__Host-session')
    t.ok(await isSignedIn(withCookie(site, cookie)), name)
    await end(browser, other)
    const late = withCookie(site, cookie)
    t.notOk(await isSignedIn(late), name)
    t.equal((await late.post('/monitoring-tokens', { label: 'late' })).status, 401)
    t.equal((await late.post('/account/sessions/end-others')).status, 401)
  }
  t.same(site.store.monitoringTokens.ofOrganization(site.organization.id), [])
})

t.test('a confirmation gives a new cookie, not a longer session', async (t) => {
  const site = await serveConsole(t)
  const browser = await setUp(site)
  const cookies = new Set<string>()
  for (let minutes = 0; minutes < 12 * 60 - 20; minutes += 20) {
    cookies.add(String(browser.cookies.get('__Host-session')))
    site.clock.add(20 * MINUTE_MS)
    const answer = await browser.submit('/monitoring-tokens', { label: `${minutes}`, 'confirm-password': PASSWORD })
    t.equal(answer.status, 200)
  }
  t.equal(cookies.size, 35, 'each confirmation changes the cookie')
  for (const cookie of cookies) t.notOk(await isSignedIn(withCookie(site, cookie)))
  t.ok(await isSignedIn(browser))
  site.clock.add(20 * MINUTE_MS)
  t.notOk(await isSignedIn(browser), '12 hours after the sign-in')
})

t.test('an idle session ends even if another browser of the user is busy', async (t) => {
  const site = await serveConsole(t)
  const idle = await setUp(site)
  const busy = site.browser()
  await busy.post('/sign-in', { name: NAME, password: PASSWORD })
  for (let minutes = 0; minutes < 30; minutes += 10) {
    site.clock.add(10 * MINUTE_MS)
    t.ok(await isSignedIn(busy))
  }
  t.notOk(await isSignedIn(idle))
  site.clock.add(-2 * HOUR_MS)
  t.ok(await isSignedIn(busy), 'the clock was set back')
})

t.test('of two confirmations at once with one cookie, one continues the session', async (t) => {
  const site = await serveConsole(t)
  const owner = await setUp(site)
  site.clock.add(10 * MINUTE_MS)
  const cookie = owner.cookies.get('__Host-session')
  const browsers = [withCookie(site, cookie), withCookie(site, cookie)]
  const answers = await Promise.all(
    browsers.map((browser, at) =>
      browser.submit('/monitoring-tokens', { label: `${at}`, 'confirm-password': PASSWORD }),
    ),
  )
  const [confirmed, other = 0] = answers.map(({ status }) => status).toSorted()
  t.equal(confirmed, 200)
  // 401 if it arrived after the first had ended the cookie.
  t.ok([401, 404].includes(other), `${other}`)
  t.equal(site.store.monitoringTokens.ofOrganization(site.organization.id).length, 1)
  const signedIn = await Promise.all(browsers.map(isSignedIn))
  t.same(signedIn.toSorted(), [false, true])
  t.equal(site.store.sessions.all().length, 1)
})

t.test('many requests at once share a session', async (t) => {
  const site = await serveConsole(t)
  const owner = await setUp(site)
  const answers = await Promise.all(Array.from({ length: 50 }, () => isSignedIn(owner)))
  t.ok(answers.every((signedIn) => signedIn))
  t.equal(site.store.sessions.all().length, 1)
})

t.test('a passkey of a user who signed out elsewhere still needs its own sign-in', async (t) => {
  const site = await servePasskeys(t)
  const { owner, authenticator } = await withPasskey(site)
  await owner.post('/sign-out')
  t.equal((await owner.post('/account/passkeys/new')).status, 401)
  const passkey = new Authenticator(ORIGIN).create({
    ...{ rp: { id: 'posture.example' }, user: { id: 'AQ', name: NAME }, challenge: 'AQ', excludeCredentials: [] },
  })
  t.equal((await owner.post('/account/passkeys', { name: 'late', passkey })).status, 401)
  t.equal((await signInByPasskey(owner, authenticator)).status, 303)
  t.ok(await isSignedIn(owner))
})
