import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { BodyCache } from '../../../api/body-cache.ts'
import { Callers } from '../../../api/callers.ts'
import { Administration } from '../../../engine/admin/administration.ts'
import { ACTIVE_API_KEYS_MAX } from '../../../engine/admin/api-keys.ts'
import { DAY_MS, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import {
  hashSecret,
  isApiKey,
  isMonitoringToken,
  makeApiKey,
  makeMonitoringToken,
  visibleDigits,
} from '../../../engine/store/access-key.ts'
import { statusOf } from '../../../engine/store/secrets.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { makeOrganization, openStore } from '../../support/store.ts'

t.test('keys and tokens have the documented form', async (t) => {
  for (let run = 0; run < 100; run++) {
    const key = makeApiKey()
    t.match(key, /^svc_pk_[0-9a-f]{64}$/)
    t.equal(isApiKey(key), true)
    t.equal(visibleDigits(key), key.slice(7, 15))
    // Changes one digit at any place. The check digits must detect it.
    const at = 7 + (run % 64)
    const other = key[at] === '0' ? '1' : '0'
    t.equal(isApiKey(key.slice(0, at) + other + key.slice(at + 1)), false)
  }
  for (const text of [
    '',
    'svc_pk_',
    makeMonitoringToken(),
    makeApiKey().toUpperCase(),
    `${makeApiKey()} `,
    `\n${makeApiKey()}`,
  ]) {
    t.equal(isApiKey(text), false)
  }
  t.match(makeMonitoringToken(), /^svc_mt_[0-9a-f]{48}$/)
  t.equal(isMonitoringToken(makeMonitoringToken()), true)
  t.equal(isMonitoringToken(makeApiKey()), false)
  t.equal(isApiKey(`svc_pk_${'0'.repeat(64)}`), false, 'the CRC of zeros is not zero')
})

t.test('a 26th active key is rejected; revoking a key frees its slot at once and is final', async (t) => {
  const opened = acmeSite(t)
  const { organization: acme, administration } = opened
  const other = makeOrganization(opened, 'Other')
  const keys = Array.from({ length: ACTIVE_API_KEYS_MAX }, (_, index) =>
    administration.apiKeys.create(acme, `k${index}`, ['scores:read']),
  )
  t.throws(() => administration.apiKeys.create(acme, 'one more', ['scores:read']), {
    code: 'CONFLICT',
    message: /25 active API keys/,
  })
  administration.apiKeys.create(other, 'of another organization', ['scores:read'])
  const first = keys[0]
  if (first === undefined) throw new Error('25 keys')
  administration.apiKeys.revoke(acme, first.record.visible)
  t.equal(opened.store.apiKeys.byHash(hashSecret(first.raw)), undefined)
  administration.apiKeys.create(acme, 'one more', ['scores:read'])
  t.throws(() => administration.apiKeys.revoke(acme, first.record.id), {
    code: 'CONFLICT',
    message: /already revoked, which is permanent/,
  })
  t.throws(
    () => administration.apiKeys.revoke(other, keys[1]?.record.id ?? ''),
    { code: 'NOT_FOUND' },
    "not another organization's",
  )
})

t.test('a rotated key has the same label and scopes; the old one ends now, or after the grace period', async (t) => {
  const { store, clock, organization: acme, administration } = acmeSite(t)
  const callers = new Callers(store, new BodyCache(), clock)
  /** As a request in the next turn of the event loop. */
  const knows = async (raw: string): Promise<boolean> => {
    await nextTurn()
    return store.environment.readInTurn(() => callers.find(raw)) !== undefined
  }
  const first = administration.apiKeys.create(acme, 'dashboard', ['scores:read', 'discovery:read'])
  const second = administration.apiKeys.rotate(acme, first.record.visible, { graceMs: HOUR_MS })
  t.match(second.record, { label: 'dashboard', scopes: ['scores:read', 'discovery:read'] })
  t.same([await knows(first.raw), await knows(second.raw)], [true, true])
  clock.add(HOUR_MS - 1)
  t.equal(await knows(first.raw), true)
  clock.add(1)
  t.same([await knows(first.raw), await knows(second.raw)], [false, true], 'also in a thread that had cached the key')
  t.equal(new Callers(store, new BodyCache(), clock).find(first.raw), undefined)
  const third = administration.apiKeys.rotate(acme, second.record.id, {})
  t.same([await knows(second.raw), await knows(third.raw)], [false, true])
  for (const end of [first, second]) {
    t.throws(() => administration.apiKeys.rotate(acme, end.record.id, {}), {
      code: 'CONFLICT',
      message: /is permanent/,
    })
  }
  t.match(store.auditLog.ofOrganization(acme.id), [
    { action: 'api-key.create' },
    { action: 'api-key.rotate', details: { replaces: first.record.visible, replaced_expires: /Z$/ } },
    { action: 'api-key.rotate', details: { replaces: second.record.visible } },
  ])

  for (let keys = 1; keys < ACTIVE_API_KEYS_MAX; keys++)
    administration.apiKeys.create(acme, `k${keys}`, ['scores:read'])
  t.throws(() => administration.apiKeys.rotate(acme, third.record.id, { graceMs: HOUR_MS }), {
    code: 'CONFLICT',
    message: /has 25 active API keys already; revoke one first, or rotate without --grace/,
  })
  t.equal(await knows(third.raw), true, 'nothing has changed')
  administration.apiKeys.rotate(acme, third.record.id, {})
  t.equal(store.apiKeys.activeCount(acme.id, clock.nowMs()), ACTIVE_API_KEYS_MAX, 'the new key replaces the old one')
})

t.test('an expired key is rejected like a revoked one', async (t) => {
  const { store, clock, organization: acme, administration } = acmeSite(t)
  const create = (label: string) =>
    administration.apiKeys.create(acme, label, ['scores:read'], clock.nowMs() + 30 * DAY_MS)
  const keys = Array.from({ length: ACTIVE_API_KEYS_MAX }, (_, index) => create(`k${index}`))
  t.throws(() => create('one more'), { code: 'CONFLICT' })
  const id = String(keys[0]?.record.id)
  t.throws(() => administration.apiKeys.rotate(acme, id, {}), { code: 'USAGE', message: /set --expires/ })
  clock.add(30 * DAY_MS)
  t.equal(store.apiKeys.activeCount(acme.id, clock.nowMs()), 0)
  t.equal(statusOf(create('one more').record, clock.nowMs()), 'active')
  for (const change of ['revoke', 'rotate'] as const) {
    t.throws(() => administration.apiKeys[change](acme, id, {}), {
      code: 'CONFLICT',
      message: /expired at 2026-12-20T12:00:00Z, which is permanent; create a new one/,
    })
  }
})

t.test('the only organization needs no name', async (t) => {
  const opened = openStore(t)
  const administration = new Administration(opened.store, opened.clock)
  t.throws(() => administration.organization(), { code: 'NOT_FOUND', message: /posture-admin organization create/ })
  const acme = makeOrganization(opened, 'Acme')
  t.equal(administration.organization().id, acme.id)
  makeOrganization(opened, 'Other')
  t.throws(() => administration.organization(), {
    code: 'USAGE',
    message: '--org or POSTURE_ORG is required, because there are 2 organizations: Acme, Other',
  })
})

t.test('the store contains no raw secret', async (t) => {
  const opened = acmeSite(t)
  const { organization: acme, administration } = opened
  const { raw: key, record } = administration.apiKeys.create(acme, 'label', ['scores:read'])
  const { raw: token } = administration.tokens.generate(acme, 'label')
  t.notOk(JSON.stringify(record).includes(key.slice(15, 40)))
  const { readFileSync } = await import('node:fs')
  const bytes = readFileSync(`${opened.directory}/store/data.mdb`)
  for (const secret of [key.slice(15), token.slice(15)]) {
    t.notOk(bytes.includes(secret), 'as text')
    t.notOk(bytes.includes(Buffer.from(secret, 'hex')), 'as bytes')
  }
})

t.test('names of organizations are unique regardless of case, and can be found by name or ID', async (t) => {
  const opened = openStore(t)
  const administration = new Administration(opened.store, opened.clock)
  const { id } = administration.organizations.create({ name: 'Acme', domain: 'acme.example', plan: 'free' })
  t.throws(() => administration.organizations.create({ name: 'ACME', domain: 'x.example', plan: 'free' }), {
    code: 'CONFLICT',
  })
  t.equal(administration.organization('acme').id, id)
  t.equal(administration.organization(id).id, id)
  for (const name of ['', 'nobody', 'x'.repeat(3000), id.replace(/^./, 'x')])
    t.throws(() => administration.organization(name), { code: 'NOT_FOUND' })
  for (const name of ['', ' ', 'a\nb', 'x'.repeat(256), 'ü'.repeat(128), 'a '].values()) {
    t.throws(
      () => administration.organizations.create({ name, domain: 'x.example', plan: 'free' }),
      { code: 'USAGE' },
      JSON.stringify(name),
    )
  }
})

t.test('the domain of an organization is validated and stored in canonical form', async (t) => {
  const opened = openStore(t)
  const { organizations } = new Administration(opened.store, opened.clock)
  const acme = organizations.create({ name: 'Acme', domain: 'ACME.Example.', plan: 'free' })
  t.equal(acme.domain, 'acme.example')
  t.equal(organizations.set(acme, { domain: 'Bücher.example' }).domain, 'xn--bcher-kva.example')
  const wrong = [
    ...[
      'not a domain',
      '',
      '.',
      'localhost',
      'https://acme.example',
      'acme.example:443',
      'a@acme.example',
      '192.0.2.1',
    ],
    ...['acme..example', '-acme.example', 'a_b.example', `${'a'.repeat(64)}.example`, 'a\nb.example', 'x'.repeat(3000)],
  ]
  for (const domain of wrong) {
    const expected = { code: 'USAGE', message: /^domain: expected a domain such as acme\.example/ }
    t.throws(() => organizations.create({ name: 'New', domain, plan: 'free' }), expected, domain)
    t.throws(() => organizations.set(acme, { domain }), expected, domain)
  }
  t.equal(opened.store.organizations.all().length, 1, 'nothing was created')
})
