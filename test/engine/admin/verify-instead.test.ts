import t from 'tap'
import { arrivalsSince } from '../../../engine/admin/verify.ts'
import { insteadOf } from '../../../engine/admin/verify-instead.ts'
import { MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import type { OutcomeName } from '../../../engine/store/outcomes.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { delta } from '../../support/sources.ts'
import { makeOrganization, NOON } from '../../support/store.ts'

const SINCE_MS = NOON - 5 * MINUTE_MS

function openSite(t: { testdir(): string; teardown(work: () => unknown): void }) {
  const opened = acmeSite(t)
  const { organization, administration } = opened
  const { id: tokenId } = administration.tokens.generate(organization, 'branch').record
  const { store } = opened
  const own = { organizationId: organization.id, tokenId }
  const add = (...deltas: Parameters<typeof delta>): void =>
    store.environment.write(() => store.sources.add(deltas.map(delta)))
  const found = (): readonly string[] =>
    insteadOf(store, organization, new Set([tokenId]), SINCE_MS, NOON).map(({ found }) => found)
  return { ...opened, organization, administration, tokenId, own, add, found }
}

const EXPLAINED: readonly { readonly outcome: OutcomeName; readonly found: RegExp; readonly sample: string }[] = [
  { outcome: 'unmatched', found: /^3 messages from known formats, and none names an AI platform$/, sample: '' },
  { outcome: 'noDomain', found: /^3 messages without a host name$/, sample: '' },
  { outcome: 'unknown', found: /^3 messages in an unknown format$/, sample: 'a line' },
  { outcome: 'rejected', found: /^3 messages of a known format with an invalid field$/, sample: 'a line' },
  { outcome: 'ambiguous', found: /^3 messages that name a host, without proof/, sample: 'a line' },
  { outcome: 'outsideDedupWindow', found: /^3 messages that are older/, sample: '' },
  { outcome: 'skipped', found: /^3 messages with the state of the device/, sample: '' },
]

for (const { outcome, found, sample } of EXPLAINED) {
  t.test(`messages that are ${outcome} are explained`, async (t) => {
    const { store, organization, tokenId, own, add } = openSite(t)
    add({ ...own, counts: { [outcome]: 3 }, sample: 'a line' })
    const instead = insteadOf(store, organization, new Set([tokenId]), SINCE_MS, NOON)
    t.match(instead, [{ found, sample }])
    t.equal(instead.length, 1)
  })
}

t.test('nothing arrived, and what arrived earlier does not count', async (t) => {
  const { own, add, found } = openSite(t)
  t.same(found(), ['Nothing arrived'])
  add({ ...own, counts: { unknown: 1 }, lastSeenMs: SINCE_MS - 2 * MINUTE_MS })
  add({ counts: { unauthorized: 1 }, lastSeenMs: SINCE_MS - 1 })
  t.same(found(), ['Nothing arrived'])
})

t.test('a collector that only reports its coverage is connected', async (t) => {
  const { own, add, found } = openSite(t)
  add({ ...own, listener: 'https', received: 0 })
  t.match(found(), [/^The collector at 192\.0\.2\.1 is connected, and has sent no event$/])
})

t.test('events with another token of the organization', async (t) => {
  const { administration, organization, own, add, found } = openSite(t)
  const { id } = administration.tokens.generate(organization, 'office').record
  add({ ...own, tokenId: id, counts: { stored: 1 } })
  t.match(found(), [/^1 event arrived with the token “office”/])
})

t.test('senders without a valid token, with their former token', async (t) => {
  const { administration, organization, own, add, found } = openSite(t)
  const { id } = administration.tokens.generate(organization, 'old').record
  administration.tokens.revoke(organization, id)
  add({ ...own, tokenId: id, address: '192.0.2.9', lastSeenMs: SINCE_MS - 2 * MINUTE_MS, counts: { stored: 1 } })
  add({ address: '192.0.2.8', listener: 'udp', counts: { unauthorized: 2 }, lastSeenMs: NOON - 1 })
  add({ address: '192.0.2.9', counts: { unauthorized: 2 }, hasUnknownToken: true })
  t.match(found(), [
    /^Messages with an unknown, revoked or expired token from 192\.0\.2\.9 over TLS\. .*“old” before, which is revoked$/,
    /^Messages without a token from 192\.0\.2\.8 over UDP$/,
  ])
})

t.test('of unauthenticated senders, an organization among others sees only its own addresses', async (t) => {
  const site = openSite(t)
  const { add, own, found } = site
  const globex = makeOrganization(site, 'Globex')
  const { id: foreignToken } = site.administration.tokens.generate(globex, 'theirs').record
  add({ address: '198.51.100.7', counts: { unauthorized: 1 } })
  add({ organizationId: globex.id, tokenId: foreignToken, address: '192.0.2.1', counts: { stored: 5 } })
  t.same(found(), ['Nothing arrived'])
  add({ ...own, address: '192.0.2.2', lastSeenMs: SINCE_MS - 2 * MINUTE_MS, counts: { stored: 1 } })
  add({ address: '192.0.2.2', counts: { unauthorized: 1 } })
  t.match(found(), [/^Messages without a token from 192\.0\.2\.2 over TLS$/])
})

t.test('arrivals of one token, most recent first', async (t) => {
  const { store, organization, administration, tokenId, own, add } = openSite(t)
  const { id: other } = administration.tokens.generate(organization, 'office').record
  add({
    ...own,
    address: '192.0.2.1',
    counts: { stored: 2, unmatched: 3 },
    formats: { squid: 5 },
    lastSeenMs: NOON - 9,
  })
  add({ ...own, address: '192.0.2.2', counts: { duplicate: 1 }, host: 'fw' })
  add({ ...own, tokenId: other, counts: { stored: 1 } })
  t.match(arrivalsSince(store, organization.id, new Set([tokenId]), SINCE_MS), [
    { address: '192.0.2.2', host: 'fw', messages: 1, events: 1 },
    { address: '192.0.2.1', format: 'squid', messages: 5, events: 2, otherwise: { unmatched: 3 } },
  ])
  t.equal(arrivalsSince(store, organization.id, new Set(), SINCE_MS).length, 3)
})
