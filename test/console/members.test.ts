import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { serveConsole, type TestConsole } from '../support/console.ts'

const HOUR_MS = 3_600_000
const INVITATION = /(https:\/\/localhost:\d+\/setup)#([0-9a-f]{64})/

/** The secret of the link that the page shows. */
function secretIn(text: string): string {
  return INVITATION.exec(text)?.[2] ?? ''
}

/** Opens a link as a new user, and returns the status. */
async function accept(site: TestConsole, secret: string): Promise<number> {
  const password = 'correct horse battery staple'
  const { status } = await site.browser().post('/setup/account', { secret, password, repeated: password })
  return status
}

t.test('an owner invites a member by a link that is shown once and works once', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, origin } = site
  const owner = site.signIn('olga@acme.example', 'owner')
  const given = { name: 'ada@acme.example', role: 'admin' }
  const answer = await owner.submit('/members', given, { 'accept-encoding': 'gzip' })
  t.match(answer, { status: 200, headers: { 'cache-control': 'no-store', 'content-encoding': undefined } })
  const [, url, secret = ''] = INVITATION.exec(answer.text) ?? []
  t.equal(url, `${origin}/setup`)
  t.match(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' }), {
    role: 'admin',
    userId: undefined,
  })
  const page = (await owner.get('/members')).text
  t.notMatch(page, INVITATION)
  t.match(page, /Cannot sign in yet.*ada@acme\.example.*expires/s)
  const admin = site.signIn('adam@acme.example', 'admin')
  t.notMatch((await admin.get('/members')).text, /action="\/members/, 'only owners see the forms')
  t.equal((await admin.submit('/members', given)).status, 403)
  t.equal(await accept(site, secret), 303)
  t.ok(store.members.get({ organizationId: organization.id, name: 'ada@acme.example' })?.userId)
  t.not(await accept(site, secret), 303, 'the link works once')
  t.notMatch((await owner.get('/members')).text, /Cannot sign in yet/)
  t.match(await owner.submit('/members', given), { status: 409, text: /value="ada@acme\.example"/ })
  t.match(await owner.submit('/members', { name: ' ', role: 'admin' }), { status: 400, text: /Enter a name/ })
  t.match(await owner.submit('/members', { name: 'x', role: 'king' }), { status: 400, text: /Choose a role/ })
  t.match(await owner.rows('/members.csv'), [
    { Name: 'ada@acme.example', Role: 'admin', 'Can sign in': 'yes', 'Invited until': '' },
    { Name: 'adam@acme.example' },
    { Name: 'olga@acme.example' },
  ])
})

t.test('an invitation is withdrawn, replaced, and expires', async (t) => {
  const site = await serveConsole(t)
  const { clock } = site
  const owner = site.signIn('olga@acme.example', 'owner')
  const first = secretIn((await owner.submit('/members', { name: 'ada', role: 'viewer' })).text)
  t.equal((await owner.post('/members/ada/withdraw')).status, 303)
  t.match((await owner.get('/members')).text, /not invited/)
  t.equal((await owner.post('/members/ada/withdraw')).status, 404)
  t.not(await accept(site, first), 303)
  const second = secretIn((await owner.submit('/members/ada/invite')).text)
  const third = secretIn((await owner.submit('/members/ada/invite')).text)
  t.not(await accept(site, second), 303, 'a new link replaces the one before')
  clock.add(49 * HOUR_MS)
  const later = site.signIn('olga@acme.example', 'owner')
  t.match((await later.get('/members')).text, /expired/)
  t.not(await accept(site, third), 303)
  t.match(await later.submit('/members/olga%40acme.example/invite'), { status: 409, text: /can sign in already/ })
})

t.test('the invitation of a removed member does not make anyone the next member of that name', async (t) => {
  const site = await serveConsole(t)
  const { store, organization, clock } = site
  const owner = site.signIn('olga@acme.example', 'owner')
  const secret = secretIn((await owner.submit('/members', { name: 'Ada', role: 'viewer' })).text)
  t.equal((await owner.post('/members/Ada/remove')).status, 303)
  new Administration(store, clock).members.add(organization, 'ada', 'owner')
  t.not(await accept(site, secret), 303)
  t.equal(store.members.get({ organizationId: organization.id, name: 'ada' })?.userId, undefined)
})
