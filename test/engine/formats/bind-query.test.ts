import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader, type NamedRow } from '../../support/log-rows.ts'

const PLAIN = 'client 192.0.2.45#2048: query: gemini.google.com IN A +'
const ANSWERED =
  'client 192.0.2.45#2048: UDP: query: gemini.google.com IN A response: NOERROR +A gemini.google.com 300 IN A 198.51.100.9'

const rows: LogRows = {
  'a file with its time, category and severity, and the object of the client': [
    '20-Nov-2026 09:15:02.123 queries: info: client @0x7fb1c0004e10 192.0.2.45#40404 (api.openai.com): query: api.openai.com IN HTTPS +E(0)K (192.0.2.53)',
    'event api.openai.com from 192.0.2.45 at 2026-11-20T09:15:02.123, unknown',
  ],
  'a view, and an IPv6 client': [
    'client 2001:db8:10::45#41212 (claude.ai): view internal: query: claude.ai IN AAAA +ED (2001:db8::53)',
    'event claude.ai from 2001:db8:10::45 at -',
  ],
  'the same after a header and a tag that no relay removed': [
    '<30>Nov 20 09:15:02 ns1 named[901]: client 2001:db8:10::45#41212 (claude.ai): view internal: query: claude.ai IN AAAA +ED (2001:db8::53)',
    'event claude.ai from 2001:db8:10::45',
  ],
  'the message id of Solaris': [
    'Nov 20 09:15:02 ns1 named[901]: [ID 873579 daemon.info] client 192.0.2.45#41212 (claude.ai): query: claude.ai IN A +',
    'event claude.ai from 192.0.2.45',
  ],
  'Infoblox adds the answer; the time of the file takes precedence over that of the relay': [
    'Nov 20 08:00:00 ib1 named[902]: infoblox-responses: 20-Nov-2026 09:15:02.046 client 192.0.2.45#40117: UDP: query: chat.deepseek.com IN A response: REFUSED -',
    'event chat.deepseek.com from 192.0.2.45 at 2026-11-20T09:15:02.046, blocked',
  ],
  'the rewrite of a policy zone, of which no query line came before': [
    '20-Nov-2026 09:15:02.123 client @0x7f 192.0.2.45#2048 (claude.ai): view inside: rpz QNAME NXDOMAIN rewrite claude.ai/A/IN via claude.ai.rpz.example.com',
    'event claude.ai from 192.0.2.45 at 2026-11-20T09:15:02.123, blocked',
  ],
  'Infoblox without the colon, with a view in numbers': [
    'infoblox-responses: 20-Nov-2026 09:15:02.046 client 192.0.2.45#40117 TCP: view 12: query: claude.ai IN A response: NOERROR +A claude.ai. 300 IN A 198.51.100.9;',
    'event claude.ai at 2026-11-20T09:15:02.046, allowed',
  ],
  'the old format': [PLAIN, 'event gemini.google.com from 192.0.2.45'],
  'the old format with a view first': [
    'client 192.0.2.45#2048: view trusted: query: gemini.google.com IN A',
    'event gemini.google.com',
  ],
  'ISO times with an offset, the name in capitals and with a dot': [
    '2026-11-20T09:15:02.123+0530 client @0x7f 192.0.2.45#2048 (x): query: API.OpenAI.com. IN TYPE65 +E(0)K (192.0.2.53) [ECS 192.0.2.0/24/0]',
    'event api.openai.com at 2026-11-20T03:45:02.123Z',
  ],
  'a very old time, without a year': [
    'Nov 20 09:15:02.123 queries: client 192.0.2.45#2048: query: claude.ai IN ANY +',
    'event claude.ai at 2026-11-20T09:15:02.123',
  ],
  'a key, and a zone of an IPv6 address': [
    'client @0x7f fe80::45%eth0#2048/key secret.example.com (claude.ai): query: claude.ai IN A +',
    'event claude.ai from fe80::45',
  ],
  'the name after the keyword is used, not the one in parentheses': [
    'client 192.0.2.45#2048 (www.example.com): query: claude.ai IN A +',
    'event claude.ai',
  ],
  'a name that equals the keyword is read correctly': [
    'client 192.0.2.45#2048 (query:): query: query: IN A + (claude.ai)',
    'noDomain from 192.0.2.45',
  ],
  'a name that looks like a client': [
    'client 192.0.2.45#2048 (client): view client: query: client.example.com IN A +',
    'event client.example.com',
  ],
  'names with underscores are legal in DNS': [
    'client 192.0.2.45#2048: query: _https._tcp.claude.ai IN SRV +',
    'event _https._tcp.claude.ai',
  ],
  ...Object.fromEntries(
    [
      ['a blank', 'claude.ai\\032x.example.com'],
      ['a dot in a label', 'claude\\.ai.example.com'],
      ['an at sign', 'jdoe\\@claude.ai'],
      ['a slash', 'claude.ai/x.example.com'],
      ['the root', '.'],
      ['a single label', 'localhost'],
      ['an address', '198.51.100.9'],
    ].map(
      ([name, asked]): NamedRow => [
        `${name} is no host`,
        [`client 192.0.2.45#2048: query: ${asked} IN A + (192.0.2.53)`, 'noDomain from 192.0.2.45'],
      ],
    ),
  ),
  ...Object.fromEntries(
    [
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
    ].map(([name, rest]): NamedRow => [`${name} is skipped`, [`client 192.0.2.45#2048: ${rest}`, 'skip']]),
  ),
  ...Object.fromEntries(
    [
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
    ].map((line): NamedRow => [`a system event of the server: ${line}`, [line, 'skip']]),
  ),
  'a name without a class': ['client 192.0.2.45#2048: query: claude.ai', 'reject: class'],
  'no name': ['client 192.0.2.45#2048: query: ', 'reject: name'],
  'a nonexistent day': [
    '31-Feb-2026 09:15:02.123 queries: info: client 192.0.2.45#2048: query: claude.ai IN A +',
    'reject: time',
  ],
  'a client without port': ['client 192.0.2.45 asked for claude.ai', 'unknown'],
  'an invalid client': ['client pc-7#12: query: claude.ai IN A', 'unknown'],
  'a category alone': ['general: claude.ai 192.0.2.45', 'unknown'],
  'a severity alone': ['error: claude.ai 192.0.2.45', 'unknown'],
  'a part of a tag': ['renamed[12]: claude.ai 192.0.2.45', 'unknown'],
  'a part of a word': ['httpclient 192.0.2.45#2048: query: claude.ai IN A', 'unknown'],
}

checkFormat(t, 'bind-query', rows)

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
