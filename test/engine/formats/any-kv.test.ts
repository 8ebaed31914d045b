import t from 'tap'
import { checkGrowth, checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const LINE =
  'time="2026-11-20T08:15:02Z" vendor=acme client_ip=192.0.2.45 dst_ip=198.51.100.20 method=CONNECT url=chatgpt.com:443 verdict=allowed bytes=1234 referer="https://referer.example/" user_agent="x url=https://evil.example/"'
const TABS =
  '2026-11-20 09:15:02\treason=Allowed by rule url=x\tevent_id=7\tprotocol=HTTPS\taction=Blocked\tserverip=198.51.100.20\trequestmethod=CONNECT\tClientIP=192.0.2.45\tuser=jdoe@mail.example\turl=chatgpt.com:443\thostname=chatgpt.com\tclientpublicIP=203.0.113.7'

const rows: LogRow[] = [
  {
    name: 'a host and its port in place of a URL',
    line: LINE,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'TABs between the pairs, and the time before them',
    line: TABS,
    verdict: 'event',
    format: 'zscaler',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'blocked',
  },
  {
    name: 'carets between the pairs',
    line: 'ZSCALERNSS: time=Fri Nov 20 09:15:02 2026^^timezone=GMT^^action=Allowed^^user=jdoe@mail.example^^cip=2001:db8:10::45^^url=claude.ai/chat a=b^^host=claude.ai',
    verdict: 'event',
    format: 'zscaler',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    time: '2026-11-20T09:15:02Z',
    action: 'allowed',
  },
  {
    name: 'commas between the pairs, in another case, with a port at the client',
    line: 'Date=2026-11-20,Time=09:15:02,TZ=+0100,SRC=192.0.2.45:50222,Q-Name=API.OpenAI.com.,Disposition=deny',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'blocked',
  },
  {
    name: "a query has priority over a name that may be the machine's own",
    line: 'ts=1795162502 hostname=ns1.example.com client=192.0.2.45 qname=claude.ai qtype=A',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: "a URL has priority over a name that may be the machine's own",
    line: 'ts=1795162502 host=fw.example.com src=192.0.2.45 url="https://user:pw@claude.ai:8443/x"',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'a request as HTTP has it',
    line: 'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 request="GET https://claude.ai/ HTTP/1.1"',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a host beside a connection, which may be the device that reports the connection',
    line: 'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 dpt=443 host=claude.ai',
    verdict: 'ambiguous',
    client: '192.0.2.45',
    reason: /^host/,
  },
  {
    name: 'a host of a proxy request',
    line: 'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 dpt=443 method=CONNECT host=claude.ai',
    verdict: 'event',
    host: 'claude.ai',
  },
  { name: 'no time', line: 'a=1 src=192.0.2.45 domain=claude.ai', verdict: 'event', host: 'claude.ai', time: '' },
  {
    name: 'a name in Unicode',
    line: 'a=1 src=192.0.2.45 domain="bücher.example"',
    verdict: 'event',
    host: 'xn--bcher-kva.example',
  },
  {
    name: 'the machine itself',
    line: 'ts=1795162502 hostname=pc-7.example.com ip=192.0.2.45 mac=aa:bb msg="lease"',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a file as the URL',
    line: 'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 uri=setup.zip',
    verdict: 'noDomain',
  },
  {
    name: 'a path as the URL',
    line: 'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 url=/eicar.com',
    verdict: 'noDomain',
  },
  {
    name: 'a file, a mail, a referer, an issuer',
    line: 'ts=1795162502 src=192.0.2.45 file=eicar.com name=setup.zip email=a@mail.example referer=https://referer.example/ issuer=ca.example.com',
    verdict: 'noDomain',
  },
  {
    name: 'addresses',
    line: 'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 domain=198.51.100.20 sni=- url=-',
    verdict: 'noDomain',
  },
  ...['from=a@openai.com', 'from=<>', 'spf=pass', 'mailfrom=openai.com', 'rcpt=b@example.com', 'dkim=pass'].map(
    (pair): LogRow => ({
      name: `a mail: ${pair}`,
      line: `ts=1795162502 ${pair} src=192.0.2.45 domain=openai.com`,
      verdict: 'noDomain',
    }),
  ),
  {
    name: 'the source address of a connection',
    line: 'ts=1795162502 from=192.0.2.45 src=192.0.2.45 domain=openai.com action="Blocked by policy"',
    verdict: 'event',
    host: 'openai.com',
    action: 'blocked',
  },
  { name: 'a single label', line: 'ts=1795162502 src=192.0.2.45 domain=intranet', verdict: 'noDomain' },
  {
    name: 'a reverse lookup',
    line: 'ts=1795162502 src=192.0.2.45 query=45.2.0.192.in-addr.arpa',
    verdict: 'skip',
    host: '45.2.0.192.in-addr.arpa',
  },
  {
    name: 'a system event without a client',
    line: 'ts=1795162502 level=info msg="checked update.example.com" domain=update.example.com',
    verdict: 'skip',
  },
  { name: 'a nonexistent hour', line: LINE.replace('T08', 'T28'), verdict: 'reject', reason: /^time/ },
  {
    name: 'a message that is truncated inside the host',
    line: 'ts=1795162502 src=192.0.2.45 url="https://chatgpt.co',
    verdict: 'reject',
    reason: /^host/,
  },
  ...(
    [
      ['Sep 20, 2026 @ 09:15:02.123', '2026-09-20T09:15:02.123'],
      ['Nov 20, 2026 09:15:02 PM', '2026-11-20T21:15:02'],
      ['20.11.2026, 21:15:02', '2026-11-20T21:15:02'],
      ['20/11/2026 9:15:02 p.m.', '2026-11-20T21:15:02'],
    ] as const
  ).map(
    ([time, is]): LogRow => ({
      name: `a time as ${time}`,
      line: `time="${time}" src=192.0.2.45 domain=claude.ai`,
      verdict: 'event',
      host: 'claude.ai',
      time: is,
    }),
  ),
  { name: 'settings', line: 'a=b c=d domain=claude.ai', verdict: 'unknown' },
  { name: 'two pairs', line: 'src=192.0.2.45 domain=claude.ai', verdict: 'unknown' },
  { name: 'one pair in a text', line: 'the server said x=1 to 192.0.2.45 about claude.ai', verdict: 'unknown' },
]

checkRows(t, 'any-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
checkGrowth(t, {
  'other pairs': (bytes) => 'abc=d '.repeat(bytes / 6),
  'many hosts that are none': (bytes) => `src=192.0.2.45 ${'domain=x '.repeat(bytes / 9)}`,
  'equals signs': (bytes) => '='.repeat(bytes),
  'a long URL': (bytes) => `src=192.0.2.45 a=b url=https://claude.ai/${'x'.repeat(bytes)}`,
})

t.test('a source that changes its format is read in each', async (t) => {
  const reader = new MessageReader()
  const messages = [
    ['any-kv', LINE],
    [
      'firewall-kv',
      'date=2026-11-20 time=09:15:02 devid=x type=utm subtype=webfilter srcip=192.0.2.45 hostname=chatgpt.com',
    ],
    ['open-firewall-csv', 'DNSBL-python,Nov 20 09:15:02,chatgpt.com,192.0.2.45,Python,DNSBL'],
    ['zscaler', TABS],
  ] as const
  for (const [format, message] of [...messages, ...messages]) {
    const read = reader.read(message)
    t.equal(read.format, format)
    t.equal(read.host, 'chatgpt.com')
  }
})
