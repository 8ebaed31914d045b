import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { OverloadError } from '../../../console/change-sender.ts'
import { redirect } from '../../../console/http/answer.ts'
import { form } from '../../../console/http/router.ts'
import { ROUTES } from '../../../console/routes.ts'
import { Administration } from '../../../engine/admin/administration.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { isSignedIn, PASSWORD, setUp } from '../../support/accounts.ts'
import { serveConsole } from '../../support/console.ts'
import { makeOrganization } from '../../support/store.ts'
import { until } from '../../support/wait.ts'

const NEXT_PASSWORD = 'another horse another battery'

t.test('a setup link makes the first owner, once', async (t) => {
  const site = await serveConsole(t)
  const { secret, expiresAtMs } = new Administration(site.store, site.clock).accountLinks.setup(site.organization)
  t.match(secret, /^[0-9a-f]{64}$/)
  t.equal(expiresAtMs, site.clock.nowMs() + 30 * MINUTE_MS)
  const browser = site.browser()
  t.match((await browser.get('/setup')).text, /data-from-fragment/)
  const second = await browser.post('/setup', { secret: `https://localhost:8444/setup#${secret}` })
  t.match(second, { status: 200, text: /Organization: Acme/ })
  const fields = { secret, name: 'ada@acme.example', password: PASSWORD, repeated: PASSWORD }
  t.match(await browser.post('/setup/account', { ...fields, password: 'password1234' }), {
    status: 400,
    text: /value="ada@acme.example".*too common/s,
  })
  t.match(await browser.post('/setup/account', { ...fields, repeated: 'x' }), { status: 400, text: /differ/ })
  const done = await browser.post('/setup/account', fields)
  t.match(done, { status: 303, headers: { location: '/' } })
  t.match(done.headers['set-cookie'], [
    /^__Host-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/,
    /^__Host-browser=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=\d+$/,
  ])
  t.ok(await isSignedIn(browser))
  t.match(site.store.members.get({ organizationId: site.organization.id, name: 'ada@acme.example' }), { role: 'owner' })
  t.match(await site.browser().post('/setup/account', { ...fields, name: 'eve' }), {
    status: 404,
    text: /used already/,
  })
  t.match(await site.browser().post('/setup', { secret }), { status: 404 })
  const stored = JSON.stringify([site.store.users.all(), site.store.sessions.all(), site.store.auditLog.all()])
  t.notMatch(stored, new RegExp(`${PASSWORD}|${secret}|${browser.cookies.get('__Host-session')}`))
})

t.test('a setup link expires', async (t) => {
  const site = await serveConsole(t)
  const { secret } = new Administration(site.store, site.clock).accountLinks.setup(site.organization)
  site.clock.add(30 * MINUTE_MS)
  t.match(await site.browser().post('/setup', { secret }), { status: 404, text: /expired/ })
  const fields = { secret, name: 'ada', password: PASSWORD, repeated: PASSWORD }
  t.equal((await site.browser().post('/setup/account', fields)).status, 404)
  t.ok(site.store.users.isEmpty())
})

t.test('of two browsers that use one setup link at once, one succeeds', async (t) => {
  const site = await serveConsole(t)
  const { secret } = new Administration(site.store, site.clock).accountLinks.setup(site.organization)
  const answers = await Promise.all(
    ['ada', 'eve'].map((name) =>
      site.browser().post('/setup/account', { secret, name, password: PASSWORD, repeated: PASSWORD }),
    ),
  )
  t.same(answers.map(({ status }) => status).toSorted(), [303, 404])
  t.equal(site.store.users.all().length, 1)
})

t.test('a setup link without an organization creates one', async (t) => {
  const site = await serveConsole(t)
  const { secret } = new Administration(site.store, site.clock).accountLinks.setup(undefined)
  const browser = site.browser()
  t.match((await browser.post('/setup', { secret })).text, /name="domain"/)
  const fields = { secret, name: 'bob', password: PASSWORD, repeated: PASSWORD, domain: 'globex.example' }
  t.match(await browser.post('/setup/account', { ...fields, organization: 'ACME' }), { status: 409, text: /exists/ })
  t.match(await browser.post('/setup/account', { ...fields, organization: '' }), { status: 400 })
  const noDomain = { ...fields, organization: 'Globex', domain: 'not a domain' }
  t.match(await browser.post('/setup/account', noDomain), {
    status: 400,
    text: /expected a domain such as acme\.example/,
  })
  const written = { ...fields, organization: 'Globex', domain: 'Globex.Example.' }
  t.equal((await browser.post('/setup/account', written)).status, 303)
  t.equal(site.store.organizations.find('Globex')?.domain, 'globex.example', 'in its canonical form')
  t.match((await browser.get('/platforms')).text, /Globex/)
  t.notMatch((await browser.get('/platforms')).text, /Acme/)
})

t.test('while too many passwords wait for their hash, a sign-in gets 503', async (t) => {
  const site = await serveConsole(t)
  await setUp(site)
  const credentials = { name: 'ada@acme.example', password: PASSWORD, to: '/platforms' }
  let isFull = true
  const fill = async (): Promise<void> => {
    while (isFull) {
      await site.passwords.verify('', 'guess').catch((error: unknown) => {
        if (!(error instanceof OverloadError)) throw error
      })
      await nextTurn()
    }
  }
  const filling = Array.from({ length: 64 }, fill)
  const busy = await until('an answer while no password can wait', async () => {
    const answer = await site.browser().post('/sign-in', credentials)
    return answer.status === 503 && answer
  })
  t.match(busy.text, /The service is busy/)
  isFull = false
  await Promise.all(filling)
  t.match(await site.browser().post('/sign-in', credentials), { status: 303, headers: { location: '/platforms' } })
})

t.test('sign in and out; a session that was ended is not used again', async (t) => {
  const site = await serveConsole(t)
  await setUp(site)
  const browser = site.browser()
  const wrong = await browser.post('/sign-in', { name: 'ada@acme.example', password: 'wrong', to: '/platforms?q=a' })
  t.match(wrong, { status: 403, text: /The name or the password is wrong/ })
  t.match(wrong.text, /value="ada@acme.example"/, 'what was typed is kept')
  t.notMatch(wrong.text, /value="wrong"/)
  const unknown = await browser.post('/sign-in', { name: 'nobody', password: 'wrong' })
  t.match(unknown, { status: 403, text: /The name or the password is wrong/ })
  const signedIn = await browser.post('/sign-in', {
    name: 'ADA@acme.example',
    password: PASSWORD,
    to: '/platforms?q=a',
  })
  t.match(signedIn, { status: 303, headers: { location: '/platforms?q=a' } })
  t.ok(await isSignedIn(browser))
  const cookie = String(browser.cookies.get('__Host-session'))
  await browser.post('/sign-out')
  t.notOk(await isSignedIn(browser))
  browser.cookies.set('__Host-session', cookie)
  t.notOk(await isSignedIn(browser), 'the old cookie is invalid')
})

t.test('fixation: a sign-in never keeps the cookie that the browser sent', async (t) => {
  const site = await serveConsole(t)
  const first = await setUp(site)
  const planted = String(first.cookies.get('__Host-session'))
  const victim = site.browser()
  victim.cookies.set('__Host-session', 'planted')
  await victim.post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
  t.not(victim.cookies.get('__Host-session'), 'planted')
  const other = site.browser()
  other.cookies.set('__Host-session', planted)
  await other.post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
  t.not(other.cookies.get('__Host-session'), planted)
  t.notOk(await isSignedIn(first), 'the session that the browser had before has ended')
})

t.test('a session ends after 30 minutes without a request, and after 12 hours', async (t) => {
  const site = await serveConsole(t)
  const browser = await setUp(site)
  for (let minutes = 0; minutes < 11 * 60; minutes += 29) {
    site.clock.add(29 * MINUTE_MS)
    t.ok(await isSignedIn(browser), `after ${minutes + 29} minutes`)
  }
  const idle = await setUp(site, 'bob')
  site.clock.add(30 * MINUTE_MS)
  t.notOk(await isSignedIn(idle))
  t.ok(site.clock.nowMs() > 0)
  const busy = site.browser()
  await busy.post('/sign-in', { name: 'bob', password: PASSWORD })
  const began = site.clock.nowMs()
  while (site.clock.nowMs() - began < 12 * HOUR_MS - 20 * MINUTE_MS) {
    site.clock.add(20 * MINUTE_MS)
    t.ok((await isSignedIn(busy)) || site.clock.nowMs() - began >= 12 * HOUR_MS)
  }
  site.clock.add(20 * MINUTE_MS)
  t.notOk(await isSignedIn(busy))
})

t.test('several sessions work side by side; one is revoked, then all others', async (t) => {
  const site = await serveConsole(t)
  const first = await setUp(site)
  const others = await Promise.all(
    ['Firefox/140.0 Linux', 'Chrome/140 Windows'].map(async (agent) => {
      const browser = site.browser()
      await browser.post('/sign-in', { name: 'ada@acme.example', password: PASSWORD }, { 'user-agent': agent })
      return browser
    }),
  )
  t.same(await Promise.all([first, ...others].map(isSignedIn)), [true, true, true])
  const account = await first.get('/account')
  t.match(account.text, /Firefox on Linux/)
  t.match(account.text, /Chrome on Windows/)
  const [, id = ''] = /sessions\/([0-9a-f-]+)\/end"><button[^>]*Firefox/.exec(account.text) ?? []
  t.equal((await first.post(`/account/sessions/${id}/end`)).status, 303)
  t.same(await Promise.all([first, ...others].map(isSignedIn)), [true, false, true])
  await first.post('/account/sessions/end-others')
  t.same(await Promise.all([first, ...others].map(isSignedIn)), [true, false, false])
})

t.test("a user cannot end another user's session", async (t) => {
  const site = await serveConsole(t)
  const ada = await setUp(site)
  const bob = await setUp(site, 'bob')
  const [session] = site.store.sessions.all().filter(({ userId }) => site.store.users.get(userId)?.name === 'bob')
  await ada.post(`/account/sessions/${session?.id}/end`)
  t.ok(await isSignedIn(bob))
})

t.test('a user has at most 20 sessions; the one used longest ago ends', async (t) => {
  const site = await serveConsole(t)
  const first = await setUp(site)
  for (let at = 0; at < 20; at++) {
    site.clock.add(1000)
    await site.browser().post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
  }
  t.notOk(await isSignedIn(first))
  t.equal(site.store.sessions.all().length, 20)
})

t.test('five wrong passwords lock an account, but not a browser that signed in before', async (t) => {
  const site = await serveConsole(t)
  const owner = await setUp(site)
  await owner.post('/sign-out')
  const guess = () => site.browser().post('/sign-in', { name: 'ada@acme.example', password: 'wrong' })
  const statuses = (await Promise.all(Array.from({ length: 8 }, guess))).map(({ status }) => status)
  t.same(statuses.toSorted(), [403, 403, 403, 403, 403, 429, 429, 429])
  const limited = await site.browser().post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
  t.match(limited, { status: 429, headers: { 'retry-after': '900' }, text: /Too many attempts/ })
  t.equal((await owner.post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })).status, 303)
  site.clock.add(15 * MINUTE_MS)
  t.equal((await site.browser().post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })).status, 303)
})

t.test(
  'wrong passwords of one address lock every new browser out, unless all have the address of a proxy',
  async (t) => {
    for (const limitsNetworks of [true, false]) {
      const site = await serveConsole(t, { limitsNetworks })
      await setUp(site)
      const guess = (name: string) => site.browser().post('/sign-in', { name, password: 'wrong' })
      for (let at = 0; at < 20; at++) t.equal((await guess(`user-${at}`)).status, 403)
      const { status } = await site.browser().post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
      t.equal(status, limitsNetworks ? 429 : 303)
      for (let at = 0; at < 5; at++) await guess('eve')
      t.equal((await guess('eve')).status, 429, 'the limit of an account stays')
    }
  },
)

t.test('a password that no account can have is refused without being counted', async (t) => {
  const site = await serveConsole(t)
  const name = 'ada@acme.example'
  await setUp(site, name)
  const guesser = site.browser()
  for (let at = 0; at < 10; at++) {
    const answer = await guesser.post('/sign-in', { name, password: 'x'.repeat(1025) })
    t.match(answer, { status: 403, text: /The name or the password is wrong/ })
  }
  t.equal((await guesser.post('/sign-in', { name, password: PASSWORD })).status, 303)
})

t.test('a browser of another user has no allowance', async (t) => {
  const site = await serveConsole(t)
  await setUp(site)
  const eve = await setUp(site, 'eve')
  const statuses: number[] = []
  for (let at = 0; at < 7; at++) {
    statuses.push((await eve.post('/sign-in', { name: 'ada@acme.example', password: 'wrong' })).status)
  }
  t.same(statuses, [403, 403, 403, 403, 403, 429, 429])
})

t.test('a new password ends the other sessions, and the old password is invalid', async (t) => {
  const site = await serveConsole(t)
  const first = await setUp(site)
  const second = site.browser()
  await second.post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
  const fields = { current: PASSWORD, password: NEXT_PASSWORD, repeated: NEXT_PASSWORD }
  t.match(await first.post('/account/password', { ...fields, current: 'wrong' }), { status: 403 })
  t.match(await first.post('/account/password', { ...fields, password: 'short' }), { status: 400 })
  t.match(await first.post('/account/password', fields), { headers: { location: '/account?done=password' } })
  t.same(await Promise.all([first, second].map(isSignedIn)), [true, false])
  t.equal((await second.post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })).status, 403)
  t.equal((await second.post('/sign-in', { name: 'ada@acme.example', password: NEXT_PASSWORD })).status, 303)
})

t.test('an operator can create a link for a new password', async (t) => {
  const site = await serveConsole(t)
  const first = await setUp(site)
  const { secret } = new Administration(site.store, site.clock).accountLinks.password('ada@acme.example')
  const browser = site.browser()
  const fields = { secret, password: NEXT_PASSWORD, repeated: NEXT_PASSWORD }
  t.match((await browser.post('/setup', { secret })).text, /Set a new password/)
  t.equal((await browser.post('/setup/account', fields)).status, 303)
  t.same(await Promise.all([first, browser].map(isSignedIn)), [false, true])
})

t.test('an invitation makes a member a user; a user who is signed in keeps the account', async (t) => {
  const site = await serveConsole(t)
  await setUp(site)
  const other = makeOrganization(site, 'Globex')
  const administration = new Administration(site.store, site.clock)
  administration.members.add(site.organization, 'vic@acme.example', 'viewer')
  administration.members.add(other, 'victor', 'member')
  const first = administration.accountLinks.invite(site.organization, 'vic@acme.example')
  const vic = site.browser()
  const newUser = { password: PASSWORD, repeated: PASSWORD }
  t.equal((await vic.post('/setup/account', { secret: first.secret, ...newUser })).status, 303)
  t.match((await vic.get('/platforms')).text, /Acme/)
  const second = administration.accountLinks.invite(other, 'victor')
  t.match((await vic.post('/setup', { secret: second.secret })).text, /You are signed in as vic@acme.example/)
  t.equal((await vic.post('/setup/account', { secret: second.secret })).status, 303)
  t.match((await vic.get('/platforms')).text, /<title>Platforms · Globex/, 'the organization of the link')
  await vic.post('/organization', { organization: site.organization.id })
  t.match((await vic.get('/platforms')).text, /<title>Platforms · Acme/)
  await vic.post('/sign-out')
  await vic.post('/sign-in', { name: 'vic@acme.example', password: PASSWORD })
  t.match((await vic.get('/platforms')).text, /<option value="[^"]+">Globex/)
  await vic.post('/organization', { organization: other.id })
  t.match((await vic.get('/platforms')).text, /<title>Platforms · Globex/)
  administration.members.remove(other, 'victor')
  t.match((await vic.get('/platforms')).text, /<title>Platforms · Acme/)
  administration.members.remove(site.organization, 'vic@acme.example')
  t.notOk(await isSignedIn(vic), 'a user without an organization is signed out')
  t.equal(site.store.users.byName('vic@acme.example'), undefined)
})

t.test("an organization that is not the user's cannot be chosen", async (t) => {
  const site = await serveConsole(t)
  const ada = await setUp(site)
  const other = makeOrganization(site, 'Globex')
  await ada.post('/organization', { organization: other.id })
  t.match((await ada.get('/platforms')).text, /<title>Platforms · Acme/)
})

t.test('a sensitive change asks for the password again after ten minutes, and keeps what was typed', async (t) => {
  const seen: string[] = []
  const change = form(
    '/sensitive',
    'signed-in',
    ({ request }) => {
      seen.push(...request.fields.all('label'))
      return redirect('/done')
    },
    { confirmed: true },
  )
  const site = await serveConsole(t, { routes: [...ROUTES, change] })
  const ada = await setUp(site)
  t.match(await ada.post('/sensitive', { label: 'one' }), { headers: { location: '/done' } })
  site.clock.add(10 * MINUTE_MS)
  const asked = await ada.post('/sensitive', { label: ['two', '"three"'] })
  t.match(asked, { status: 200, text: /Confirm your password/ })
  t.match(asked.text, /name="label" value="two"/)
  t.same(seen, ['one'])
  const fields = { label: ['two', '"three"'] }
  t.match(await ada.post('/sensitive', { ...fields, 'confirm-password': 'wrong' }), { status: 403 })
  const before = ada.cookies.get('__Host-session')
  const done = await ada.post('/sensitive', { ...fields, 'confirm-password': PASSWORD })
  t.match(done, { headers: { location: '/done' } })
  t.same(seen, ['one', 'two', '"three"'])
  t.not(ada.cookies.get('__Host-session'), before, 'the cookie is another one')
  const old = site.browser()
  old.cookies.set('__Host-session', String(before))
  t.notOk(await isSignedIn(old))
  t.match(await ada.post('/sensitive', { label: 'four' }), { headers: { location: '/done' } })
})

t.test('sign-ins, links and passwords are in the audit log', async (t) => {
  const site = await serveConsole(t)
  const ada = await setUp(site)
  await ada.post('/sign-out')
  const entries = site.store.auditLog.ofOrganization(site.organization.id)
  t.same(
    entries.map(({ actor, action, subject }) => [actor, action, subject]),
    [
      ['operator operator', 'setup-link.create', 'Acme'],
      ['setup link', 'member.accept', 'ada@acme.example'],
      ['member ada@acme.example', 'session.create', 'ada@acme.example'],
      ['member ada@acme.example', 'session.end', 'ada@acme.example'],
    ],
  )
})

t.test('a browser that is not used for 90 days loses its allowance', async (t) => {
  const site = await serveConsole(t)
  await setUp(site)
  site.clock.add(91 * DAY_MS)
  await site.browser().post('/sign-in', { name: 'ada@acme.example', password: PASSWORD })
  t.equal(site.store.users.byName('ada@acme.example')?.browsers.length, 1)
})
