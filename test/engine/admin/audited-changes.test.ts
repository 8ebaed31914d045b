import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { AuditLog } from '../../../engine/store/audit-log.ts'
import type { Role } from '../../../engine/store/members.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { makeOrganization, openStore, type TestStore } from '../../support/store.ts'

function inNameOf(opened: TestStore, name: string): Administration {
  return new Administration(opened.store, opened.clock, { kind: 'member', name })
}

t.test('the audit log records who made which change and when; failed changes are not recorded', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock, { kind: 'operator', name: 'root' })
  const acme = administration.organizations.create({ name: 'Acme', domain: 'acme.example', plan: 'free' })
  clock.add(1000)
  administration.organizations.set(acme, { plan: 'enterprise' })
  administration.organizations.set(acme, { scanFrequency: 'hourly', evidenceWindowDays: 7 })
  administration.members.add(acme, 'Alice@acme.example', 'owner')
  const alice = inNameOf(opened, 'alice@acme.example')
  const { raw, record } = alice.apiKeys.create(acme, 'dashboard', ['scores:read', 'scores:read'])
  t.same(record.scopes, ['scores:read'])
  alice.apiKeys.revoke(acme, record.visible)
  t.throws(() => alice.apiKeys.revoke(acme, record.visible), { code: 'CONFLICT' })
  t.same(
    store.auditLog.ofOrganization(acme.id).map(({ actor, action, subject, details, sequence }) => ({
      ...{ actor, action, subject, details, sequence },
    })),
    [
      ['operator root', 'organization.create', 'Acme', { domain: 'acme.example', plan: 'free' }],
      ['operator root', 'organization.plan', 'Acme', { plan: 'enterprise' }],
      ['operator root', 'organization.set', 'Acme', { scanFrequency: 'hourly', evidenceWindowDays: 7 }],
      ['operator root', 'member.add', 'Alice@acme.example', { role: 'owner' }],
      ...['api-key.create', 'api-key.revoke'].map((action) => [
        'member Alice@acme.example',
        action,
        'dashboard',
        { id: record.id, prefix: record.visible, scopes: ['scores:read'] },
      ]),
    ].map(([actor, action, subject, details], index) => ({ actor, action, subject, details, sequence: index + 1 })),
  )
  t.notOk(JSON.stringify(store.auditLog.all()).includes(raw.slice(20)), 'no secret')
  t.same(store.organizations.get(acme.id)?.scanFrequency, 'hourly')
  t.same(store.organizations.get(acme.id)?.plan, 'enterprise')
})

const MAY: readonly { role: Role | undefined; may: readonly string[] }[] = [
  { role: undefined, may: [] },
  { role: 'member', may: [] },
  { role: 'admin', may: ['set', 'key', 'token'] },
  { role: 'owner', may: ['set', 'key', 'token', 'member'] },
]
for (const { role, may } of MAY) {
  t.test(`${role ?? 'an unknown member'} may make exactly the permitted changes`, async (t) => {
    const opened = openStore(t)
    const acme = makeOrganization(opened, 'Acme')
    const other = makeOrganization(opened, 'Other')
    const operator = new Administration(opened.store, opened.clock)
    operator.members.add(acme, 'first', 'owner')
    if (role !== undefined) operator.members.add(acme, 'bob', role)
    const bob = inNameOf(opened, 'Bob')
    const attempts: Record<string, (organization: typeof acme) => unknown> = {
      set: (organization) => bob.organizations.set(organization, { scanFrequency: 'weekly' }),
      key: (organization) => bob.apiKeys.create(organization, 'key', ['scores:read']),
      token: (organization) => bob.tokens.generate(organization, 'token'),
      member: (organization) => bob.members.add(organization, 'carol', 'member'),
      plan: (organization) => bob.organizations.set(organization, { plan: 'free' }),
    }
    for (const [what, attempt] of Object.entries(attempts)) {
      if (may.includes(what)) t.doesNotThrow(() => attempt(acme), what)
      else t.throws(() => attempt(acme), { code: 'NOT_ALLOWED' }, what)
      t.throws(() => attempt(other), { code: 'NOT_ALLOWED' }, `${what} of another organization`)
    }
    t.throws(() => bob.organizations.create({ name: 'New', domain: 'new.example', plan: 'free' }), {
      code: 'NOT_ALLOWED',
    })
    t.equal(opened.store.auditLog.ofOrganization(other.id).length, 0)
  })
}

t.test('the last owner of an organization cannot be removed', async (t) => {
  const opened = acmeSite(t)
  const { organization: acme, administration } = opened
  const { members } = administration
  members.add(acme, 'alice', 'owner')
  members.add(acme, 'bob', 'member')
  t.throws(() => members.add(acme, 'ALICE', 'member'), { code: 'CONFLICT', message: /already/ })
  t.throws(() => members.remove(acme, 'alice'), { code: 'CONFLICT', message: /the only owner/ })
  t.throws(() => members.setRole(acme, 'alice', 'admin'), { code: 'CONFLICT' })
  t.throws(() => members.remove(acme, 'carol'), { code: 'NOT_FOUND' })
  members.setRole(acme, 'bob', 'owner')
  members.setRole(acme, 'alice', 'admin')
  members.remove(acme, 'alice')
  t.match(members.remove(acme, 'bob'), { role: 'owner' }, 'the last member can be removed')
  t.same(opened.store.members.ofOrganization(acme.id), [])
})

for (const days of [0, -1, 1.5, 401, Number.NaN]) {
  t.test(`an evidence window of ${days} days is rejected`, async (t) => {
    const opened = openStore(t)
    const { organizations } = new Administration(opened.store, opened.clock)
    t.throws(() => organizations.set(makeOrganization(opened, 'Acme'), { evidenceWindowDays: days }), { code: 'USAGE' })
  })
}

t.test('the audit log is limited in entries, and in age if configured', async (t) => {
  const { store } = openStore(t, { unchecked: true })
  const log = new AuditLog(store.environment, 250)
  const [a, b] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
  const entry = (organizationId: string, timeMs: number) => ({
    ...{ organizationId, timeMs, actor: 'operator root', action: 'test', subject: '', details: {} },
  })
  store.environment.write(() => {
    for (let timeMs = 1; timeMs <= 600; timeMs++) log.append(entry(a, timeMs))
    log.append(entry(b, 1))
  })
  t.same(
    log.ofOrganization(a).map(({ sequence }) => sequence),
    Array.from({ length: 250 }, (_, index) => 351 + index),
  )
  t.equal(
    store.environment.write(() => log.removeOlderThan(a, 500)),
    149,
  )
  t.equal(log.ofOrganization(a)[0]?.timeMs, 500)
  t.equal(log.ofOrganization(b).length, 1)
  store.environment.write(() => log.removeOlderThan(a, 10_000))
  store.environment.write(() => log.append(entry(a, 700)))
  t.same(
    log.ofOrganization(a).map(({ sequence }) => sequence),
    [600, 601],
    'sequences are never reused',
  )
})
