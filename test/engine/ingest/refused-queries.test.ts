import t from 'tap'
import type { MessagePipeline } from '../../../engine/ingest/message-pipeline.ts'
import { Origin } from '../../../engine/ingest/origin.ts'
import { QUESTION_HOLD_MS } from '../../../engine/limits.ts'
import { eventsOf, openPipeline } from '../../support/pipeline.ts'
import { rfc5424 } from '../../support/syslog-service.ts'

/* DNS servers that say in a later line that they blocked the query of an earlier one. */

interface Server {
  readonly name: string
  /** The lines of a query that is blocked, or of the same query when it is allowed. */
  readonly blocked: (client: string, name: string) => string[]
  readonly allowed: (client: string, name: string) => string[]
}

const dnsmasq = (client: string, name: string): string => `query[A] ${name} from ${client}`
const extra = (client: string, text: string): string => `17 ${client}/51234 ${text}`
const bind = (client: string, name: string): string =>
  `client @0x7f ${client}#5353 (${name}): query: ${name} IN A + (192.0.2.53)`
const rpz = (client: string, name: string, policy: string): string =>
  `client @0x7f ${client}#5353 (${name}): rpz QNAME ${policy} rewrite ${name}/A/IN via ${name}.rpz.example.com`
const unbound = (client: string, text: string): string => `[3123:1] info: ${text.replace('CLIENT', client)}`
const question = (client: string, name: string): string => unbound(client, `CLIENT ${name}. A IN`)

const servers: readonly Server[] = [
  ...[
    ...['gravity blocked', 'exactly denied', 'regex denied', 'regex blacklisted', 'gravity blocked (CNAME)'],
    ...['blocked upstream with NULL address', 'blocked upstream with EDE15'],
  ].map((words) => ({
    name: `Pi-hole, ${words}`,
    blocked: (client: string, name: string) => [dnsmasq(client, name), `${words} ${name} is 0.0.0.0`],
    allowed: (client: string, name: string) => [dnsmasq(client, name), `forwarded ${name} to 9.9.9.9`],
  })),
  ...['0.0.0.0', '::', '127.0.0.1', 'NXDOMAIN', 'NODATA-IPv6'].map((answer) => ({
    name: `dnsmasq, an address of its settings: ${answer}`,
    blocked: (client: string, name: string) => [dnsmasq(client, name), `config ${name} is ${answer}`],
    allowed: (client: string, name: string) => [dnsmasq(client, name), `config ${name} is 198.51.100.9`],
  })),
  {
    name: 'dnsmasq, an answer that a server before it blocked',
    blocked: (client, name) => [dnsmasq(client, name), `forwarded ${name} to 9.9.9.9`, `reply ${name} is 0.0.0.0`],
    allowed: (client, name) => [dnsmasq(client, name), `forwarded ${name} to 9.9.9.9`, `reply ${name} is NXDOMAIN`],
  },
  {
    name: 'dnsmasq with log-queries=extra',
    blocked: (client, name) =>
      [dnsmasq(client, name), `gravity blocked ${name} is 0.0.0.0`].map((text) => extra(client, text)),
    allowed: (client, name) =>
      [dnsmasq(client, name), `cached ${name} is 198.51.100.9`].map((text) => extra(client, text)),
  },
  ...['NXDOMAIN', 'NODATA', 'DROP', 'CNAME', 'Local-Data'].map((policy) => ({
    name: `BIND, a response policy zone: ${policy}`,
    blocked: (client: string, name: string) => [bind(client, name), rpz(client, name, policy)],
    allowed: (client: string, name: string) => [bind(client, name), rpz(client, name, 'PASSTHRU')],
  })),
  {
    name: 'Unbound, a local zone',
    blocked: (client, name) => [
      question(client, name),
      unbound(client, `${name}. always_nxdomain CLIENT@5353 ${name}. A IN`),
    ],
    allowed: (client, name) => [
      question(client, name),
      unbound(client, `${name}. transparent CLIENT@5353 ${name}. A IN`),
    ],
  },
  {
    name: 'Unbound, a response policy zone',
    blocked: (client, name) => [
      question(client, name),
      unbound(client, `rpz: applied [list] ${name}. rpz-nxdomain CLIENT@5353 ${name}. A IN`),
    ],
    allowed: (client, name) => [
      question(client, name),
      unbound(client, `rpz: applied [list] ${name}. rpz-passthru CLIENT@5353 ${name}. A IN`),
    ],
  },
]

const tcp = (): Origin => new Origin('tcp', '192.0.2.200', 514)

/** Events that are taken: `client name count/blocked`, sorted. */
function textsOf(pipeline: MessagePipeline, which: 'due' | 'all' = 'all'): string[] {
  return eventsOf(pipeline.takeBatches(which))
    .map(({ client, name, count, blocked = 0 }) => `${client} ${name} ${count}/${blocked}`)
    .sort()
}

for (const { name, blocked, allowed, holdsQuestions } of servers.flatMap((server) =>
  [true, false].map((holdsQuestions) => ({ ...server, holdsQuestions })),
)) {
  t.test(`${name}; queries ${holdsQuestions ? 'wait' : 'are in the batch of the others'}`, async (t) => {
    const { pipeline, take, token } = openPipeline(t, { holdsQuestions })
    const origin = tcp()
    const send = (lines: readonly string[]): unknown[] => lines.map((line) => take(rfc5424(token.raw, line), origin))
    for (let count = 0; count < 30; count++) {
      t.same(send(blocked('192.0.2.45', 'claude.ai')).slice(0, 2), ['stored', 'skipped'])
    }
    send(allowed('192.0.2.45', 'claude.ai'))
    send(blocked('192.0.2.46', 'Claude.AI'))
    send(allowed('192.0.2.47', 'claude.ai'))
    send(blocked('192.0.2.45', 'www.example.com'))
    t.same(textsOf(pipeline), ['192.0.2.45 claude.ai 31/30', '192.0.2.46 claude.ai 1/1', '192.0.2.47 claude.ai 1/0'])
  })
}

t.test('a line that says that a query was blocked is enough where the server logs no queries', async (t) => {
  const { pipeline, take, token } = openPipeline(t)
  take(rfc5424(token.raw, rpz('192.0.2.45', 'claude.ai', 'NXDOMAIN')), tcp())
  take(rfc5424(token.raw, 'gravity blocked claude.ai is 0.0.0.0'), tcp())
  t.same(textsOf(pipeline), ['192.0.2.45 claude.ai 1/1'], 'the second line names no client')
})

t.test('a name with the words of such a line refuses no query', async (t) => {
  const { pipeline, take, token } = openPipeline(t)
  const origin = tcp()
  for (const line of [
    dnsmasq('192.0.2.45', 'claude.ai'),
    'gravity blocked claude.ai is 0.0.0.0 is 0.0.0.0',
    'config claude.ai is 0.0.0.0 is 198.51.100.9',
    dnsmasq('192.0.2.66', 'gravity blocked claude.ai is 0.0.0.0'),
    'forwarded gravity blocked claude.ai is 0.0.0.0 to 9.9.9.9',
  ]) {
    take(rfc5424(token.raw, line), origin)
  }
  t.same(textsOf(pipeline), ['192.0.2.45 claude.ai 1/0'])
})

t.test('the query log of Infoblox and its policy zone in CEF are one query', async (t) => {
  const { pipeline, take, token } = openPipeline(t)
  const origin = tcp()
  const cef =
    'CEF:0|Infoblox|NIOS|8.6.2|RPZ-QNAME|NXDOMAIN|7|app=DNS dst=192.0.2.53 src=192.0.2.45 spt=5353 view=_default qtype=A msg="rpz QNAME NXDOMAIN rewrite claude.ai [A] via claude.ai.rpz.example.org" CAT=RPZ'
  for (const line of [bind('192.0.2.45', 'claude.ai'), cef]) take(rfc5424(token.raw, line), origin)
  t.same(textsOf(pipeline), ['192.0.2.45 claude.ai 1/1'])
})

t.test('a query waits for the line that says that it was blocked', async (t) => {
  const { pipeline, take, token } = openPipeline(t, { holdsQuestions: true })
  const origin = tcp()
  const send = (line: string): unknown => take(rfc5424(token.raw, line), origin)
  send(dnsmasq('192.0.2.45', 'claude.ai'))
  t.same(textsOf(pipeline, 'due'), [], 'the first batch turns')
  t.same(textsOf(pipeline, 'due'), [], 'it is not due yet')
  send('gravity blocked claude.ai is 0.0.0.0')
  const until = performance.now() + QUESTION_HOLD_MS
  while (performance.now() < until) await new Promise((resolve) => setTimeout(resolve, until - performance.now()))
  t.same(textsOf(pipeline, 'due'), ['192.0.2.45 claude.ai 1/1'])
  t.equal(pipeline.unsettled, 1)
})
