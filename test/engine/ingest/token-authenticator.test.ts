import t, { type Test } from 'tap'
import type { KnownToken } from '../../../engine/ingest/token-authenticator.ts'
import { openIntake, type TestIntake } from '../../support/intake.ts'
import { makeOrganization } from '../../support/store.ts'

function find({ authenticator }: TestIntake, text: string): KnownToken | undefined {
  const bytes = Buffer.from(text)
  return authenticator.find(bytes, 0, bytes.length)
}

/** The next turn of the event loop, in which a token is looked at again. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}

t.test('a token is known by its text, and nothing else is one', async (t) => {
  const opened = openIntake(t)
  const { raw, record } = opened.token
  t.match(find(opened, raw), { tokenId: record.id, organizationId: opened.organization.id, label: 'devices' })
  t.equal(find(opened, raw), find(opened, raw), 'remembered')
  const rows: [string, string][] = [
    ['nothing', ''],
    ['one that nobody made', `svc_mt_${'0'.repeat(48)}`],
    ['capitals', raw.toUpperCase()],
    ['a byte less', raw.slice(0, -1)],
    ['a byte more', `${raw}0`],
    ['the hash of one', record.hash],
    ['the hash as bytes', Buffer.from(record.hash, 'hex').toString('latin1')],
    ['an API key', opened.administration.apiKeys.create(opened.organization, 'k', ['scores:read']).raw],
    ['very long', raw.repeat(1000)],
    ['blanks around it', ` ${raw} `],
  ]
  for (const [name, text] of rows) t.equal(find(opened, text), undefined, name)
})

t.test('a token that was revoked is refused from the next turn on', async (t) => {
  const opened = openIntake(t)
  const token = find(opened, opened.token.raw)
  if (token === undefined) throw new Error('unknown')
  opened.administration.tokens.revoke(opened.organization, opened.token.record.id)
  await turn()
  t.equal(opened.authenticator.stillActive(token), undefined)
  t.equal(find(opened, opened.token.raw), undefined)
})

t.test('a change of its settings is seen within a second, and costs one look', async (t) => {
  const opened = openIntake(t)
  const before = find(opened, opened.token.raw)
  opened.administration.tokens.set(opened.organization, opened.token.record.id, { zone: '+02:00', label: 'new' })
  await turn()
  t.equal(find(opened, opened.token.raw)?.zone, 'UTC', 'not at once')
  opened.clock.add(1000)
  await turn()
  const after = find(opened, opened.token.raw)
  t.match(after, { zone: '+02:00', label: 'new' })
  t.not(after, before)
  opened.clock.add(1000)
  await turn()
  t.equal(find(opened, opened.token.raw), after, 'nothing changed since')
  opened.clock.add(-5000)
  await turn()
  t.equal(find(opened, opened.token.raw), after, 'a clock that was set back')
})

interface Binding {
  readonly token: 'first' | 'second'
  readonly network?: string
  readonly port?: number
}

const ADDRESS = '192.0.2.9'
const ranks: { name: string; bindings: Binding[]; whose: 'first' | 'second' | undefined }[] = [
  { name: 'none', bindings: [], whose: undefined },
  { name: 'another port', bindings: [{ token: 'first', port: 515 }], whose: undefined },
  { name: 'another address', bindings: [{ token: 'first', network: '192.0.2.8' }], whose: undefined },
  {
    name: 'the right address with another port',
    bindings: [{ token: 'first', network: ADDRESS, port: 515 }],
    whose: undefined,
  },
  { name: 'a port alone', bindings: [{ token: 'first', port: 514 }], whose: 'first' },
  {
    name: 'a network before a port',
    bindings: [
      { token: 'first', port: 514 },
      { token: 'second', network: '192.0.0.0/16' },
    ],
    whose: 'second',
  },
  {
    name: 'the wide network of all before a port',
    bindings: [
      { token: 'first', port: 514 },
      { token: 'second', network: '0.0.0.0/0' },
    ],
    whose: 'second',
  },
  {
    name: 'a narrow network before a wide one',
    bindings: [
      { token: 'first', network: '192.0.2.0/24' },
      { token: 'second', network: '192.0.0.0/16' },
    ],
    whose: 'first',
  },
  {
    name: 'an address before a network',
    bindings: [
      { token: 'first', network: '192.0.2.8/31' },
      { token: 'second', network: ADDRESS },
    ],
    whose: 'second',
  },
  {
    name: 'the same network with a port first',
    bindings: [
      { token: 'first', network: '192.0.2.0/24' },
      { token: 'second', network: '192.0.2.0/24', port: 514 },
    ],
    whose: 'second',
  },
  {
    name: 'a narrow network before a wide one with a port',
    bindings: [
      { token: 'first', network: '192.0.2.0/24' },
      { token: 'second', network: '192.0.0.0/16', port: 514 },
    ],
    whose: 'first',
  },
  { name: 'a network of IPv6', bindings: [{ token: 'first', network: '2001:db8::/32' }], whose: undefined },
]

function withBindings(t: Test, bindings: readonly Binding[]) {
  const opened = openIntake(t)
  const other = makeOrganization(opened, 'Other')
  const second = opened.administration.tokens.generate(other, 'others')
  const tokens = { first: opened.token.record, second: second.record }
  for (const { token, network = '', port = 0 } of bindings) {
    const organization = token === 'first' ? opened.organization : other
    opened.administration.tokens.bind(organization, tokens[token].id, [{ network, port }])
  }
  return { opened, tokens, other, bound: () => opened.authenticator.bound(ADDRESS, 514)?.tokenId }
}

for (const { name, bindings, whose } of ranks) {
  for (const order of [bindings, [...bindings].reverse()]) {
    t.test(`bindings: ${name}${order === bindings ? '' : ', made in the other order'}`, async (t) => {
      const { tokens, bound } = withBindings(t, order)
      t.equal(bound(), whose && tokens[whose].id)
    })
  }
}

t.test('a binding ends with its token, or when it is removed', async (t) => {
  const { opened, tokens, other, bound } = withBindings(t, [
    { token: 'first', network: ADDRESS },
    { token: 'second', port: 514 },
  ])
  t.equal(bound(), tokens.first.id)
  opened.administration.tokens.unbind(opened.organization, tokens.first.id)
  t.equal(bound(), tokens.first.id, 'not at once')
  opened.clock.add(1000)
  await turn()
  t.equal(bound(), tokens.second.id)
  opened.administration.tokens.revoke(other, tokens.second.id)
  await turn()
  t.equal(bound(), undefined, 'a revoked one at once')
})

t.test('what has no address is bound by port only', async (t) => {
  const { opened, tokens } = withBindings(t, [
    { token: 'first', network: '0.0.0.0/0' },
    { token: 'second', port: 514 },
  ])
  t.equal(opened.authenticator.bound('', 514)?.tokenId, tokens.second.id)
})

t.test('the bytes of a hash are no token, also when its token is known by a binding', async (t) => {
  const { opened, tokens, bound } = withBindings(t, [{ token: 'first', network: ADDRESS }])
  t.equal(bound(), tokens.first.id)
  const hash = Buffer.from(tokens.first.hash, 'hex')
  t.equal(opened.authenticator.find(hash, 0, hash.length), undefined)
  t.match(find(opened, opened.token.raw), { tokenId: tokens.first.id }, 'its text is')
  t.equal(bound(), tokens.first.id)
})

t.test('what a place is bound to is remembered by it, and found anew when bindings are read again', async (t) => {
  const { opened, tokens, other } = withBindings(t, [{ token: 'first', network: ADDRESS }])
  const place = { address: ADDRESS, port: 514, boundToken: undefined, bindingsRead: 0 }
  const bound = (): string | undefined => opened.authenticator.boundOf(place)?.tokenId
  t.equal(bound(), tokens.first.id)
  let searches = 0
  const search = opened.authenticator.bound.bind(opened.authenticator)
  opened.authenticator.bound = (...where) => {
    searches++
    return search(...where)
  }
  for (let message = 0; message < 100; message++) t.equal(bound(), tokens.first.id)
  t.equal(searches, 0)
  opened.administration.tokens.bind(other, tokens.second.id, [{ network: '0.0.0.0/0', port: 0 }])
  opened.administration.tokens.revoke(opened.organization, tokens.first.id)
  await turn()
  t.equal(bound(), undefined, 'a revoked one at once')
  opened.clock.add(1000)
  await turn()
  t.equal(bound(), tokens.second.id, 'whose binding no longer stands before others')
})
