import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { HttpLogs } from '../../../engine/ingest/http-logs.ts'
import { eventsHandler, LOGS_PATH } from '../../../engine/ingest/https-batches.ts'
import { IngestAccounting, storeSink } from '../../../engine/ingest/ingest-accounting.ts'
import { makeTokenRateTable, TokenRate } from '../../../engine/ingest/rates.ts'
import type { BatchCounters } from '../../../engine/ingest/request-body.ts'
import { systemClock } from '../../../engine/kernel/process/clock.ts'
import { RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { type Ask, IMPLEMENTATIONS, serve } from '../../support/https.ts'
import { openStore, quietLog } from '../../support/store.ts'
import { squid } from '../../support/syslog-service.ts'

const NOW = Date.parse('2026-11-20T09:15:02Z')
const COLLECTOR = '/services/collector/event'

interface StartOptions {
  readonly perSecond?: number
  readonly implementation?: (typeof IMPLEMENTATIONS)[number]
}

async function startLogs(t: Test, options: StartOptions = {}) {
  const { perSecond = 0, implementation = 'node' } = options
  const opened = acmeSite(t, { unchecked: true })
  const { store, organization, administration } = opened
  const { raw } = administration.tokens.generate(organization, 'proxy')
  const counters: BatchCounters = { batches: 0, unauthorized: 0, malformed: 0, overloaded: 0 }
  const acceptor = new EventAcceptor(store, systemClock, quietLog, () => {})
  const accounting = new IngestAccounting(storeSink(store), quietLog)
  const logs = new HttpLogs({
    ...{ store, acceptor, accounting },
    known: new RegistryInForce(store),
    tokenRate: perSecond === 0 ? undefined : new TokenRate(makeTokenRateTable(), perSecond),
  })
  const handler = eventsHandler(store, acceptor, counters, { sources: accounting.sources, logs })
  const server = await serve(t, implementation, opened.directory, handler)
  const post = (path: string, body: string | Uint8Array, headers: Ask['headers'] = {}) =>
    server.ask(path, { method: 'POST', headers: { authorization: `Splunk ${raw}`, ...headers }, body })
  const stored = (): number => store.buffer.count(organization.id)
  return { ...server, post, stored, opened, logs, organization, administration, counters, accounting, raw }
}

/** Of distinct clients: messages of the same client and host are merged before they are stored. */
const lines = (count: number, network = 0): string[] =>
  Array.from({ length: count }, (_, index) => squid('claude.ai', `10.${network}.${index >> 8}.${index & 255}`, NOW))

for (const implementation of IMPLEMENTATIONS) {
  t.test(`over ${implementation}, messages are stored before the response`, async (t) => {
    const { post, stored, ask, counters } = await startLogs(t, { implementation })
    const collector = (event: unknown): string => JSON.stringify({ time: NOW / 1000, host: 'proxy-1', event })
    const [first = '', second = '', third = ''] = lines(3)
    const success = { text: 'Success', code: 0 }
    const cases: readonly { path: string; body: string; matched: number; answer: unknown }[] = [
      {
        path: LOGS_PATH,
        body: `${first}\n${second}\n\nnothing that is known\n${squid('www.example.com', '10.0.0.9', NOW)}`,
        matched: 2,
        answer: { messages: 4, matched: 2, unmatched: 1, unknown: 1, rejected: 0 },
      },
      { path: LOGS_PATH, body: `[${collector(first)},${collector(second)}]`, matched: 2, answer: { messages: 2 } },
      { path: COLLECTOR, body: collector(first) + collector(second) + collector(third), matched: 3, answer: success },
      {
        path: '/services/collector',
        body: collector({ src_ip: '10.0.0.1', url: 'https://claude.ai/', action: 'allowed', timestamp: NOW }),
        matched: 1,
        answer: success,
      },
      { path: '/services/collector/raw', body: `${first}\r\n${second}\r\n`, matched: 2, answer: success },
      { path: '/services/collector/raw/1.0', body: '', matched: 0, answer: success },
    ]
    let total = 0
    for (const { path, body, matched, answer } of cases) {
      for (const headers of [{}, { 'content-encoding': 'gzip' }]) {
        const sent = 'content-encoding' in headers ? gzipSync(body) : body
        t.match(await post(path, sent, headers), { status: 200, body: answer }, `${path} ${body.slice(0, 40)}`)
        total += matched
        t.equal(stored(), total)
      }
    }
    t.equal(counters.batches, cases.length * 2)
    for (const path of ['/services/collector/health', '/services/collector/health/1.0'])
      t.match(await ask(path), { status: 200, body: { code: 17 } })
  })
}

t.test('a request that cannot be taken is answered', async (t) => {
  const { post, stored, ask, raw } = await startLogs(t)
  const body = lines(1).join()
  const cases: readonly (readonly [name: string, path: string, headers: Ask['headers'], status: number])[] = [
    ['no token', LOGS_PATH, { authorization: '' }, 401],
    ['an unknown token', COLLECTOR, { authorization: `Splunk ${raw.slice(0, -1)}x` }, 401],
    ['another scheme', COLLECTOR, { authorization: `Basic ${raw}` }, 401],
    ['an unknown coding', LOGS_PATH, { 'content-encoding': 'br' }, 415],
    ['a damaged body', LOGS_PATH, { 'content-encoding': 'gzip' }, 400],
    ['another path', '/services/collector/ack', {}, 404],
  ]
  for (const [name, path, headers, status] of cases) t.match(await post(path, body, headers), { status }, name)
  t.match(await ask(LOGS_PATH, { headers: { authorization: `Bearer ${raw}` } }), { status: 405 })
  t.equal(stored(), 0)
})

t.test('bodies at the same time share transactions, and each waits for its own messages', async (t) => {
  const { post, stored, opened, accounting, organization } = await startLogs(t)
  const bodies = Array.from({ length: 8 }, (_, body) => post(LOGS_PATH, lines(3000, body).join('\n')))
  for (const answer of await Promise.all(bodies)) t.match(answer, { status: 200, body: { matched: 3000 } })
  t.equal(stored(), 24_000)
  await accounting.write()
  t.match(opened.store.sources.ofOrganization(organization.id), [
    { listener: 'https', received: 24_000, formats: { 'proxy-native': 24_000 } },
  ])
})

t.test('messages of a removed organization are refused', async (t) => {
  const { post, administration, organization, opened } = await startLogs(t)
  const { write } = opened.store.environment
  let isRemoved = false
  Object.assign(opened.store.environment, {
    write: (work: () => unknown) => {
      if (!isRemoved) {
        isRemoved = true
        administration.organizations.remove(organization, () => {})
      }
      return write.call(opened.store.environment, work)
    },
  })
  t.match(await post(LOGS_PATH, lines(2).join('\n')), { status: 401 })
})

t.test('a body above the rate of its token is read in part', async (t) => {
  const { post, stored } = await startLogs(t, { perSecond: 1 })
  const { status, body } = await post(LOGS_PATH, lines(100).join('\n'))
  t.equal(status, 429)
  t.equal(stored(), Number(/(\d+) messages were read/.exec(JSON.stringify(body))?.[1]))
  t.ok(stored() > 0)
  t.ok(stored() < 100)
})

t.test('without the setting, the paths do not exist', async (t) => {
  const opened = openStore(t)
  const acceptor = new EventAcceptor(opened.store, opened.clock, quietLog, () => {})
  const counters: BatchCounters = { batches: 0, unauthorized: 0, malformed: 0, overloaded: 0 }
  const { ask } = await serve(t, 'node', opened.directory, eventsHandler(opened.store, acceptor, counters))
  for (const path of [LOGS_PATH, COLLECTOR, '/services/collector/health'])
    t.match(await ask(path, { method: 'POST', body: 'x' }), { status: 404 }, path)
})
