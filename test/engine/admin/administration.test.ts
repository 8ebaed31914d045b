import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { ACTIVE_API_KEYS_MAX } from '../../../engine/admin/api-keys.ts'
import {
  hashSecret,
  isApiKey,
  isMonitoringToken,
  makeApiKey,
  makeMonitoringToken,
  visibleDigits,
} from '../../../engine/store/access-key.ts'
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
  const opened = openStore(t)
  const administration = new Administration(opened.store, opened.clock)
  const acme = makeOrganization(opened, 'Acme')
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

t.test('the store contains no raw secret', async (t) => {
  const opened = openStore(t)
  const administration = new Administration(opened.store, opened.clock)
  const acme = makeOrganization(opened, 'Acme')
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

t.test('the domain of an organization is one, in its canonical form', async (t) => {
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
    const expected = { code: 'USAGE', message: /^--domain: expected a domain such as acme\.example/ }
    t.throws(() => organizations.create({ name: 'New', domain, plan: 'free' }), expected, domain)
    t.throws(() => organizations.set(acme, { domain }), expected, domain)
  }
  t.equal(opened.store.organizations.all().length, 1, 'nothing was made')
})
