import t from 'tap'
import { MINUTE_MS, SECOND_MS } from '../../engine/kernel/process/clock.ts'
import { type Browser, serveConsole, type TestConsole } from '../support/console.ts'
import { delta, type GivenDelta } from '../support/sources.ts'
import { NOON, Sender } from '../support/store.ts'

interface Verifying extends TestConsole {
  readonly member: Browser
  readonly tokenId: string
  /** The address of a verification that began at noon. */
  readonly path: string
  add(...deltas: readonly GivenDelta[]): void
}

async function verifying(t: Parameters<typeof serveConsole>[0]): Promise<Verifying> {
  const site = await serveConsole(t)
  const { store, organization } = site
  await site.signIn('ada', 'admin').post('/monitoring-tokens', { label: 'branch' })
  const tokenId = store.monitoringTokens.ofOrganization(organization.id)[0]?.id ?? ''
  const own = { organizationId: organization.id, tokenId }
  return {
    ...site,
    tokenId,
    member: site.signIn('mia', 'member'),
    path: `/monitoring-tokens/${tokenId}/verify?started=${NOON}`,
    add: (...deltas) =>
      store.environment.write(() => store.sources.add(deltas.map((one) => delta({ ...own, ...one })))),
  }
}

t.test('a verification starts with its time in the address, waits, and ends after five minutes', async (t) => {
  const { member, tokenId, path, clock } = await verifying(t)
  const started = await member.get(`/monitoring-tokens/${tokenId}/verify`)
  t.match(started, { status: 303, headers: { location: path } })
  clock.add(3 * SECOND_MS)
  const waiting = await member.get(path)
  t.match(waiting.text, /Waiting for the first event/)
  t.match(waiting.text, /<a href="\/sources" aria-current="true"/, 'a part of Setup, a tab of Sources')
  t.equal(waiting.text.match(/aria-current="true"/g)?.length, 2, 'in the navigation and in the menu of a phone')
  t.match(waiting.text, /3 s of 5 minutes/)
  t.match(waiting.text, /<noscript><meta http-equiv="refresh" content="2"/)
  t.match(waiting.text, /id="verification"[^>]* data-poll="500"/)
  t.notMatch(waiting.text, /What arrived/)
  clock.add(10 * SECOND_MS)
  t.match((await member.get(path)).text, /What arrived so far.*Nothing arrived/s)
  clock.set(NOON + 5 * MINUTE_MS)
  const { text } = await member.get(path)
  t.match(text, /No event arrived within 5 minutes.*Verify again.*What arrived instead.*Nothing arrived/s)
  t.notMatch(text, /http-equiv="refresh"|data-poll/)
})

t.test('the first event verifies: senders, counts and platforms are shown', async (t) => {
  const { store, organization, member, path, clock, add } = await verifying(t)
  clock.add(2 * SECOND_MS)
  add({ address: '192.0.2.7', listener: 'udp', formats: { squid: 3 }, counts: { unknown: 1, unmatched: 2 } })
  const before = await member.get(path)
  t.match(before.text, /Messages arrive, and none is an event yet/)
  t.match(before.text, /192\.0\.2\.7.*Syslog over UDP.*squid/s)
  store.environment.write(() =>
    store.buffer.append(organization.id, [
      new Sender().event('chatgpt.com', NOON),
      new Sender().event('x.example', NOON),
    ]),
  )
  add({ address: '192.0.2.7', listener: 'udp', counts: { stored: 2 }, lastSeenMs: clock.nowMs() })
  const { text } = await member.get(path)
  t.match(text, /<title>Verified · Acme/)
  t.match(text, /Events arrive.*ChatGPT/s)
  t.match(text, /data-poll="2000"/)
  t.notMatch(text, /http-equiv="refresh"|What arrived/)
  const file = /href="(\/monitoring-tokens\/[^"]+\/verify\.csv\?started=\d+)"/.exec(text)?.[1] ?? ''
  t.match(
    (await member.get(file)).text,
    /^Sender,Address,Listener,Format,Messages,Events,.*\r?\n192\.0\.2\.7,192\.0\.2\.7,udp,/,
  )
  clock.set(NOON + 5 * MINUTE_MS)
  t.notMatch((await member.get(path)).text, /data-poll/, 'the page is final after five minutes')
})

t.test('a message that was not understood is shown redacted and as text', async (t) => {
  const { member, path, clock, add } = await verifying(t)
  add({ counts: { unknown: 1 }, sample: 'a <b>line</b> of 192.0.2.x' })
  clock.set(NOON + 5 * MINUTE_MS)
  t.match((await member.get(path)).text, /1 message in an unknown format.*<pre>a &lt;b>line&lt;\/b> of 192\.0\.2\.x/s)
})

t.test('a revoked token is not verified', async (t) => {
  const { member, signIn, tokenId, path } = await verifying(t)
  await signIn('ada', 'admin').post(`/monitoring-tokens/${tokenId}/revoke`)
  const { text } = await member.get(path)
  t.match(text, /This token is revoked/)
  t.notMatch(text, /data-poll|http-equiv="refresh"/)
})

t.test('a start that is wrong, in the future or too old begins a new verification', async (t) => {
  const { member, tokenId, path } = await verifying(t)
  for (const started of ['', 'x', '-1', `${NOON + 1}`, `${NOON - 55 * MINUTE_MS}`, '9'.repeat(30)]) {
    const answer = await member.get(`/monitoring-tokens/${tokenId}/verify?started=${started}`)
    t.match(answer, { status: 303, headers: { location: path } }, started)
  }
})
