import t from 'tap'
import { CANDIDATES_WAITING_MAX } from '../../../engine/ingest/candidate-table.ts'
import { Origin } from '../../../engine/ingest/origin.ts'
import { MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { clientsInSketch } from '../../../engine/store/candidates.ts'
import { openPipeline, type TestPipeline } from '../../support/pipeline.ts'
import { NOON } from '../../support/store.ts'
import { rfc5424, squid } from '../../support/syslog-service.ts'

const tcp = (): Origin => new Origin('tcp', '192.0.2.200', 514)

/** A message of each host, in turn; some with another client. */
function send({ take, token }: TestPipeline, hosts: readonly string[], client = '192.0.2.45', origin = tcp()): void {
  for (const host of hosts) take(rfc5424(token.raw, squid(host, client, NOON)), origin)
}

const rows: readonly { name: string; hosts: readonly string[]; found: readonly (readonly [string, number])[] }[] = [
  { name: 'a name of no platform', hosts: ['unknown.ai'], found: [['unknown.ai', 1]] },
  { name: 'hosts of one site', hosts: ['unknown.ai', 'api.unknown.ai', 'www.unknown.ai'], found: [['unknown.ai', 3]] },
  { name: 'the same name in any case', hosts: ['unknown.ai', 'UNKNOWN.AI', 'Unknown.ai.'], found: [['unknown.ai', 3]] },
  {
    name: 'two names',
    hosts: ['unknown.ai', 'llm.acme.com', 'unknown.ai'],
    found: [
      ['unknown.ai', 2],
      ['llm.acme.com', 1],
    ],
  },
  { name: 'a platform is no candidate', hosts: ['claude.ai', 'chatgpt.com'], found: [] },
  { name: 'other names are none', hosts: ['www.example.com', 'www.example.com', 'a.b'], found: [] },
]
for (const { name, hosts, found } of rows) {
  t.test(name, async (t) => {
    const opened = openPipeline(t)
    send(opened, hosts)
    const deltas = opened.pipeline.candidates.take()
    t.same(
      deltas.map((delta) => [delta.name, delta.requests]),
      found,
    )
    t.ok(deltas.every(({ organizationId }) => organizationId === opened.organization.id))
    t.ok(deltas.every(({ firstSeenMs, lastSeenMs }) => firstSeenMs === NOON && lastSeenMs === NOON))
    t.same(opened.pipeline.candidates.take(), [], 'each count is reported once')
    send(opened, hosts)
    t.equal(opened.pipeline.candidates.take().length, found.length, 'also when the names are known')
  })
}

t.test("a device's category for AI makes a candidate of any name, whatever other devices wrote before", async (t) => {
  const opened = openPipeline(t)
  const { take, token } = opened
  const host = 'www.new.example'
  const fortiGate = (category: string, name: string): string => {
    const fields = `type="utm" subtype="webfilter" srcip=192.0.2.9 hostname="${name}" catdesc="${category}"`
    const header = 'date=2026-11-20 time=12:00:00 devname="f" logid="0317013312"'
    return rfc5424(token.raw, `${header} ${fields} action="passthrough"`)
  }
  send(opened, [host, 'tool.ai'])
  take(fortiGate('News and Media', 'www.news.example'), tcp())
  for (const name of [host, 'tool.ai']) take(fortiGate('Artificial Intelligence Technology', name), tcp())
  const found = opened.pipeline.candidates.take().map(({ name, requests, isByDevice }) => [name, requests, isByDevice])
  t.same(found, [
    ['tool.ai', 2, true],
    ['new.example', 1, true],
  ])
})

t.test('clients are counted, and only as a sketch', async (t) => {
  const opened = openPipeline(t)
  for (const client of ['192.0.2.1', '192.0.2.2', '192.0.2.2', '2001:db8::1']) send(opened, ['unknown.ai'], client)
  send(opened, ['unknown.ai'], '-')
  const [delta] = opened.pipeline.candidates.take()
  t.equal(delta && clientsInSketch(delta.clients), 3)
  t.equal(delta?.requests, 5)
  t.notMatch(JSON.stringify(delta), /192\.0\.2|2001/)
})

t.test('a request shortly after an AI platform counts as with it, by the same client only', async (t) => {
  const opened = openPipeline(t)
  const { line } = opened.pipeline
  send(opened, ['claude.ai'], '192.0.2.1')
  send(opened, ['unknown.ai'], '192.0.2.1')
  send(opened, ['unknown.ai'], '192.0.2.2')
  line.referenceMs += 11 * MINUTE_MS
  send(opened, ['unknown.ai'], '192.0.2.1')
  t.match(opened.pipeline.candidates.take(), [{ requests: 3, withAi: 1 }])
})

t.test('a repeated and a dry reading add no candidates', async (t) => {
  const opened = openPipeline(t)
  for (const matched of ['repeat', 'dry'] as const) {
    const origin = tcp()
    origin.matched = matched
    send(opened, ['unknown.ai'], '192.0.2.1', origin)
  }
  t.same(opened.pipeline.candidates.take(), [])
})

t.test('a clock that is fast does not give a candidate a future', async (t) => {
  const opened = openPipeline(t)
  opened.take(rfc5424(opened.token.raw, squid('unknown.ai', '192.0.2.1', NOON + 1_000_000_000)), tcp())
  t.match(opened.pipeline.candidates.take(), [{ lastSeenMs: NOON }])
})

t.test('the table is bounded, whatever names arrive, and counts what it skips', async (t) => {
  const opened = openPipeline(t)
  const { candidates } = opened.pipeline
  const total = 20_000
  let counted = 0
  for (let round = 0; round < 2; round++) {
    send(
      opened,
      Array.from({ length: total }, (_, at) => `n${at}x${round}.ai`),
    )
    const deltas = candidates.take()
    t.ok(deltas.length <= CANDIDATES_WAITING_MAX, `${deltas.length} waiting`)
    counted += deltas.reduce((sum, { requests }) => sum + requests, 0)
  }
  const { busy, unread, full } = candidates.skipped
  t.ok(busy > 0 && unread > 0 && full > 0, JSON.stringify(candidates.skipped))
  t.equal(counted + busy + unread + full, 2 * total, 'every message is counted once')
})
