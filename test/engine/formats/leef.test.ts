import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader } from '../../support/log-rows.ts'

const WATCHGUARD =
  'LEEF:1.0|WatchGuard|XTM|12.10.1|1AFF0024|serial=S1\tpolicy=HTTPS-00\tdisp=Allow\tsrc=192.0.2.45\tsrcPort=50301\tdst=198.51.100.20\tdstPort=443\tproto=tcp\top=GET\tdstname=copilot.microsoft.com\targ=/\tsent_bytes=733'
const PAN =
  'LEEF:1.0|Palo Alto Networks|PAN-OS Syslog Integration|10.1|(9999)|ReceiveTime=2026/11/20 09:15:02|SerialNumber=007|cat=THREAT|Subtype=url|devTime=Nov 20 2026 08:15:01 GMT|src=192.0.2.45|dst=198.51.100.20|usrName=corp\\tom|Miscellaneous="api.openai.com/v1?a=b,c"|action=block-url'

const rows: LogRows = {
  'WatchGuard with TABs': [WATCHGUARD, 'event copilot.microsoft.com from 192.0.2.45, allowed'],
  'TABs as rsyslog writes them': [WATCHGUARD.replaceAll('\t', '#011'), 'event copilot.microsoft.com from 192.0.2.45'],
  'TABs as two characters': [WATCHGUARD.replaceAll('\t', '\\t'), 'event copilot.microsoft.com from 192.0.2.45'],
  'TABs that became blanks': [WATCHGUARD.replaceAll('\t', ' '), 'event copilot.microsoft.com from 192.0.2.45'],
  'what a relay left when it took LEEF for a tag': [WATCHGUARD.slice(5), 'event copilot.microsoft.com from 192.0.2.45'],
  'after a header that was not recognized': [
    `Nov 20 09:15:02 fw.example.org ${WATCHGUARD}\n`,
    'event copilot.microsoft.com',
  ],
  'WatchGuard DNS': [
    'LEEF:1.0|WatchGuard|XTM|12.10.1|1DFF0003|disp=Deny\tsrc=2001:db8::45\tdst=192.0.2.53\tquestion=api.deepseek.com\tmsg=DNS question',
    'event api.deepseek.com from 2001:db8::45, blocked',
  ],
  'WatchGuard packet filter': [
    'LEEF:1.0|WatchGuard|XTM|12.10.1|30000148|disp=Allow\tsrc=192.0.2.45\tdst=198.51.100.20\tpolicy=Any.Out.example',
    'noDomain from 192.0.2.45',
  ],
  'PAN-OS with bars between the pairs': [PAN, 'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:01Z, blocked'],
  'PAN-OS after a relay': [PAN.slice(5), 'event api.openai.com'],
  'PAN-OS: the file of a threat is no host': [
    PAN.replace('(9999)', 'x(123)')
      .replace('Subtype=url', 'Subtype=virus')
      .replace('api.openai.com/v1?a=b,c', 'malware.com'),
    'skip',
  ],
  'PAN-OS traffic': [PAN.replace('cat=THREAT|Subtype=url', 'cat=TRAFFIC|Subtype=end'), 'noDomain'],
  '2.0 with a circumflex, and the day first': [
    'LEEF:2.0|Zscaler|NSS|5.0|Allowed|^|devTime=05/11/2026 09:15:02^devTimeFormat=dd/MM/yyyy HH:mm:ss^src=192.0.2.45^url=claude.ai/new chat^usrName=jdoe@example.com',
    'event claude.ai from 192.0.2.45 at 2026-11-05T09:15:02',
  ],
  '2.0 with the code of a circumflex, and the month first': [
    'LEEF:2.0|Zscaler|NSS|5.0|Allowed|0x5E|devTime=05/11/2026 09:15:02^devTimeFormat=MM/dd/yyyy HH:mm:ss^src=192.0.2.45^url=https://claude.ai/',
    'event claude.ai at 2026-05-11T09:15:02',
  ],
  '2.0 with the code of a TAB, without 0': [
    'LEEF:2.0|Acme|Proxy|5.0|1|x09|devTime=1795162502123\tsrc=192.0.2.45\turl=https://claude.ai/',
    'event claude.ai at 2026-11-20T08:15:02.123Z',
  ],
  '2.0 with an empty delimiter': [
    'LEEF:2.0|Acme|Proxy|5.0|1||src=192.0.2.45\turl=https://claude.ai/',
    'event claude.ai',
  ],
  '2.0 without delimiter': ['LEEF:2.0|Acme|Proxy|5.0|1|src=192.0.2.45\turl=https://claude.ai/', 'event claude.ai'],
  '2.0 without the word that a relay removed': [
    '2.0|Acme|Proxy|5.0|1|^|src=192.0.2.45^url=https://claude.ai/',
    'event claude.ai',
  ],
  "the client's own name, a referer, an agent, a mail address, a file and an issuer are no hosts": [
    'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tidentHostName=pc-7.example.org\treferer=https://ref.example.net/\tuserAgent=bot.example.com\tusrName=jdoe@example.com\tfile=setup.zip\tcertIssuer=ca.example.com',
    'noDomain',
  ],
  'no client': ['LEEF:1.0|Acme|Proxy|5.0|start|msg=started at proxy.example.org', 'skip'],
  'a truncated header': ['LEEF:1.0|WatchGuard|XTM|12.10.1', 'reject: header'],
  '31 April': ['LEEF:1.0|Acme|Proxy|5.0|1|devTime=2026-04-31 09:15:02\tsrc=192.0.2.45\turl=claude.ai', 'reject: time'],
  'bars without a key after them': ['1.0|a|b|c|d|claude.ai|192.0.2.45', 'unknown'],
  'an address as destination name': ['LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=198.51.100.20', 'noDomain'],
  'a single label': ['LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=intranet\turl=http://intranet/', 'noDomain'],
  'a path only': ['LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\turl=/index.html', 'noDomain'],
  'a mail address': ['LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=jdoe@example.com', 'noDomain'],
  'values that mean absent': ['LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=-\turl=N/A\tquestion=', 'noDomain'],
  'a reverse lookup': [
    'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tquestion=45.2.0.192.in-addr.arpa',
    'skip 45.2.0.192.in-addr.arpa',
  ],
  'PAN-OS system': [
    'LEEF:1.0|Palo Alto Networks|PAN-OS|10.1|general|cat=SYSTEM|src=192.0.2.45|dstname=fw.example.org',
    'skip',
  ],
  'FortiGate event': [
    'LEEF:1.0|Fortinet|FortiGate|7.4|26001|type=event\tsrc=192.0.2.45\thostname=pc-7.example.org',
    'skip',
  ],
  'month 13': ['LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdevTime=2026-13-01 09:15:02\turl=claude.ai', 'reject: time'],
  'an unknown version': ['LEEF:3.0|Acme|Proxy|5.0|1|src=192.0.2.45\turl=claude.ai', 'unknown'],
  'an event inside a cell of a table': ['x,LEEF:1.0|a|b|c|d|src=192.0.2.45\turl=claude.ai', 'unknown'],
}
checkFormat(t, 'leef', rows)

// Truncated before the name, the line has only the domain.
t.test("the user's domain comes last", async (t) => {
  const line = 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdomain=corp.example.org\tdhost=claude.ai'
  t.equal(new MessageReader().read(line).host, 'claude.ai')
})

t.test('long values and many pairs take linear time', async (t) => {
  const reader = new MessageReader()
  const head = 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\t'
  t.equal(reader.read(`${head}url=https://claude.ai/${'a=b&'.repeat(16_384)}`).host, 'claude.ai')
  t.equal(reader.read(`${head}${'k=v\t'.repeat(10_000)}dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`${head}${'\t'.repeat(100_000)}dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`LEEF:1.0|||||${'|'.repeat(100_000)}`).verdict, 'skip')
  t.equal(reader.read(`LEEF:1.0|||||${'#'.repeat(100_000)}`).verdict, 'skip')
})
