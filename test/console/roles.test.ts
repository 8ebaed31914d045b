import t from 'tap'
import { COMMANDS, type CommandName } from '../../console/commands.ts'
import { NAVIGATION } from '../../console/design/navigation.ts'
import { type Route, Router } from '../../console/http/router.ts'
import { ROUTES } from '../../console/routes.ts'
import { ConsoleWriter } from '../../console/writer.ts'
import { ACTIONS, type Action } from '../../engine/admin/actions.ts'
import { ROLES, type Role } from '../../engine/store/members.ts'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import { serveConsole } from '../support/console.ts'
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
  'registry.add': { name: 'console', changes: { platforms: [], disable: [] } },
  'registry.remove': { ids: ['none'] },
  'assessment.create': { framework: 'hipaa', title: 'one' },
  'assessment.change': { id: 'none', item: 'none', answer: 'yes', note: '' },
  'assessment.complete': { id: 'none' },
  'recommendation.status': { id: 'none', status: 'open' },
  'recommendation.owner': { id: 'none', owner: 'one' },
  'member.add': { name: 'owner', role: 'viewer' },
  'member.invite': { name: 'none' },
  'invitation.withdraw': { name: 'none' },
  'member.role': { name: 'none', role: 'viewer' },
  'member.remove': { name: 'none' },
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
      const outcome = make(role, organization.id)
      const isRefused = outcome.kind === 'refused' && outcome.fault?.code === 'NOT_ALLOWED'
      t.equal(!isRefused, isAllowed(role, command), `${role} ${command}: ${JSON.stringify(outcome)}`)
      const entries = store.auditLog.ofOrganization(organization.id).slice(before)
      t.equal(entries.length, outcome.kind === 'changed' ? 1 : 0, 'one audit entry for each change')
      t.notOk(outcome.kind === 'refused' && outcome.fault === undefined, 'no internal error')
    }
    t.match(make('owner', other.id), { kind: 'refused', fault: { code: 'NOT_ALLOWED' } }, `${command} elsewhere`)
  }
})
