import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const PLAIN = 'client 192.0.2.45#2048: query: gemini.google.com IN A +'
const ANSWERED =
  'client 192.0.2.45#2048: UDP: query: gemini.google.com IN A response: NOERROR +A gemini.google.com 300 IN A 198.51.100.9'

const rows: LogRow[] = [
  {
    name: 'a file with its time, category and severity, and the object of the client',
    line: '20-Nov-2026 09:15:02.123 queries: info: client @0x7fb1c0004e10 192.0.2.45#40404 (api.openai.com): query: api.openai.com IN HTTPS +E(0)K (192.0.2.53)',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02.123',
    action: 'unknown',
  },
  {
    name: 'a view, and an IPv6 client',
    line: 'client 2001:db8:10::45#41212 (claude.ai): view internal: query: claude.ai IN AAAA +ED (2001:db8::53)',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    time: '',
  },
  {
    name: 'the same after a header and a tag that no relay removed',
    line: '<30>Nov 20 09:15:02 ns1 named[901]: client 2001:db8:10::45#41212 (claude.ai): view internal: query: claude.ai IN AAAA +ED (2001:db8::53)',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
  },
  {
    name: 'the message id of Solaris',
    line: 'Nov 20 09:15:02 ns1 named[901]: [ID 873579 daemon.info] client 192.0.2.45#41212 (claude.ai): query: claude.ai IN A +',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'Infoblox adds the answer; the time of the file takes precedence over that of the relay',
    line: 'Nov 20 08:00:00 ib1 named[902]: infoblox-responses: 20-Nov-2026 09:15:02.046 client 192.0.2.45#40117: UDP: query: chat.deepseek.com IN A response: REFUSED -',
    verdict: 'event',
    host: 'chat.deepseek.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02.046',
    action: 'blocked',
  },
  {
    name: 'the rewrite of a policy zone, of which no query line came before',
    line: '20-Nov-2026 09:15:02.123 client @0x7f 192.0.2.45#2048 (claude.ai): view inside: rpz QNAME NXDOMAIN rewrite claude.ai/A/IN via claude.ai.rpz.example.com',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02.123',
    action: 'blocked',
  },
  {
    name: 'Infoblox without the colon, with a view in numbers',
    line: 'infoblox-responses: 20-Nov-2026 09:15:02.046 client 192.0.2.45#40117 TCP: view 12: query: claude.ai IN A response: NOERROR +A claude.ai. 300 IN A 198.51.100.9;',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T09:15:02.046',
    action: 'allowed',
  },
  { name: 'the old format', line: PLAIN, verdict: 'event', host: 'gemini.google.com', client: '192.0.2.45' },
  {
    name: 'the old format with a view first',
    line: 'client 192.0.2.45#2048: view trusted: query: gemini.google.com IN A',
    verdict: 'event',
    host: 'gemini.google.com',
  },
  {
    name: 'ISO times with an offset, the name in capitals and with a dot',
    line: '2026-11-20T09:15:02.123+0530 client @0x7f 192.0.2.45#2048 (x): query: API.OpenAI.com. IN TYPE65 +E(0)K (192.0.2.53) [ECS 192.0.2.0/24/0]',
    verdict: 'event',
    host: 'api.openai.com',
    time: '2026-11-20T03:45:02.123Z',
  },
  {
    name: 'a very old time, without a year',
    line: 'Nov 20 09:15:02.123 queries: client 192.0.2.45#2048: query: claude.ai IN ANY +',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T09:15:02.123',
  },
  {
    name: 'a key, and a zone of an IPv6 address',
    line: 'client @0x7f fe80::45%eth0#2048/key secret.example.com (claude.ai): query: claude.ai IN A +',
    verdict: 'event',
    host: 'claude.ai',
    client: 'fe80::45',
  },
  {
    name: 'the name after the keyword is used, not the one in parentheses',
    line: 'client 192.0.2.45#2048 (www.example.com): query: claude.ai IN A +',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a name that equals the keyword is read correctly',
    line: 'client 192.0.2.45#2048 (query:): query: query: IN A + (claude.ai)',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a name that looks like a client',
    line: 'client 192.0.2.45#2048 (client): view client: query: client.example.com IN A +',
    verdict: 'event',
    host: 'client.example.com',
  },
  {
    name: 'names with underscores are legal in DNS',
    line: 'client 192.0.2.45#2048: query: _https._tcp.claude.ai IN SRV +',
    verdict: 'event',
    host: '_https._tcp.claude.ai',
  },
  ...[
    ['a blank', 'claude.ai\\032x.example.com'],
    ['a dot in a label', 'claude\\.ai.example.com'],
    ['an at sign', 'jdoe\\@claude.ai'],
    ['a slash', 'claude.ai/x.example.com'],
    ['the root', '.'],
    ['a single label', 'localhost'],
    ['an address', '198.51.100.9'],
  ].map(
    ([name, asked]): LogRow => ({
      name: `${name} is no host`,
      line: `client 192.0.2.45#2048: query: ${asked} IN A + (192.0.2.53)`,
      verdict: 'noDomain',
      client: '192.0.2.45',
    }),
  ),
  ...[
    ['a reverse lookup', 'query: 45.2.0.192.in-addr.arpa IN PTR + (192.0.2.53)'],
    ['the version', 'query: version.bind CH TXT + (192.0.2.53)'],
    ['an answer of EfficientIP', ': answer: claude.ai IN A +EDC (192.0.2.53) -> NOERROR 198.51.100.9'],
    ['an answer of BIND 9.20', 'response: claude.ai IN A NOERROR + (192.0.2.53)'],
    ['a refusal', "query (cache) 'claude.ai/A/IN' denied"],
    ['a failure', 'query failed (SERVFAIL) for claude.ai/IN/A at query.c:7824'],
    ['a policy zone that lets pass', 'rpz QNAME PASSTHRU rewrite claude.ai/A/IN via claude.ai.rpz.example.com'],
    ['an update', "updating zone 'example.com/IN': adding an RR at 'claude.ai' A 198.51.100.9"],
    ['a transfer', "transfer of 'example.com/IN': AXFR started"],
    ['a notify', "received notify for zone 'claude.ai'"],
    ['a signature', 'signer "claude.ai" approved'],
  ].map(
    ([name, rest]): LogRow => ({
      name: `${name} is skipped`,
      line: `client 192.0.2.45#2048: ${rest}`,
      verdict: 'skip',
    }),
  ),
  ...[
    '20-Nov-2026 09:15:02.123 query-errors: info: client @0x7f 192.0.2.45#2048 (claude.ai): query failed (SERVFAIL) for claude.ai/IN/A at query.c:7824',
    "20-Nov-2026 09:15:02.123 lame-servers: info: timed out resolving 'claude.ai/A/IN': 198.51.100.9#53",
    '2026-11-20T09:15:02.123Z resolver: notice: DNS format error from 198.51.100.9#53 resolving claude.ai/A',
    'general: info: zone example.com/IN: loaded serial 2026112001',
    "named[901]: success resolving 'claude.ai/A' after disabling EDNS",
    "timed out resolving 'claude.ai/A/IN': 198.51.100.9#53",
    "FORMERR resolving 'claude.ai/A/IN': 198.51.100.9#53",
    "lame-servers: success resolving 'claude.ai/A' after disabling EDNS",
    'error: zone claude.ai/IN: expired',
    '20-Nov-2026 09:15:02.123 zone claude.ai/IN: loaded serial 7',
    'validating claude.ai/A: no valid signature found',
    'zone claude.ai/IN: sending notifies (serial 7)',
    'DHCPACK on 192.0.2.45 to 00:00:5e:00:53:01 (claude.ai) via eth0',
  ].map((line): LogRow => ({ name: `a system event of the server: ${line}`, line, verdict: 'skip' })),
  {
    name: 'a name without a class',
    line: 'client 192.0.2.45#2048: query: claude.ai',
    verdict: 'reject',
    reason: /^class/,
  },
  { name: 'no name', line: 'client 192.0.2.45#2048: query: ', verdict: 'reject', reason: /^name/ },
  {
    name: 'a nonexistent day',
    line: '31-Feb-2026 09:15:02.123 queries: info: client 192.0.2.45#2048: query: claude.ai IN A +',
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'a client without port', line: 'client 192.0.2.45 asked for claude.ai', verdict: 'unknown' },
  { name: 'an invalid client', line: 'client pc-7#12: query: claude.ai IN A', verdict: 'unknown' },
  { name: 'a category alone', line: 'general: claude.ai 192.0.2.45', verdict: 'unknown' },
  { name: 'a severity alone', line: 'error: claude.ai 192.0.2.45', verdict: 'unknown' },
  { name: 'a part of a tag', line: 'renamed[12]: claude.ai 192.0.2.45', verdict: 'unknown' },
  { name: 'a part of a word', line: 'httpclient 192.0.2.45#2048: query: claude.ai IN A', verdict: 'unknown' },
]

checkRows(t, 'bind-query', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)

t.test('an answer counts, unless its query was logged', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(ANSWERED).verdict, 'event')
  t.equal(reader.read(ANSWERED.slice(0, ANSWERED.indexOf(' response'))).verdict, 'event', 'truncated before its answer')
  t.equal(reader.read(ANSWERED).verdict, 'event', 'a truncated line is no query')
  const ofAnother = PLAIN.replace('gemini.google.com', 'claude.ai')
  t.equal(reader.read(ofAnother).verdict, 'event')
  t.equal(reader.read(ANSWERED).verdict, 'event', 'beside the queries of another server')
  t.equal(reader.read(PLAIN.replace('gemini.google.com', 'Gemini.Google.com')).verdict, 'event')
  t.equal(reader.read(ANSWERED).verdict, 'skip')
})
