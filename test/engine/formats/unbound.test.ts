import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader, RECEIVED_MS } from '../../support/log-rows.ts'

const QUERY = '[3121:1] query: 192.0.2.45 api.cohere.com. A IN'
const REPLY = '[3123:1] reply: 192.0.2.45 api.cohere.com. A IN NOERROR 0.023100 0 66'

const rows: LogRow[] = [
  {
    name: 'a query after a header with an ISO time',
    line: '2026-11-20T09:15:02+01:00 fw unbound[3121]: [3121:1] query: 192.0.2.45 api.cohere.com. A IN',
    verdict: 'event',
    host: 'api.cohere.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'unknown',
  },
  {
    name: 'a file with seconds since 1970, an IPv6 client and a thread in hex',
    line: '[1795162502] unbound[3122:1f] info: 2001:db8:10::45 api.groq.com. HTTPS IN',
    verdict: 'event',
    host: 'api.groq.com',
    client: '2001:db8:10::45',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'a file with readable times',
    line: 'Nov 20 09:15:02 unbound[4242:e] info: 192.0.2.45 API.Groq.com. A IN',
    verdict: 'event',
    host: 'api.groq.com',
    time: '2026-11-20T09:15:02',
  },
  {
    name: 'the output of docker compose',
    line: 'unbound-1  | [1795162502] unbound[1:0] info: 192.0.2.45 api.groq.com. A IN',
    verdict: 'event',
    host: 'api.groq.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'a query without header',
    line: QUERY,
    verdict: 'event',
    host: 'api.cohere.com',
    client: '192.0.2.45',
    time: '',
  },
  {
    name: 'a reply from a server that logs no queries',
    line: REPLY,
    verdict: 'event',
    host: 'api.cohere.com',
    client: '192.0.2.45',
    action: 'allowed',
  },
  {
    name: 'a reply after a complete header',
    line: '<30>Nov 20 09:15:03 fw unbound[3123]: [3123:1] reply: 192.0.2.45 api.cohere.com. A IN REFUSED 0.023100 0 66',
    verdict: 'event',
    host: 'api.cohere.com',
    action: 'blocked',
  },
  {
    name: 'a reply that is not tagged',
    line: '[3123:1] info: 192.0.2.45 api.cohere.com. A IN NXDOMAIN 0.023100 0 66',
    verdict: 'event',
    host: 'api.cohere.com',
    action: 'unknown',
  },
  {
    name: 'process and thread taken for a tag',
    line: 'info: 192.0.2.45 api.openai.com. A IN',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
  },
  {
    name: 'a refusal of a local zone from a server that logs no queries',
    line: '[3123:1] info: deepseek.com. always_nxdomain 192.0.2.45@53433 api.deepseek.com. A IN',
    verdict: 'event',
    host: 'api.deepseek.com',
    client: '192.0.2.45',
    action: 'blocked',
  },
  {
    name: 'a refusal without its zone',
    line: '[3123:1] info: refuse 2001:db8:10::45@53433 api.deepseek.com. A IN',
    verdict: 'event',
    host: 'api.deepseek.com',
    client: '2001:db8:10::45',
    action: 'blocked',
  },
  ...['inform', 'transparent', 'static'].map(
    (word): LogRow => ({
      name: `an answer of a local zone (${word}) repeats the query`,
      line: `[3123:1] info: openai.com. ${word} 192.0.2.45@53433 api.openai.com. A IN`,
      verdict: 'skip',
    }),
  ),
  {
    name: 'the same without its zone',
    line: '[3123:1] info: transparent 192.0.2.45@53433 api.openai.com. A IN',
    verdict: 'skip',
  },
  {
    name: 'a name that is a keyword',
    line: '[3123:1] query: 192.0.2.45 query:. A IN',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  { name: 'the root', line: '[3123:1] query: 192.0.2.45 . NS IN', verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'a slash in a name', line: '[3123:1] query: 192.0.2.45 claude.ai/x.example.com. A IN', verdict: 'noDomain' },
  { name: 'a reverse lookup', line: '[3123:1] query: 192.0.2.45 45.2.0.192.in-addr.arpa. PTR IN', verdict: 'skip' },
  { name: 'the version', line: '[3123:1] query: 192.0.2.45 version.bind. TXT CH', verdict: 'skip' },
  ...[
    'info: generate keytag query _ta-4f66. NULL IN',
    'info: server stats for thread 1: 12 queries, 4 answers from cache, 8 recursions',
    'info: average recursion processing time 0.041 sec',
    'info: start of service (unbound 1.19.0).',
    'notice: init module 0: validator',
    'error: SERVFAIL <claude.ai. A IN>: all servers for this domain failed, at zone openai.com. from 198.51.100.9',
    'debug: answer from the cache failed',
  ].map(
    (text): LogRow => ({ name: `a system event of the server: ${text}`, line: `[3123:1] ${text}`, verdict: 'skip' }),
  ),
  { name: 'something else after the tag', line: 'unbound[3123]: claude.ai 192.0.2.45', verdict: 'skip' },
  {
    name: 'a name without its dot',
    line: '[3123:1] query: 192.0.2.45 claude.ai A IN',
    verdict: 'reject',
    reason: /^name/,
  },
  { name: 'no class', line: '[3123:1] query: 192.0.2.45 claude.ai. A', verdict: 'reject', reason: /^class/ },
  { name: 'no client', line: '[3123:1] query: claude.ai. A IN', verdict: 'reject', reason: /^client/ },
  {
    name: 'a nonexistent day',
    line: 'Feb 30 09:15:02 unbound[4242:e] info: 192.0.2.45 api.groq.com. A IN',
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'another program that informs', line: 'info: 192.0.2.45 visited claude.ai', verdict: 'unknown' },
  { name: 'two numbers in brackets', line: '[12:1] claude.ai 192.0.2.45', verdict: 'unknown' },
]

checkRows(t, 'unbound', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)

t.test('replies and refusals count until the source has logged queries', async (t) => {
  const refusal = '[3123:1] info: deepseek.com. always_nxdomain 192.0.2.45@53433 api.deepseek.com. A IN'
  const reader = new MessageReader()
  t.equal(reader.read(REPLY).verdict, 'event')
  t.equal(reader.read(refusal).verdict, 'event')
  t.equal(reader.read(QUERY).verdict, 'event')
  t.equal(reader.read(REPLY).verdict, 'skip')
  t.equal(reader.read(REPLY.replace('reply', 'info')).verdict, 'skip', 'not tagged')
  t.equal(reader.read(refusal).verdict, 'skip')
  t.equal(reader.read(QUERY).verdict, 'event')
})

t.test('a truncated reply, or queries of another server, hide no replies', async (t) => {
  const reader = new MessageReader()
  reader.read('[3123:1] info: 192.0.2.45 api.cohere.com. A IN ')
  t.equal(reader.read(REPLY).verdict, 'event', 'truncated')
  reader.read('client 192.0.2.45#2048: query: claude.ai IN A +')
  t.equal(reader.read(REPLY).verdict, 'event', 'of BIND')
  reader.read(QUERY)
  const answered =
    'client 192.0.2.45#2048: UDP: query: claude.ai IN A response: NOERROR +A claude.ai 300 IN A 198.51.100.9'
  t.equal(reader.read(answered).verdict, 'skip', 'each its own')
  t.equal(reader.read(REPLY).verdict, 'skip')
  const { memory } = reader
  t.equal(new MessageReader(memory, RECEIVED_MS + 3_600_000).read(REPLY).verdict, 'skip', 'an hour later')
  const later = new MessageReader(memory, RECEIVED_MS + 3_600_001)
  t.equal(later.read(REPLY).verdict, 'event', 'the server logs queries no longer')
  t.equal(later.read(answered).verdict, 'event')
})
