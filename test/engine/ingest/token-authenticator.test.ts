import t, { type Test } from 'tap'
import type { KnownToken } from '../../../engine/ingest/token-authenticator.ts'
import { openPipeline, type TestPipeline } from '../../support/pipeline.ts'
import { makeOrganization } from '../../support/store.ts'

function find({ authenticator }: TestPipeline, text: string): KnownToken | undefined {
  const bytes = Buffer.from(text)
  return authenticator.find(bytes, 0, bytes.length)
}

/** The next turn of the event loop, in which the authenticator checks a token again. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}

t.test('only the exact token is accepted', async (t) => {
  const opened = openPipeline(t)
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

t.test('a revoked token is rejected from the next turn on', async (t) => {
  const opened = openPipeline(t)
  const token = find(opened, opened.token.raw)
  if (token === undefined) throw new Error('unknown')
  opened.administration.tokens.revoke(opened.organization, opened.token.record.id)
  await nextTurn()
  t.equal(opened.authenticator.stillActive(token), undefined)
  t.equal(find(opened, opened.token.raw), undefined)
})

t.test('a changed setting takes effect within a second, at the cost of one lookup', async (t) => {
  const opened = openPipeline(t)
  const before = find(opened, opened.token.raw)
  opened.administration.tokens.set(opened.organization, opened.token.record.id, { zone: '+02:00', label: 'new' })
  await nextTurn()
  t.equal(find(opened, opened.token.raw)?.zone, 'UTC', 'not at once')
  opened.clock.add(1000)
  await nextTurn()
  const after = find(opened, opened.token.raw)
  t.match(after, { zone: '+02:00', label: 'new' })
  t.not(after, before)
  opened.clock.add(1000)
  await nextTurn()
  t.equal(find(opened, opened.token.raw), after, 'nothing changed since')
  opened.clock.add(-5000)
  await nextTurn()
  t.equal(find(opened, opened.token.raw), after, 'a clock that was set back')
})

interface Binding {
  readonly token: 'first' | 'second'
  readonly network?: string
  readonly port?: number
}

const ADDRESS = '192.0.2.9'
const ranks: { name: string; bindings: Binding[]; winner: 'first' | 'second' | undefined }[] = [
  { name: 'none', bindings: [], winner: undefined },
  { name: 'another port', bindings: [{ token: 'first', port: 515 }], winner: undefined },
  { name: 'another address', bindings: [{ token: 'first', network: '192.0.2.8' }], winner: undefined },
  {
    name: 'the right address with another port',
    bindings: [{ token: 'first', network: ADDRESS, port: 515 }],
    winner: undefined,
  },
  { name: 'a port only', bindings: [{ token: 'first', port: 514 }], winner: 'first' },
  {
    name: 'a network takes precedence over a port',
    bindings: [
      { token: 'first', port: 514 },
      { token: 'second', network: '192.0.0.0/16' },
    ],
    winner: 'second',
  },
  {
    name: 'the network of all addresses takes precedence over a port',
    bindings: [
      { token: 'first', port: 514 },
      { token: 'second', network: '0.0.0.0/0' },
    ],
    winner: 'second',
  },
  {
    name: 'a narrow network takes precedence over a wide one',
    bindings: [
      { token: 'first', network: '192.0.2.0/24' },
      { token: 'second', network: '192.0.0.0/16' },
    ],
    winner: 'first',
  },
  {
    name: 'an address takes precedence over a network',
    bindings: [
      { token: 'first', network: '192.0.2.8/31' },
      { token: 'second', network: ADDRESS },
    ],
    winner: 'second',
  },
  {
    name: 'the same network with a port takes precedence',
    bindings: [
      { token: 'first', network: '192.0.2.0/24' },
      { token: 'second', network: '192.0.2.0/24', port: 514 },
    ],
    winner: 'second',
  },
  {
    name: 'a narrow network takes precedence over a wide one with a port',
    bindings: [
      { token: 'first', network: '192.0.2.0/24' },
      { token: 'second', network: '192.0.0.0/16', port: 514 },
    ],
    winner: 'first',
  },
  { name: 'an IPv6 network', bindings: [{ token: 'first', network: '2001:db8::/32' }], winner: undefined },
]

function withBindings(t: Test, bindings: readonly Binding[]) {
  const opened = openPipeline(t)
  const other = makeOrganization(opened, 'Other')
  const second = opened.administration.tokens.generate(other, 'others')
  const tokens = { first: opened.token.record, second: second.record }
  for (const { token, network = '', port = 0 } of bindings) {
    const organization = token === 'first' ? opened.organization : other
    opened.administration.tokens.bind(organization, tokens[token].id, [{ network, port }])
  }
  return { opened, tokens, other, bound: () => opened.authenticator.bound(ADDRESS, 514)?.tokenId }
}

for (const { name, bindings, winner } of ranks) {
  for (const order of [bindings, [...bindings].reverse()]) {
    t.test(`bindings: ${name}${order === bindings ? '' : ', created in reverse order'}`, async (t) => {
      const { tokens, bound } = withBindings(t, order)
      t.equal(bound(), winner && tokens[winner].id)
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
  await nextTurn()
  t.equal(bound(), tokens.second.id)
  opened.administration.tokens.revoke(other, tokens.second.id)
  await nextTurn()
  t.equal(bound(), undefined, 'a revoked one at once')
})

t.test('a sender without an address is bound by port only', async (t) => {
  const { opened, tokens } = withBindings(t, [
    { token: 'first', network: '0.0.0.0/0' },
    { token: 'second', port: 514 },
  ])
  t.equal(opened.authenticator.bound('', 514)?.tokenId, tokens.second.id)
})

t.test('a hash is not a token, even if a binding knows its token', async (t) => {
  const { opened, tokens, bound } = withBindings(t, [{ token: 'first', network: ADDRESS }])
  t.equal(bound(), tokens.first.id)
  const hash = Buffer.from(tokens.first.hash, 'hex')
  t.equal(opened.authenticator.find(hash, 0, hash.length), undefined)
  t.match(find(opened, opened.token.raw), { tokenId: tokens.first.id }, 'its text is')
  t.equal(bound(), tokens.first.id)
})

t.test('the binding of an endpoint is cached, and looked up again after bindings change', async (t) => {
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
  await nextTurn()
  t.equal(bound(), undefined, 'a revoked one at once')
  opened.clock.add(1000)
  await nextTurn()
  t.equal(bound(), tokens.second.id, 'a removed binding no longer takes precedence')
})
