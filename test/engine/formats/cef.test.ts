import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader } from '../../support/log-rows.ts'

const FORTIGATE =
  'CEF:0|Fortinet|Fortigate|v7.4.1|13312|utm:webfilter ftgd_allow passthrough|3|deviceExternalId=FGT1 FTNTFGTeventtime=1795162502123456789 FTNTFGTtz=+0100 src=192.0.2.45 spt=51234 dst=198.51.100.20 dpt=443 duser=jdoe app=HTTPS dhost=chatgpt.com act=passthrough request=/backend-api/me?x=1 out=96 in=1200'
const PAN_URL =
  'CEF:0|Palo Alto Networks|PAN-OS|10.1.0|(9999)|THREAT|1|rt=Nov 20 2026 08:15:02 GMT deviceExternalId=007 src=192.0.2.45 dst=198.51.100.20 suser=corp\\\\jdoe cs1Label=Rule cs1=allow-web cs2Label=URL Category cs2=artificial-intelligence requestClientApplication=Mozilla/5.0 (bot.example.com) requestContext=https://ref.example.net/ request="api.openai.com/v1/chat" act=alert'
const ZSCALER =
  'CEF:0|Zscaler|NSSWeblog|5.0|Blocked|Not allowed to use AI|3|act=Blocked app=HTTPS cat=AI dhost=claude.ai dst=0.0.0.0 src=192.0.2.45 sourceTranslatedAddress=203.0.113.7 rt=1795162502000 request=claude.ai/new?a=b c=d suser=jdoe@example.com outcome=403'

const rows: LogRows = {
  'FortiGate: a path as request, the name beside it, nanoseconds': [
    FORTIGATE,
    'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02.123Z, allowed',
  ],
  'what a relay left when it took CEF for a tag': [FORTIGATE.slice(4), 'event chatgpt.com from 192.0.2.45'],
  'after a header that was not recognized': [
    `Nov 20 09:15:02 fw.example.org ${FORTIGATE}\r\n`,
    'event chatgpt.com at 2026-11-20T08:15:02.123Z',
  ],
  'a blank after the colon': [FORTIGATE.replace('CEF:', 'CEF: '), 'event chatgpt.com'],
  'FortiGate DNS': [
    'CEF:0|Fortinet|Fortigate|v7.4.1|54802|dns:dns-response pass|2|FTNTFGTeventtime=1795162503 src=2001:db8:10::45 dst=192.0.2.53 FTNTFGTqname=api.mistral.ai FTNTFGTqtype=A act=pass msg=Domain is monitored',
    'event api.mistral.ai from 2001:db8:10::45 at 2026-11-20T08:15:03Z',
  ],
  'FortiGate traffic names no host': [
    'CEF:0|Fortinet|Fortigate|v7.4.1|00013|traffic:forward close|3|FTNTFGTeventtime=1795162503 src=192.0.2.45 dst=198.51.100.20 act=close app=Claude',
    'noDomain from 192.0.2.45, allowed',
  ],
  'FortiGate event: the name is of the machine that took an address': [
    'CEF:0|Fortinet|Fortigate|v7.4.1|26001|event:system|3|FTNTFGTeventtime=1795162503 src=192.0.2.45 FTNTFGThostname=pc-7.example.org dhost=pc-7.example.org',
    'skip',
  ],
  'PAN-OS URL: without scheme, in quotes': [
    PAN_URL,
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed',
  ],
  'PAN-OS: the file of a threat is no host': [
    PAN_URL.replace('(9999)', 'Eicar(39040)').replace('api.openai.com/v1/chat', 'eicar.com'),
    'skip',
  ],
  'PAN-OS traffic': [PAN_URL.replace('(9999)|THREAT', 'end|TRAFFIC'), 'noDomain'],
  'PAN-OS system': [
    'CEF:0|Palo Alto Networks|PAN-OS|10.1.0|general|SYSTEM|3|rt=Nov 20 2026 08:15:02 GMT src=192.0.2.45 dhost=fw.example.org msg=Connected to update.example.org',
    'skip',
  ],
  'Strata Logging': [
    'CEF:0|Palo Alto Networks|LF|2.0|THREAT|url|1|dtz=UTC rt=Nov 20 2026 08:15:02 src=192.0.2.45 request=https://claude.ai/ PanOSURLDomain=claude.ai act=block-url',
    'event claude.ai at 2026-11-20T08:15:02Z, blocked',
  ],
  'Zscaler: blanks and equals signs in a URL, milliseconds': [
    ZSCALER,
    'event claude.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'SonicWall: blanks after the equals sign, and a placeholder value': [
    'CEF:0|SonicWall|NSA 2700|7.0|97|Syslog Website Accessed|4|cat=1024 gcat=2 smac= src=192.0.2.45 spt= 51234 deviceInboundInterface=X0 cs1Label= c2Label=x dst=198.51.100.20 dpt= 443 request=perplexity.ai/search dhost=  perplexity.ai rt=Nov 20 2026 09:15:02',
    'event perplexity.ai from 192.0.2.45 at 2026-11-20T09:15:02',
  ],
  'Infoblox: the rewritten name is in the message': [
    'CEF:0|Infoblox|NIOS|8.6.2|RPZ-QNAME|NXDOMAIN|7|app=DNS dst=192.0.2.53 src=192.0.2.45 spt=53200 view=_default qtype=A msg="rpz QNAME NXDOMAIN rewrite api.deepseek.com [A] via api.deepseek.com.rpz.example.org" CAT=RPZ',
    'event api.deepseek.com from 192.0.2.45, blocked',
  ],
  'a custom string under its label, which comes first': [
    'CEF:0|Acme|Proxy|1|1|access|1|start=1795162502 src=192.0.2.45 cs3Label=Request URL cs3=https://huggingface.co/x cs4=report.zip cs4Label=File Name',
    'event huggingface.co from 192.0.2.45',
  ],
  'value and label in reverse order': [
    'CEF:0|Acme|Proxy|1|1|access|1|start=1795162502 src=192.0.2.45 cs3=URL cs3Label=https://huggingface.co/x',
    'event huggingface.co',
  ],
  'escaped bars in the header and an escaped equals sign': [
    'CEF:0|Ac\\|me|Pro\\\\xy|1|1|a \\| dhost\\=x|1|start=1795162502 c6a2=2001:db8::45 src=0.0.0.0 msg=a\\=b dhost\\=evil.example.com dhost=claude.ai',
    'event claude.ai from 2001:db8::45',
  ],
  'a name in place of the destination': [
    'CEF:1|Acme|Proxy|1|1|access|1|src=192.0.2.45 dst=gemini.google.com',
    'event gemini.google.com',
  ],
  "the client's own name, a referer, an agent, a mail address and a file are no hosts": [
    'CEF:0|Acme|Proxy|1|1|access|1|src=192.0.2.45 shost=pc-7.example.org suser=jdoe@example.com fname=setup.zip requestContext=https://ref.example.net/ requestClientApplication=bot.example.com dvchost=proxy.example.org dst=198.51.100.20',
    'noDomain from 192.0.2.45',
  ],
  'without any client': ['CEF:0|Acme|Proxy|1|1|started|1|msg=Version 1.2 started dvc=198.51.100.1', 'skip'],
  'a mail address as destination': ['CEF:0|Acme|Mail|1|1|mail|1|src=192.0.2.45 dhost=jdoe@example.com', 'noDomain'],
  'a truncated header': ['CEF:0|Fortinet|Fortigate|v7.4.1|13312', 'reject: header'],
  '31 February': [
    'CEF:0|Acme|Proxy|1|1|access|1|rt=Feb 31 2026 09:15:02 src=192.0.2.45 dhost=claude.ai',
    'reject: time',
  ],
  'bars without a key after them': ['0|a|b|c|d|e|f|claude.ai', 'unknown'],
  'a word that ends so': ['XCEF:0|a|b|c|d|e|f|dhost=claude.ai', 'unknown'],
  'an address as destination name': [
    'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 dhost=198.51.100.20',
    'noDomain',
  ],
  'an IPv6 literal in the URL': [
    'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 request=https://[2001:db8::1]:8443/x',
    'noDomain',
  ],
  'a single label': [
    'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 dhost=intranet request=http://intranet/x',
    'noDomain',
  ],
  'values that mean absent': [
    'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 dhost=- request=N/A destinationDnsDomain=None',
    'noDomain',
  ],
  'a reverse lookup': [
    'CEF:0|Acme|Proxy|1|1|access|1|rt=1795162502000 src=192.0.2.45 destinationDnsDomain=45.2.0.192.in-addr.arpa',
    'skip 45.2.0.192.in-addr.arpa',
  ],
  'PAN-OS configuration': [
    'CEF:0|Palo Alto Networks|PAN-OS|10.1.0|0|CONFIG|3|src=192.0.2.45 dhost=fw.example.org request=x.example.org',
    'skip',
  ],
  'Infoblox without a rewritten name': [
    'CEF:0|Infoblox|NIOS|8.6.2|RPZ|x|7|src=192.0.2.45 msg=zone rpz.example.org was loaded dhost=ns.example.org',
    'skip',
  ],
  'hour 24': ['CEF:0|a|b|1|1|c|1|rt=Nov 20 2026 24:00:00 src=192.0.2.45', 'reject: time'],
  'an event inside a cell of a table': ['x,CEF:0|a|b|c|d|e|f|dhost=claude.ai src=192.0.2.45', 'unknown'],
  'an unknown version': ['CEF:x|a|b|c|d|e|f|dhost=claude.ai', 'unknown'],
}
checkFormat(t, 'cef', rows)

t.test('long values and many pairs take linear time', async (t) => {
  const reader = new MessageReader()
  const head = 'CEF:0|Acme|Proxy|1|1|access|1|src=192.0.2.45 '
  t.equal(reader.read(`${head}request=https://claude.ai/${'a=b&'.repeat(16_384)}`).host, 'claude.ai')
  t.equal(reader.read(`${head}${'k=v '.repeat(10_000)}dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`${head}x=${'='.repeat(100_000)} dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`${head}${' '.repeat(100_000)}dhost=claude.ai`).host, 'claude.ai')
  t.equal(reader.read(`CEF:0${'|'.repeat(100_000)}`).verdict, 'skip')
})
