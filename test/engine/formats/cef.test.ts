import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const FORTIGATE =
  'CEF:0|Fortinet|Fortigate|v7.4.1|13312|utm:webfilter ftgd_allow passthrough|3|deviceExternalId=FGT1 FTNTFGTeventtime=1795162502123456789 FTNTFGTtz=+0100 src=192.0.2.45 spt=51234 dst=198.51.100.20 dpt=443 duser=jdoe app=HTTPS dhost=chatgpt.com act=passthrough request=/backend-api/me?x=1 out=96 in=1200'
const PAN_URL =
  'CEF:0|Palo Alto Networks|PAN-OS|10.1.0|(9999)|THREAT|1|rt=Nov 20 2026 08:15:02 GMT deviceExternalId=007 src=192.0.2.45 dst=198.51.100.20 suser=corp\\\\jdoe cs1Label=Rule cs1=allow-web cs2Label=URL Category cs2=artificial-intelligence requestClientApplication=Mozilla/5.0 (bot.example.com) requestContext=https://ref.example.net/ request="api.openai.com/v1/chat" act=alert'
const ZSCALER =
  'CEF:0|Zscaler|NSSWeblog|5.0|Blocked|Not allowed to use AI|3|act=Blocked app=HTTPS cat=AI dhost=claude.ai dst=0.0.0.0 src=192.0.2.45 sourceTranslatedAddress=203.0.113.7 rt=1795162502000 request=claude.ai/new?a=b c=d suser=jdoe@example.com outcome=403'

const rows: readonly LogRow[] = [
  {
    name: 'FortiGate: a path as request, the name beside it, nanoseconds',
    line: FORTIGATE,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02.123Z',
    action: 'allowed',
  },
  {
    name: 'what a relay left when it took CEF for a tag',
    line: FORTIGATE.slice(4),
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
  },
  {
    name: 'after a header that was not recognized',
    line: `Nov 20 09:15:02 fw.example.org ${FORTIGATE}\r\n`,
    verdict: 'event',
    host: 'chatgpt.com',
    time: '2026-11-20T08:15:02.123Z',
  },
  {
    name: 'a blank after the colon',
    line: FORTIGATE.replace('CEF:', 'CEF: '),
    verdict: 'event',
    host: 'chatgpt.com',
  },
  {
    name: 'FortiGate DNS',
    line: 'CEF:0|Fortinet|Fortigate|v7.4.1|54802|dns:dns-response pass|2|FTNTFGTeventtime=1795162503 src=2001:db8:10::45 dst=192.0.2.53 FTNTFGTqname=api.mistral.ai FTNTFGTqtype=A act=pass msg=Domain is monitored',
    verdict: 'event',
    host: 'api.mistral.ai',
    client: '2001:db8:10::45',
    time: '2026-11-20T08:15:03Z',
  },
  {
    name: 'FortiGate traffic names no host',
    line: 'CEF:0|Fortinet|Fortigate|v7.4.1|00013|traffic:forward close|3|FTNTFGTeventtime=1795162503 src=192.0.2.45 dst=198.51.100.20 act=close app=Claude',
    verdict: 'noDomain',
    client: '192.0.2.45',
    action: 'allowed',
  },
  {
    name: 'FortiGate event: the name is of the machine that took an address',
    line: 'CEF:0|Fortinet|Fortigate|v7.4.1|26001|event:system|3|FTNTFGTeventtime=1795162503 src=192.0.2.45 FTNTFGThostname=pc-7.example.org dhost=pc-7.example.org',
    verdict: 'skip',
  },
  {
    name: 'PAN-OS URL: without scheme, in quotes',
    line: PAN_URL,
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'PAN-OS: the file of a threat is no host',
    line: PAN_URL.replace('(9999)', 'Eicar(39040)').replace('api.openai.com/v1/chat', 'eicar.com'),
    verdict: 'skip',
  },
  {
    name: 'PAN-OS traffic',
    line: PAN_URL.replace('(9999)|THREAT', 'end|TRAFFIC'),
    verdict: 'noDomain',
  },
  {
    name: 'PAN-OS system',
    line: 'CEF:0|Palo Alto Networks|PAN-OS|10.1.0|general|SYSTEM|3|rt=Nov 20 2026 08:15:02 GMT src=192.0.2.45 dhost=fw.example.org msg=Connected to update.example.org',
    verdict: 'skip',
  },
  {
    name: 'Strata Logging',
    line: 'CEF:0|Palo Alto Networks|LF|2.0|THREAT|url|1|dtz=UTC rt=Nov 20 2026 08:15:02 src=192.0.2.45 request=https://claude.ai/ PanOSURLDomain=claude.ai act=block-url',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
    action: 'blocked',
  },
  {
    name: 'Zscaler: blanks and equals signs in a URL, milliseconds',
    line: ZSCALER,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'blocked',
  },
  {
    name: 'SonicWall: blanks after the equals sign, and a placeholder value',
    line: 'CEF:0|SonicWall|NSA 2700|7.0|97|Syslog Website Accessed|4|cat=1024 gcat=2 smac= src=192.0.2.45 spt= 51234 deviceInboundInterface=X0 cs1Label= c2Label=x dst=198.51.100.20 dpt= 443 request=perplexity.ai/search dhost=  perplexity.ai rt=Nov 20 2026 09:15:02',
    verdict: 'event',
    host: 'perplexity.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
  },
  {
    name: 'Infoblox: the rewritten name is in the message',
    line: 'CEF:0|Infoblox|NIOS|8.6.2|RPZ-QNAME|NXDOMAIN|7|app=DNS dst=192.0.2.53 src=192.0.2.45 spt=53200 view=_default qtype=A msg="rpz QNAME NXDOMAIN rewrite api.deepseek.com [A] via api.deepseek.com.rpz.example.org" CAT=RPZ',
    verdict: 'event',
    host: 'api.deepseek.com',
    client: '192.0.2.45',
    action: 'blocked',
  },
  {
    name: 'a custom string under its label, which comes first',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|start=1795162502 src=192.0.2.45 cs3Label=Request URL cs3=https://huggingface.co/x cs4=report.zip cs4Label=File Name',
    verdict: 'event',
    host: 'huggingface.co',
    client: '192.0.2.45',
  },
  {
    name: 'value and label in reverse order',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|start=1795162502 src=192.0.2.45 cs3=URL cs3Label=https://huggingface.co/x',
    verdict: 'event',
    host: 'huggingface.co',
  },
  {
    name: 'escaped bars in the header and an escaped equals sign',
    line: 'CEF:0|Ac\\|me|Pro\\\\xy|1|1|a \\| dhost\\=x|1|start=1795162502 c6a2=2001:db8::45 src=0.0.0.0 msg=a\\=b dhost\\=evil.example.com dhost=claude.ai',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8::45',
  },
  {
    name: 'a name in place of the destination',
    line: 'CEF:1|Acme|Proxy|1|1|access|1|src=192.0.2.45 dst=gemini.google.com',
    verdict: 'event',
    host: 'gemini.google.com',
  },
  {
    name: "the client's own name, a referer, an agent, a mail address and a file are no hosts",
    line: 'CEF:0|Acme|Proxy|1|1|access|1|src=192.0.2.45 shost=pc-7.example.org suser=jdoe@example.com fname=setup.zip requestContext=https://ref.example.net/ requestClientApplication=bot.example.com dvchost=proxy.example.org dst=198.51.100.20',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'without any client',
    line: 'CEF:0|Acme|Proxy|1|1|started|1|msg=Version 1.2 started dvc=198.51.100.1',
    verdict: 'skip',
  },
  {
    name: 'a mail address as destination',
    line: 'CEF:0|Acme|Mail|1|1|mail|1|src=192.0.2.45 dhost=jdoe@example.com',
    verdict: 'noDomain',
  },
  {
    name: 'a truncated header',
    line: 'CEF:0|Fortinet|Fortigate|v7.4.1|13312',
    verdict: 'reject',
    reason: /^header/,
  },
  {
    name: '31 February',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|rt=Feb 31 2026 09:15:02 src=192.0.2.45 dhost=claude.ai',
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'bars without a key after them', line: '0|a|b|c|d|e|f|claude.ai', verdict: 'unknown' },
  { name: 'a word that ends so', line: 'XCEF:0|a|b|c|d|e|f|dhost=claude.ai', verdict: 'unknown' },
  {
    name: 'an address as destination name',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 dhost=198.51.100.20',
    verdict: 'noDomain',
  },
  {
    name: 'an IPv6 literal in the URL',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 request=https://[2001:db8::1]:8443/x',
    verdict: 'noDomain',
  },
  {
    name: 'a single label',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 dhost=intranet request=http://intranet/x',
    verdict: 'noDomain',
  },
  {
    name: 'values that mean absent',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 dhost=- request=N/A destinationDnsDomain=None',
    verdict: 'noDomain',
  },
  {
    name: 'a reverse lookup',
    line: 'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 destinationDnsDomain=45.2.0.192.in-addr.arpa',
    verdict: 'skip',
    host: '45.2.0.192.in-addr.arpa',
  },
  {
    name: 'PAN-OS configuration',
    line: 'CEF:0|Palo Alto Networks|PAN-OS|10.1.0|0|CONFIG|3|src=192.0.2.45 dhost=fw.example.org request=x.example.org',
    verdict: 'skip',
  },
  {
    name: 'Infoblox without a rewritten name',
    line: 'CEF:0|Infoblox|NIOS|8.6.2|RPZ|x|7|src=192.0.2.45 msg=zone rpz.example.org was loaded dhost=ns.example.org',
    verdict: 'skip',
  },
  {
    name: 'hour 24',
    line: 'CEF:0|a|b|1|1|c|1|rt=Nov 20 2026 24:00:00 src=192.0.2.45',
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'an event inside a cell of a table',
    line: 'x,CEF:0|a|b|c|d|e|f|dhost=claude.ai src=192.0.2.45',
    verdict: 'unknown',
  },
  { name: 'an unknown version', line: 'CEF:x|a|b|c|d|e|f|dhost=claude.ai', verdict: 'unknown' },
]
checkRows(t, 'cef', rows)

t.test('long values and many pairs take linear time', async (t) => {
  const reader = new MessageReader()
  const head = 'CEF:0|Acme|Proxy|1|1|access|1|src=192.0.2.45 '
  t.equal(reader.read(`${head}request=https://claude.ai/${'a=b&'.repeat(16_384)}`).host, 'claude.ai')
  t.equal(reader.read(`${head}${'k=v '.repeat(10_000)}dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`${head}x=${'='.repeat(100_000)} dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`${head}${' '.repeat(100_000)}dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`CEF:0${'|'.repeat(100_000)}`).verdict, 'skip')
})

checkMutations(
  t,
  rows.map((row) => row.line),
)
