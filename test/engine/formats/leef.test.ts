import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const WATCHGUARD =
  'LEEF:1.0|WatchGuard|XTM|12.10.1|1AFF0024|serial=S1\tpolicy=HTTPS-00\tdisp=Allow\tsrc=192.0.2.45\tsrcPort=50301\tdst=198.51.100.20\tdstPort=443\tproto=tcp\top=GET\tdstname=copilot.microsoft.com\targ=/\tsent_bytes=733'
const PAN =
  'LEEF:1.0|Palo Alto Networks|PAN-OS Syslog Integration|10.1|(9999)|ReceiveTime=2026/11/20 09:15:02|SerialNumber=007|cat=THREAT|Subtype=url|devTime=Nov 20 2026 08:15:01 GMT|src=192.0.2.45|dst=198.51.100.20|usrName=corp\\tom|Miscellaneous="api.openai.com/v1?a=b,c"|action=block-url'

const rows: readonly LogRow[] = [
  {
    name: 'WatchGuard with TABs',
    line: WATCHGUARD,
    verdict: 'event',
    host: 'copilot.microsoft.com',
    client: '192.0.2.45',
    action: 'allowed',
  },
  {
    name: 'TABs as rsyslog writes them',
    line: WATCHGUARD.replaceAll('\t', '#011'),
    verdict: 'event',
    host: 'copilot.microsoft.com',
    client: '192.0.2.45',
  },
  {
    name: 'TABs as two characters',
    line: WATCHGUARD.replaceAll('\t', '\\t'),
    verdict: 'event',
    host: 'copilot.microsoft.com',
    client: '192.0.2.45',
  },
  {
    name: 'TABs that became blanks',
    line: WATCHGUARD.replaceAll('\t', ' '),
    verdict: 'event',
    host: 'copilot.microsoft.com',
    client: '192.0.2.45',
  },
  {
    name: 'what a relay left when it took LEEF for a tag',
    line: WATCHGUARD.slice(5),
    verdict: 'event',
    host: 'copilot.microsoft.com',
    client: '192.0.2.45',
  },
  {
    name: 'after a header that was not recognized',
    line: `Nov 20 09:15:02 fw.example.org ${WATCHGUARD}\n`,
    verdict: 'event',
    host: 'copilot.microsoft.com',
  },
  {
    name: 'WatchGuard DNS',
    line: 'LEEF:1.0|WatchGuard|XTM|12.10.1|1DFF0003|disp=Deny\tsrc=2001:db8::45\tdst=192.0.2.53\tquestion=api.deepseek.com\tmsg=DNS question',
    verdict: 'event',
    host: 'api.deepseek.com',
    client: '2001:db8::45',
    action: 'blocked',
  },
  {
    name: 'WatchGuard packet filter',
    line: 'LEEF:1.0|WatchGuard|XTM|12.10.1|30000148|disp=Allow\tsrc=192.0.2.45\tdst=198.51.100.20\tpolicy=Any.Out.example',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'PAN-OS with bars between the pairs',
    line: PAN,
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:01Z',
    action: 'blocked',
  },
  { name: 'PAN-OS after a relay', line: PAN.slice(5), verdict: 'event', host: 'api.openai.com' },
  {
    name: 'PAN-OS: the file of a threat is no host',
    line: PAN.replace('(9999)', 'x(123)')
      .replace('Subtype=url', 'Subtype=virus')
      .replace('api.openai.com/v1?a=b,c', 'malware.com'),
    verdict: 'skip',
  },
  {
    name: 'PAN-OS traffic',
    line: PAN.replace('cat=THREAT|Subtype=url', 'cat=TRAFFIC|Subtype=end'),
    verdict: 'noDomain',
  },
  {
    name: '2.0 with a circumflex, and the day first',
    line: 'LEEF:2.0|Zscaler|NSS|5.0|Allowed|^|devTime=05/11/2026 09:15:02^devTimeFormat=dd/MM/yyyy HH:mm:ss^src=192.0.2.45^url=claude.ai/new chat^usrName=jdoe@example.com',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-05T09:15:02',
  },
  {
    name: '2.0 with the code of a circumflex, and the month first',
    line: 'LEEF:2.0|Zscaler|NSS|5.0|Allowed|0x5E|devTime=05/11/2026 09:15:02^devTimeFormat=MM/dd/yyyy HH:mm:ss^src=192.0.2.45^url=https://claude.ai/',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-05-11T09:15:02',
  },
  {
    name: '2.0 with the code of a TAB, without 0',
    line: 'LEEF:2.0|Acme|Proxy|5.0|1|x09|devTime=1795162502123\tsrc=192.0.2.45\turl=https://claude.ai/',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02.123Z',
  },
  {
    name: '2.0 with an empty delimiter',
    line: 'LEEF:2.0|Acme|Proxy|5.0|1||src=192.0.2.45\turl=https://claude.ai/',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: '2.0 without delimiter',
    line: 'LEEF:2.0|Acme|Proxy|5.0|1|src=192.0.2.45\turl=https://claude.ai/',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: '2.0 without the word that a relay removed',
    line: '2.0|Acme|Proxy|5.0|1|^|src=192.0.2.45^url=https://claude.ai/',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: "the user's domain comes last",
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdomain=corp.example.org\tdhost=claude.ai',
    verdict: 'event',
    host: 'claude.ai',
    // Truncated before the name, the line has only the domain.
    client: '192.0.2.45',
  },
  {
    name: "the client's own name, a referer, an agent, a mail address, a file and an issuer are no hosts",
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tidentHostName=pc-7.example.org\treferer=https://ref.example.net/\tuserAgent=bot.example.com\tusrName=jdoe@example.com\tfile=setup.zip\tcertIssuer=ca.example.com',
    verdict: 'noDomain',
  },
  { name: 'no client', line: 'LEEF:1.0|Acme|Proxy|5.0|start|msg=started at proxy.example.org', verdict: 'skip' },
  { name: 'a truncated header', line: 'LEEF:1.0|WatchGuard|XTM|12.10.1', verdict: 'reject', reason: /^header/ },
  {
    name: '31 April',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|devTime=2026-04-31 09:15:02\tsrc=192.0.2.45\turl=claude.ai',
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'bars without a key after them', line: '1.0|a|b|c|d|claude.ai|192.0.2.45', verdict: 'unknown' },
  {
    name: 'an address as destination name',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=198.51.100.20',
    verdict: 'noDomain',
  },
  {
    name: 'a single label',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=intranet\turl=http://intranet/',
    verdict: 'noDomain',
  },
  { name: 'a path only', line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\turl=/index.html', verdict: 'noDomain' },
  {
    name: 'a mail address',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=jdoe@example.com',
    verdict: 'noDomain',
  },
  {
    name: 'values that mean absent',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdstname=-\turl=N/A\tquestion=',
    verdict: 'noDomain',
  },
  {
    name: 'a reverse lookup',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tquestion=45.2.0.192.in-addr.arpa',
    verdict: 'skip',
    host: '45.2.0.192.in-addr.arpa',
  },
  {
    name: 'PAN-OS system',
    line: 'LEEF:1.0|Palo Alto Networks|PAN-OS|10.1|general|cat=SYSTEM|src=192.0.2.45|dstname=fw.example.org',
    verdict: 'skip',
  },
  {
    name: 'FortiGate event',
    line: 'LEEF:1.0|Fortinet|FortiGate|7.4|26001|type=event\tsrc=192.0.2.45\thostname=pc-7.example.org',
    verdict: 'skip',
  },
  {
    name: 'month 13',
    line: 'LEEF:1.0|Acme|Proxy|5.0|1|src=192.0.2.45\tdevTime=2026-13-01 09:15:02\turl=claude.ai',
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'an unknown version',
    line: 'LEEF:3.0|Acme|Proxy|5.0|1|src=192.0.2.45\turl=claude.ai',
    verdict: 'unknown',
  },
  {
    name: 'an event inside a cell of a table',
    line: 'x,LEEF:1.0|a|b|c|d|src=192.0.2.45\turl=claude.ai',
    verdict: 'unknown',
  },
]
checkRows(
  t,
  'leef',
  rows.filter((row) => !row.name.startsWith("the user's domain")),
)

t.test("the user's domain comes last", async (t) => {
  t.equal(new MessageReader().read(rows.find((row) => row.name.startsWith("the user's"))?.line ?? '').host, 'claude.ai')
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

checkMutations(
  t,
  rows.map((row) => row.line),
)
