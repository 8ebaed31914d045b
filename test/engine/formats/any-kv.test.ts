import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader, type NamedRow } from '../../support/log-rows.ts'

const LINE =
  'time="2026-11-20T08:15:02Z" vendor=acme client_ip=192.0.2.45 dst_ip=198.51.100.20 method=CONNECT url=chatgpt.com:443 verdict=allowed bytes=1234 referer="https://referer.example/" user_agent="x url=https://evil.example/"'
const TABS =
  '2026-11-20 09:15:02\treason=Allowed by rule url=x\tevent_id=7\tprotocol=HTTPS\taction=Blocked\tserverip=198.51.100.20\trequestmethod=CONNECT\tClientIP=192.0.2.45\tuser=jdoe@mail.example\turl=chatgpt.com:443\thostname=chatgpt.com\tclientpublicIP=203.0.113.7'

const rows: LogRows = {
  'a host and its port in place of a URL': [LINE, 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed'],
  'TABs between the pairs, and the time before them': [
    TABS,
    'event chatgpt.com from 192.0.2.45 at 2026-11-20T09:15:02, blocked',
    { format: 'zscaler' },
  ],
  'carets between the pairs': [
    'ZSCALERNSS: time=Fri Nov 20 09:15:02 2026^^timezone=GMT^^action=Allowed^^user=jdoe@mail.example^^cip=2001:db8:10::45^^url=claude.ai/chat a=b^^host=claude.ai',
    'event claude.ai from 2001:db8:10::45 at 2026-11-20T09:15:02Z, allowed',
    { format: 'zscaler' },
  ],
  'commas between the pairs, in another case, with a port at the client': [
    'Date=2026-11-20,Time=09:15:02,TZ=+0100,SRC=192.0.2.45:50222,Q-Name=API.OpenAI.com.,Disposition=deny',
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, blocked',
  ],
  "a query has priority over a name that may be the machine's own": [
    'ts=1795162502 hostname=ns1.example.com client=192.0.2.45 qname=claude.ai qtype=A',
    'event claude.ai',
  ],
  "a URL has priority over a name that may be the machine's own": [
    'ts=1795162502 host=fw.example.com src=192.0.2.45 url="https://user:pw@claude.ai:8443/x"',
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'a request as HTTP has it': [
    'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 request="GET https://claude.ai/ HTTP/1.1"',
    'event claude.ai',
  ],
  'a host beside a connection, which may be the device that reports the connection': [
    'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 dpt=443 host=claude.ai',
    'ambiguous from 192.0.2.45: host',
  ],
  'a host of a proxy request': [
    'ts=1795162502 src=192.0.2.45 dst=198.51.100.20 dpt=443 method=CONNECT host=claude.ai',
    'event claude.ai',
  ],
  'no time': ['a=1 src=192.0.2.45 domain=claude.ai', 'event claude.ai at -'],
  'a name in Unicode': ['a=1 src=192.0.2.45 domain="bücher.example"', 'event xn--bcher-kva.example'],
  'the machine itself': [
    'ts=1795162502 hostname=pc-7.example.com ip=192.0.2.45 mac=aa:bb msg="lease"',
    'noDomain from 192.0.2.45',
  ],
  'a file as the URL': ['ts=1795162502 src=192.0.2.45 dst=198.51.100.20 uri=setup.zip', 'noDomain'],
  'a path as the URL': ['ts=1795162502 src=192.0.2.45 dst=198.51.100.20 url=/eicar.com', 'noDomain'],
  'a file, a mail, a referer, an issuer': [
    'ts=1795162502 src=192.0.2.45 file=eicar.com name=setup.zip email=a@mail.example referer=https://referer.example/ issuer=ca.example.com',
    'noDomain',
  ],
  addresses: ['ts=1795162502 src=192.0.2.45 dst=198.51.100.20 domain=198.51.100.20 sni=- url=-', 'noDomain'],
  ...Object.fromEntries(
    ['from=a@openai.com', 'from=<>', 'spf=pass', 'mailfrom=openai.com', 'rcpt=b@example.com', 'dkim=pass'].map(
      (pair): NamedRow => [`a mail: ${pair}`, [`ts=1795162502 ${pair} src=192.0.2.45 domain=openai.com`, 'noDomain']],
    ),
  ),
  'the source address of a connection': [
    'ts=1795162502 from=192.0.2.45 src=192.0.2.45 domain=openai.com action="Blocked by policy"',
    'event openai.com, blocked',
  ],
  'a single label': ['ts=1795162502 src=192.0.2.45 domain=intranet', 'noDomain'],
  'a reverse lookup': ['ts=1795162502 src=192.0.2.45 query=45.2.0.192.in-addr.arpa', 'skip 45.2.0.192.in-addr.arpa'],
  'a system event without a client': [
    'ts=1795162502 level=info msg="checked update.example.com" domain=update.example.com',
    'skip',
  ],
  'a nonexistent hour': [LINE.replace('T08', 'T28'), 'reject: time'],
  'a message that is truncated inside the host': [
    'ts=1795162502 src=192.0.2.45 url="https://chatgpt.co',
    'reject: host',
  ],
  ...Object.fromEntries(
    (
      [
        ['Sep 20, 2026 @ 09:15:02.123', '2026-09-20T09:15:02.123'],
        ['Nov 20, 2026 09:15:02 PM', '2026-11-20T21:15:02'],
        ['20.11.2026, 21:15:02', '2026-11-20T21:15:02'],
        ['20/11/2026 9:15:02 p.m.', '2026-11-20T21:15:02'],
      ] as const
    ).map(
      ([time, is]): NamedRow => [
        `a time as ${time}`,
        [`time="${time}" src=192.0.2.45 domain=claude.ai`, `event claude.ai at ${is}`],
      ],
    ),
  ),
  settings: ['a=b c=d domain=claude.ai', 'unknown'],
  'two pairs': ['src=192.0.2.45 domain=claude.ai', 'unknown'],
  'one pair in a text': ['the server said x=1 to 192.0.2.45 about claude.ai', 'unknown'],
}

checkFormat(t, 'any-kv', rows, {
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
