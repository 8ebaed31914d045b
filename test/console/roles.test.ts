import t from 'tap'
import { COMMANDS, type CommandName } from '../../console/commands.ts'
import { ConsoleWriter } from '../../console/console.ts'
import { NAVIGATION } from '../../console/design/navigation.ts'
import { type Route, Router } from '../../console/http/router.ts'
import { ROUTES } from '../../console/routes.ts'
import { ACTIONS, type Action } from '../../engine/admin/actions.ts'
import { newUuid } from '../../engine/store/keys.ts'
import { ROLES, type Role } from '../../engine/store/members.ts'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import { serveConsole } from '../support/console.ts'
import { crawl, routeOf, routesOf } from '../support/console-crawl.ts'
import { plainWords, populate } from '../support/console-data.ts'
import { makeOrganization, openStore, quietLog } from '../support/store.ts'

/** By the table, written out: this test must not use the function that it checks. */
function isAllowed(role: Role, action: Action): boolean {
  const order: readonly string[] = ['viewer', 'member', 'admin', 'owner', 'operator']
  return order.indexOf(role) >= order.indexOf(ACTIONS[action])
}

const isGuarded = (route: Route): boolean => route.access !== 'anyone' && route.access !== 'signed-in'

t.test('every role can use exactly the routes that ACTIONS allows', async (t) => {
  const { signIn } = await serveConsole(t)
  for (const role of ROLES) {
    const browser = signIn(`${role}@acme.example`, role)
    for (const route of ROUTES.filter(isGuarded)) {
      const path = route.path.replace(/:\w+/g, 'none')
      const { status, text } = await (route.method === 'GET' ? browser.get(path) : browser.post(path))
      const allowed = isAllowed(role, route.access as Action)
      t.equal(status !== 403, allowed, `${role} ${route.method} ${path}: ${status}`)
      if (!allowed) t.match(text, `requires the role ${ACTIONS[route.access as Action]}`)
    }
  }
})

t.test('every role sees exactly the navigation entries that ACTIONS allows', async (t) => {
  const { signIn } = await serveConsole(t)
  const router = new Router(ROUTES)
  for (const role of ROLES) {
    const { text } = await signIn(`${role}@acme.example`, role).get('/account')
    for (const { path, action } of NAVIGATION.flatMap(({ entries }) => entries)) {
      t.equal(text.includes(`<a href="${path}"`), isAllowed(role, action), `${role} ${path}`)
      t.equal(router.find('GET', path)?.route.access, action, `${path} has the same action as its page`)
    }
  }
})

t.test('every role is shown exactly what it can use, and no other request of it changes anything', async (t) => {
  const site = await serveConsole(t, { hasOrigin: true })
  const { store, organization } = site
  const shownToOwner = await crawl(populate(site, organization, plainWords()))
  const { forms } = shownToOwner
  const found = routesOf(shownToOwner)
  const guarded = ROUTES.filter(isGuarded).filter(({ method, path }) => found.has(`${method} ${path}`))
  const names = (routes: readonly Route[]) => routes.map(({ method, path }) => `${method} ${path}`).toSorted()
  t.ok(guarded.length > 25, `${guarded.length} routes are shown to owners`)
  for (const role of ROLES) {
    const browser = site.signIn(`${role}@acme.example`, role)
    const shown = routesOf(await crawl(browser))
    const allowed = guarded.filter(({ access }) => isAllowed(role, access as Action))
    t.same(names(guarded.filter(({ method, path }) => shown.has(`${method} ${path}`))), names(allowed), role)
    const before = store.auditLog.lastSequence(organization.id)
    for (const { method, path } of guarded.filter((route) => !allowed.includes(route))) {
      for (const each of found.get(`${method} ${path}`) ?? []) {
        const { status, text } = await (method === 'GET' ? browser.get(each) : browser.post(each, forms.get(each)))
        t.equal(status, 403, `${role} ${method} ${each}`)
        t.match(text, `Your role (${role}) does not allow this`)
      }
    }
    t.equal(store.auditLog.lastSequence(organization.id), before, `${role} has changed nothing`)
  }
})

t.test('a visitor who is not signed in reads nothing and changes nothing', async (t) => {
  const site = await serveConsole(t, { hasOrigin: true })
  const { store, organization } = site
  const { answers, forms } = await crawl(populate(site, organization, plainWords()))
  const before = store.auditLog.lastSequence(organization.id)
  const visitors = { 'without a cookie': '', 'with an unknown cookie': 'x'.repeat(43) }
  for (const [name, cookie] of Object.entries(visitors)) {
    const browser = site.browser()
    if (cookie !== '') browser.cookies.set('__Host-session', cookie)
    for (const path of answers.keys()) {
      const answer = await browser.get(path)
      t.match(answer, { status: 303, text: '' }, `${path} ${name}`)
      t.match(answer.headers['location'], /^\/sign-in/)
    }
    for (const [path, values] of forms) {
      if (ANYONE.has(routeOf('POST', path))) continue
      t.match(await browser.post(path, values), { status: 401, text: /Your session has ended/ }, `${path} ${name}`)
    }
  }
  t.equal(store.auditLog.lastSequence(organization.id), before)
})

const ANYONE = new Set(
  ROUTES.filter(({ access }) => access === 'anyone').map(({ method, path }) => `${method} ${path}`),
)

/** Parameters that a use case refuses, unless the role stops it before. */
const PARAMETERS: Readonly<Record<CommandName, unknown>> = {
  'api-key.create': { label: 'one', scopes: ['scores:read'] },
  'api-key.revoke': { id: 'none' },
  'api-key.rotate': { id: 'none', graceMs: 0, expiresAtMs: undefined },
  'token.generate': { label: 'one' },
  'token.revoke': { id: 'none' },
  'approval.add': { platforms: ['ChatGPT'] },
  'approval.reject': { platforms: ['ChatGPT'] },
  'approval.remove': { platforms: ['none'] },
  'scan.request': {},
  'organization.set': { scanFrequency: 'hourly' },
  'organization.rename': { name: 'Globex' },
  'retention.set': { scanDays: 100 },
  'client.read': { platform: 'ChatGPT' },
  'client.reveal': { pseudonym: 'none' },
  'approval.undo': { decidedAtMs: 1 },
  'client.export': { person: ['none'] },
  'client.erase': { person: ['none'] },
  'client.set': { clients: 'full' },
  'client.name': { network: '10.2.0.0/16', name: 'Berlin office' },
  'manager.notify': {
    ...{ platform: { id: 'claude', name: 'Claude' }, groups: [], range: { firstDay: 0, lastDay: 0 }, text: 'one' },
    channel: undefined,
  },
  'view.save': { name: 'one', path: '/platforms', query: 'state=waiting' },
  'view.remove': { name: 'none' },
  'block-list-link.create': { label: 'one', blocks: 'rejected', riskMin: 0 },
  'block-list-link.revoke': { id: 'none' },
  'alert-channel.add': {
    ...{ id: newUuid(), organizationId: '', name: 'soc', kind: 'webhook', target: 'https://alerts.example' },
    ...{ severityMin: 'low', settings: { keyId: '', sealed: '' } },
  },
  'alert-channel.remove': { id: 'none' },
  'alert-channel.test': { id: 'none' },
  'alert-rule.set': { rule: 'platform-volume', threshold: 5 },
  'alert-rule.mute': { rule: 'new-platform' },
  'alert-rule.unmute': { rule: 'new-platform' },
  'alert.retry': { channelId: 'none', sequence: undefined },
  'alert.discard': { channelId: 'none', sequence: 1 },
  'candidate.dismiss': { name: 'unknown.ai' },
  'candidate.restore': { name: 'unknown.ai' },
  'registry.add': { name: 'console', changes: { platforms: [], disable: [] } },
  'registry.remove': { ids: ['none'] },
  'assessment.create': { framework: 'hipaa', title: 'one', profile: undefined, from: undefined },
  'assessment.change': { id: 'none', item: 'none', answer: 'yes', note: '' },
  'assessment.update': { id: 'none' },
  'assessment.comment': { id: 'none', item: 'none', text: 'one' },
  'assessment.submit': { id: 'none', item: 'none' },
  'assessment.approve': { id: 'none', item: 'none', step: 'approve' },
  'assessment.complete': { id: 'none' },
  'framework.add': { id: 'own-one', name: 'one', template: { version: '00000000', categories: [] } },
  'framework.remove': { id: 'none' },
  'recommendation.status': { id: 'none', status: 'open', reason: '' },
  'recommendation.owner': { id: 'none', owner: 'one' },
  'assessment.assign': { id: 'none', item: 'one', owner: 'one' },
  'member.add': { name: 'owner', role: 'viewer' },
  'member.invite': { name: 'none' },
  'invitation.withdraw': { name: 'none' },
  'member.role': { name: 'none', role: 'viewer' },
  'member.remove': { name: 'none' },
  'member.allow': { name: 'none' },
  'sign-in.set': { settings: { issuer: 'https://login.example' }, clientSecret: undefined },
  'sign-in.remove': {},
}

t.test('every role times every command, whatever the pages show', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const organization = makeOrganization(opened, 'Acme')
  const other = makeOrganization(opened, 'Globex')
  const writer = new ConsoleWriter(store, new RegistryInForce(store), clock, quietLog)
  store.environment.write(() => {
    for (const role of ROLES) {
      store.members.put({ organizationId: organization.id, name: role, role, createdAtMs: clock.nowMs() })
    }
  })
  let id = 0
  for (const command of Object.keys(COMMANDS) as CommandName[]) {
    const make = (memberName: string, organizationId: string) =>
      writer.make({ kind: 'change', id: ++id, command, organizationId, memberName, parameters: PARAMETERS[command] })
    for (const role of ROLES) {
      const before = store.auditLog.ofOrganization(organization.id).length
      const outcome = await make(role, organization.id)
      const isRefused = outcome.kind === 'refused' && outcome.fault?.code === 'NOT_ALLOWED'
      t.equal(!isRefused, isAllowed(role, command), `${role} ${command}: ${JSON.stringify(outcome)}`)
      const entries = store.auditLog.ofOrganization(organization.id).slice(before)
      t.equal(entries.length, outcome.kind === 'changed' ? 1 : 0, 'one audit entry for each change')
      t.notOk(outcome.kind === 'refused' && outcome.fault === undefined, 'no internal error')
    }
    t.match(
      await make('owner', other.id),
      { kind: 'refused', fault: { code: 'NOT_ALLOWED' } },
      `${command} in another organization`,
    )
  }
})
