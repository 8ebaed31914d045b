import t from 'tap'
import { Administration } from '../../engine/admin/administration.ts'
import { SAVED_VIEWS_MAX } from '../../engine/limits.ts'
import { scanWith, serveConsole } from '../support/console.ts'
import { makeOrganization } from '../support/store.ts'

t.test('a page with its filters is saved by name for the organization, opened and removed', async (t) => {
  const site = await serveConsole(t)
  scanWith(site, ['claude.ai'])
  const { store, organization } = site
  const member = site.signIn('m', 'member')
  const viewer = site.signIn('v', 'viewer')
  t.notMatch((await member.get('/platforms')).text, /Saved views/, 'no filter, no view')
  t.match((await member.get('/platforms?state=waiting&done=undone&page=2')).text, /name="query" value="state=waiting"/)
  t.notMatch((await viewer.get('/platforms?state=waiting')).text, /Saved views/)
  const view = { name: ' Waiting <b> ', path: '/platforms', query: 'state=waiting&page=2&q=' }
  t.equal((await viewer.post('/saved-views', view)).status, 403)
  t.match(await member.post('/saved-views', view), { status: 303, headers: { location: '/platforms?state=waiting' } })
  const listed = (await viewer.get('/platforms')).text
  t.match(
    listed,
    /<nav[^>]*aria-label="Saved views"><a class="break" href="\/platforms\?state=waiting">Waiting &lt;b></,
  )
  t.notMatch(listed, /Save this view|Remove views/)
  t.match((await member.get('/platforms?state=waiting')).text, /aria-current="page">Waiting &lt;b>/)
  t.notMatch((await member.get('/platforms?state=waiting')).text, /Save this view/)
  t.notMatch((await member.get('/clients')).text, /Waiting &lt;b>/, 'on its page only')
  const foreign = site.signIn('f', 'owner', makeOrganization(site, 'Globex'))
  t.notMatch((await foreign.get('/platforms')).text, /Waiting &lt;b>/)
  t.equal((await foreign.post('/saved-views/remove', { name: 'Waiting <b>', path: '/platforms' })).status, 404)
  t.equal((await viewer.post('/saved-views/remove', { name: 'Waiting <b>', path: '/platforms' })).status, 403)
  t.match(await member.post('/saved-views/remove', { name: 'WAITING <b>', path: 'https://other.example' }), {
    headers: { location: '/' },
  })
  t.same(store.savedViews.ofOrganization(organization.id), [])
  t.match(
    store.auditLog
      .ofOrganization(organization.id)
      .filter(({ action }) => action.startsWith('view.'))
      .map(({ action, subject, actor }) => `${action} ${subject} ${actor}`),
    ['view.save Waiting <b> member m', 'view.remove Waiting <b> member m'],
  )
})

t.test('a saved view has all filters of its page, except for a search for people', async (t) => {
  const site = await serveConsole(t)
  scanWith(site, ['claude.ai'])
  const admin = site.signIn('a', 'admin')
  t.match(await admin.post('/saved-views', { name: 'Much', path: '/clients', query: 'q=ada&sort=-sent' }), {
    headers: { location: '/clients?sort=-sent' },
  })
  t.match(site.store.savedViews.ofOrganization(site.organization.id), [{ query: 'sort=-sent' }])
  t.match((await admin.get('/clients')).text, /href="\/clients\?sort=-sent">Much</)
  const days = 'before=2026-11-01&after=2026-11-20'
  t.match(await admin.post('/saved-views', { name: 'November', path: '/compare', query: days }), {
    headers: { location: `/compare?${days}` },
  })
})

t.test('a saved comparison keeps both days', async (t) => {
  const site = await serveConsole(t)
  const query = 'before=2026-11-18&after=2026-11-19'
  t.match(await site.signIn('a', 'admin').post('/saved-views', { name: 'Two days', path: '/compare', query }), {
    headers: { location: `/compare?${query}` },
  })
})

t.test('what is no view of the console is refused, and their number is limited', async (t) => {
  const site = await serveConsole(t)
  const { store, clock, organization } = site
  const { savedViews } = new Administration(store, clock)
  for (const [wrong, message] of [
    [{ path: '//other.example' }, /path: expected a page/],
    [{ path: '/platforms?a=b' }, /path: expected a page/],
    [{ query: '' }, /filters: expected 1 to 1000 bytes/],
    [{ query: `q=${'é'.repeat(200)}` }, /filters: expected 1 to 1000 bytes/],
    [{ name: '' }, /name: expected one line/],
    [{ name: 'a\u202eb' }, /name: expected one line/],
  ] as const) {
    const view = { name: 'one', path: '/platforms', query: 'state=waiting', ...wrong }
    t.throws(() => savedViews.save(organization, view), { code: 'USAGE', message })
  }
  for (const name of ['', 'a'.repeat(5000)]) t.throws(() => savedViews.remove(organization, name), { code: 'USAGE' })
  const save = (name: string) => savedViews.save(organization, { name, path: '/platforms', query: 'state=waiting' })
  save('one')
  t.throws(() => save('ONE'), { code: 'CONFLICT', message: /a view named "one" already exists/ })
  for (let at = 1; at < SAVED_VIEWS_MAX; at++) save(`view ${at}`)
  t.throws(() => save('more'), { code: 'CONFLICT', message: /at most 50 saved views/ })
  const admin = site.signIn('a', 'admin')
  for (const path of ['/unknown', '/members', '//other.example', ''])
    t.match(await admin.post('/saved-views', { name: 'no page', path, query: 'q=ada' }), { status: 400 }, path)
  const refused = await admin.post('/saved-views', { name: 'more', path: '/platforms', query: 'state=waiting' })
  t.match(refused, { status: 409, text: /at most 50 saved views/ })
})
