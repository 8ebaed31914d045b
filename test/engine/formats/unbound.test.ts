import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader, type NamedRow, RECEIVED_MS } from '../../support/log-rows.ts'

const QUERY = '[3121:1] query: 192.0.2.45 api.cohere.com. A IN'
const REPLY = '[3123:1] reply: 192.0.2.45 api.cohere.com. A IN NOERROR 0.023100 0 66'

const rows: LogRows = {
  'a query after a header with an ISO time': [
    '2026-11-20T09:15:02+01:00 fw unbound[3121]: [3121:1] query: 192.0.2.45 api.cohere.com. A IN',
    'event api.cohere.com from 192.0.2.45 at 2026-11-20T08:15:02Z, unknown',
  ],
  'a file with seconds since 1970, an IPv6 client and a thread in hex': [
    '[1795162502] unbound[3122:1f] info: 2001:db8:10::45 api.groq.com. HTTPS IN',
    'event api.groq.com from 2001:db8:10::45 at 2026-11-20T08:15:02Z',
  ],
  'a file with readable times': [
    'Nov 20 09:15:02 unbound[4242:e] info: 192.0.2.45 API.Groq.com. A IN',
    'event api.groq.com at 2026-11-20T09:15:02',
  ],
  'the output of docker compose': [
    'unbound-1  | [1795162502] unbound[1:0] info: 192.0.2.45 api.groq.com. A IN',
    'event api.groq.com from 192.0.2.45 at 2026-11-20T08:15:02Z',
  ],
  'a query without header': [QUERY, 'event api.cohere.com from 192.0.2.45 at -'],
  'a reply from a server that logs no queries': [REPLY, 'event api.cohere.com from 192.0.2.45, allowed'],
  'a reply after a complete header': [
    '<30>Nov 20 09:15:03 fw unbound[3123]: [3123:1] reply: 192.0.2.45 api.cohere.com. A IN REFUSED 0.023100 0 66',
    'event api.cohere.com, blocked',
  ],
  'a reply that is not tagged': [
    '[3123:1] info: 192.0.2.45 api.cohere.com. A IN NXDOMAIN 0.023100 0 66',
    'event api.cohere.com, unknown',
  ],
  'process and thread taken for a tag': [
    'info: 192.0.2.45 api.openai.com. A IN',
    'event api.openai.com from 192.0.2.45',
  ],
  'a refusal of a local zone from a server that logs no queries': [
    '[3123:1] info: deepseek.com. always_nxdomain 192.0.2.45@53433 api.deepseek.com. A IN',
    'event api.deepseek.com from 192.0.2.45, blocked',
  ],
  'a refusal without its zone': [
    '[3123:1] info: refuse 2001:db8:10::45@53433 api.deepseek.com. A IN',
    'event api.deepseek.com from 2001:db8:10::45, blocked',
  ],
  ...Object.fromEntries(
    ['inform', 'transparent', 'static'].map(
      (word): NamedRow => [
        `an answer of a local zone (${word}) repeats the query`,
        [`[3123:1] info: openai.com. ${word} 192.0.2.45@53433 api.openai.com. A IN`, 'skip'],
      ],
    ),
  ),
  'the same without its zone': ['[3123:1] info: transparent 192.0.2.45@53433 api.openai.com. A IN', 'skip'],
  'a name that is a keyword': ['[3123:1] query: 192.0.2.45 query:. A IN', 'noDomain from 192.0.2.45'],
  'the root': ['[3123:1] query: 192.0.2.45 . NS IN', 'noDomain from 192.0.2.45'],
  'a slash in a name': ['[3123:1] query: 192.0.2.45 claude.ai/x.example.com. A IN', 'noDomain'],
  'a reverse lookup': ['[3123:1] query: 192.0.2.45 45.2.0.192.in-addr.arpa. PTR IN', 'skip'],
  'the version': ['[3123:1] query: 192.0.2.45 version.bind. TXT CH', 'skip'],
  ...Object.fromEntries(
    [
      'info: generate keytag query _ta-4f66. NULL IN',
      'info: server stats for thread 1: 12 queries, 4 answers from cache, 8 recursions',
      'info: average recursion processing time 0.041 sec',
      'info: start of service (unbound 1.19.0).',
      'notice: init module 0: validator',
      'error: SERVFAIL <claude.ai. A IN>: all servers for this domain failed, at zone openai.com. from 198.51.100.9',
      'debug: answer from the cache failed',
    ].map((text): NamedRow => [`a system event of the server: ${text}`, [`[3123:1] ${text}`, 'skip']]),
  ),
  'something else after the tag': ['unbound[3123]: claude.ai 192.0.2.45', 'skip'],
  'a name without its dot': ['[3123:1] query: 192.0.2.45 claude.ai A IN', 'reject: name'],
  'no class': ['[3123:1] query: 192.0.2.45 claude.ai. A', 'reject: class'],
  'no client': ['[3123:1] query: claude.ai. A IN', 'reject: client'],
  'a nonexistent day': ['Feb 30 09:15:02 unbound[4242:e] info: 192.0.2.45 api.groq.com. A IN', 'reject: time'],
  'another program that informs': ['info: 192.0.2.45 visited claude.ai', 'unknown'],
  'two numbers in brackets': ['[12:1] claude.ai 192.0.2.45', 'unknown'],
}

checkFormat(t, 'unbound', rows)

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
