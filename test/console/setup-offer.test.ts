import t from 'tap'
import { offerSetupLink } from '../../console/setup-offer.ts'
import { newUuid } from '../../engine/store/keys.ts'
import { capturedLog } from '../support/captured-log.ts'
import { serveConsole } from '../support/console.ts'
import { makeOrganization, openStore } from '../support/store.ts'

const URL = 'https://0.0.0.0:8444'

/** What the service prints and logs when it starts. */
function offered(store: Parameters<typeof offerSetupLink>[0], isTTY: boolean) {
  const { log, entries } = capturedLog()
  log.level = 'info'
  let printed = ''
  const write = (text: string): void => {
    printed += text
  }
  offerSetupLink(store, URL, '/data', log, { isTTY, write })
  return { printed, entries }
}

t.test('on a terminal the link is printed, with a host that browsers can open', async (t) => {
  const { store } = openStore(t)
  const { printed, entries } = offered(store, true)
  t.match(printed, /^Set up the console:\n\nhttps:\/\/(?!0\.0\.0\.0)[^/]+:8444\/setup#[0-9a-f]{64}\n/m)
  t.same(entries, [])
  t.equal(store.accountLinks.all().length, 1)
})

t.test('without a terminal, the command is logged, and no link is created', async (t) => {
  const opened = openStore(t)
  const { printed, entries } = offered(opened.store, false)
  t.equal(printed, '')
  t.match(entries, [{ command: 'posture-admin setup-link --data-dir /data' }])
  makeOrganization(opened, 'Acme')
  makeOrganization(opened, 'Globex')
  t.match(offered(opened.store, true).entries, [{ command: 'posture-admin setup-link --data-dir /data --org NAME' }])
  t.same(opened.store.accountLinks.all(), [])
})

t.test('once somebody can sign in, nothing is offered', async (t) => {
  const site = await serveConsole(t)
  site.signIn('ada', 'owner')
  const user = site.store.users.byName('ada')
  if (user === undefined) throw new Error('no user')
  site.store.environment.write(() => site.store.users.put({ ...user, passwordHash: 'a hash' }))
  t.same(offered(site.store, true), { printed: '', entries: [] })
})

t.test('users of an identity provider that was removed cannot sign in, so the link is offered', async (t) => {
  const { store } = openStore(t)
  const user = { id: newUuid(), name: 'ada', isFederated: true, passwordHash: '', createdAtMs: 0, browsers: [] }
  store.environment.write(() => store.users.put(user))
  t.match(offered(store, true).printed, /^Set up the console:/m)
})
