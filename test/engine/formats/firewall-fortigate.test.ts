import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const HEAD =
  'date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" eventtime=1795162502123456789 tz="+0100" logid="0317013312"'
const FLOW =
  'vd="root" policyid=7 sessionid=55 user="jdoe" srcip=192.0.2.45 srcport=51234 dstip=198.51.100.20 dstport=443'

function utm(subtype: string, rest: string, flow = FLOW): string {
  return `${HEAD} type="utm" subtype="${subtype}" level="notice" ${flow} ${rest}`
}

const WEB = utm(
  'webfilter',
  'proto=6 service="HTTPS" hostname="chat.openai.com" profile="default" action="passthrough" reqtype="direct" url="https://chat.openai.com/backend-api/conversation" sentbyte=1520 rcvdbyte=9120 direction="outgoing" msg="URL belongs to an allowed category in policy" catdesc="Artificial Intelligence Technology"',
)
const DNS_CSV =
  'date=2026-11-20,time=09:15:03,logid="1501054802",type="dns",subtype="dns-response",vd="root",eventtime=1795162503,srcip=192.0.2.45,srcport=50777,dstip=192.0.2.53,dstport=53,proto=17,xid=4099,qname="api.mistral.ai",qtype="A",ipaddr="198.51.100.9, 198.51.100.10",msg="Domain is monitored",action="pass"'

const rows: LogRow[] = [
  {
    name: 'a web filter, with an epoch of nanoseconds',
    line: WEB,
    verdict: 'event',
    host: 'chat.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02.123Z',
    action: 'allowed',
  },
  {
    name: 'commas between the pairs, and an epoch of seconds',
    line: DNS_CSV,
    verdict: 'event',
    host: 'api.mistral.ai',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:03Z',
    action: 'allowed',
  },
  {
    name: 'cells of a CSV that are pairs',
    line: '"itime=1795162502","date=2026-11-20","time=09:15:02","devid=""FGT60FTK00000001""","type=utm","subtype=webfilter","srcip=192.0.2.45","dstip=198.51.100.20","hostname=""claude.ai""","msg=""a, hostname=evil.example""","action=blocked"',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'blocked',
  },
  {
    name: 'a relay has removed the date',
    line: WEB.slice('date=2026-11-20 '.length),
    verdict: 'event',
    host: 'chat.openai.com',
    time: '2026-11-20T08:15:02.123Z',
  },
  {
    name: 'a relay has removed date and time',
    line: WEB.slice(WEB.indexOf('devname')),
    verdict: 'event',
    host: 'chat.openai.com',
  },
  {
    name: 'blanks and the rest of a header before the date',
    line: `  fgt-1: ${WEB}`,
    verdict: 'event',
    host: 'chat.openai.com',
  },
  {
    name: 'date, time and zone, an offset of half an hour',
    line: WEB.replace('eventtime=1795162502123456789 tz="+0100"', 'tz="+0530"'),
    verdict: 'event',
    host: 'chat.openai.com',
    time: '2026-11-20T03:45:02Z',
  },
  {
    name: 'west of Greenwich',
    line: WEB.replace('eventtime=1795162502123456789 tz="+0100"', 'tz="-0930"'),
    verdict: 'event',
    host: 'chat.openai.com',
    time: '2026-11-20T18:45:02Z',
  },
  {
    name: "without a zone, the device's zone applies",
    line: WEB.replace('eventtime=1795162502123456789 tz="+0100" ', ''),
    verdict: 'event',
    host: 'chat.openai.com',
    time: '2026-11-20T09:15:02',
  },
  {
    name: 'FortiOS 4 wrote src and the kind as the type',
    line: 'date=2026-11-20 time=09:15:02 devname=fgt-1 device_id=FGT60B log_id=0315093003 type=webfilter subtype=ftgd_allow pri=notice vd=root src=192.0.2.45 dst=198.51.100.20 hostname="claude.ai" url="/chat" status=passthrough',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'the URL where there is no hostname',
    line: WEB.replace('hostname="chat.openai.com" ', ''),
    verdict: 'event',
    host: 'chat.openai.com',
  },
  {
    name: 'a name in brackets, in upper case, with a dot at its end',
    line: DNS_CSV.replace('"api.mistral.ai"', '"[API.Mistral.AI.]"'),
    verdict: 'event',
    host: 'api.mistral.ai',
  },
  {
    name: 'a query without an action',
    line: DNS_CSV.replace('dns-response', 'dns-query').replace(',action="pass"', ''),
    verdict: 'event',
    host: 'api.mistral.ai',
    action: 'unknown',
  },
  {
    name: 'a blocked application of an IPv6 client',
    line: utm('app-ctrl', 'app="ChatGPT" hostname="chatgpt.com" url="/" action="block" direction="outgoing"').replace(
      'srcip=192.0.2.45',
      'srcip=2001:db8:10::45',
    ),
    verdict: 'event',
    host: 'chatgpt.com',
    client: '2001:db8:10::45',
    action: 'blocked',
  },
  {
    name: 'an application with a name only in its certificate',
    line: utm('app-ctrl', 'app="Claude" action="pass" scertcname="*.anthropic.com" scertissuer="ca.example.com"'),
    verdict: 'event',
    host: 'anthropic.com',
  },
  {
    name: 'both sides have the external role',
    line: WEB.replace('srcport', 'srcintfrole="wan" dstintfrole="wan" srcport'),
    verdict: 'event',
    host: 'chat.openai.com',
  },
  {
    name: 'values that are keys',
    line: DNS_CSV.replace('api.mistral.ai', 'type.devid.logid.example').replace(
      'Domain is monitored',
      'type=event,hostname=evil.example',
    ),
    verdict: 'event',
    host: 'type.devid.logid.example',
  },
  {
    name: 'traffic with a name',
    line: utm('forward', 'dstname="api.groq.com" action="close"').replace('type="utm"', 'type="traffic"'),
    verdict: 'event',
    host: 'api.groq.com',
    action: 'allowed',
  },
  {
    name: 'a virus that a client fetched is incoming',
    line: utm(
      'virus',
      'hostname="cdn.example.com" direction="incoming" filename="setup.zip" url="http://cdn.example.com/setup.zip" action="blocked"',
      FLOW.replace('192.0.2.45', '10.1.2.3'),
    ),
    verdict: 'event',
    host: 'cdn.example.com',
    client: '10.1.2.3',
    action: 'blocked',
  },
  {
    name: 'an attack whose source is the server',
    line: utm(
      'ips',
      'hostname="cdn.example.com" direction="incoming" attack="x" action="dropped"',
      FLOW.replace('192.0.2.45', '198.51.100.9').replace('dstip=198.51.100.20', 'dstip=10.1.2.3'),
    ),
    verdict: 'event',
    host: 'cdn.example.com',
    client: '10.1.2.3',
    action: 'blocked',
  },
  {
    name: 'quotes and pairs within a value',
    line: utm(
      'webfilter',
      'agent="Mozilla \\" hostname=\\"evil.example\\" x=" hostname="claude.ai" action="passthrough"',
    ),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'traffic names no host',
    line: 'date=2026-11-20 time=09:15:05 tz="+0100" logid="0000000013" type="traffic" subtype="forward" srcip=2001:db8:10::45 dstip=2001:db8:ffff::8 dstport=443 action="close" app="Claude" appcat="Collaboration" sentbyte=900 rcvdbyte=4000',
    verdict: 'noDomain',
    client: '2001:db8:10::45',
    time: '2026-11-20T08:15:05Z',
    action: 'allowed',
  },
  ...['casb', 'videofilter'].map(
    (subtype): LogRow => ({
      name: `a request logged by ${subtype}`,
      line: WEB.replace('subtype="webfilter"', `subtype="${subtype}"`),
      verdict: 'event',
      host: 'chat.openai.com',
    }),
  ),
  { name: 'an address as the host', line: WEB.replaceAll('chat.openai.com', '198.51.100.20'), verdict: 'noDomain' },
  {
    name: 'a path alone',
    line: WEB.replace('hostname="chat.openai.com" ', '').replace('https://chat.openai.com/', '/x/setup.zip'),
    verdict: 'noDomain',
  },
  {
    name: 'a path without a slash',
    line: WEB.replace('hostname="chat.openai.com" ', '').replace(
      'https://chat.openai.com/backend-api/conversation',
      'setup.zip',
    ),
    verdict: 'noDomain',
  },
  { name: 'a query without a name', line: DNS_CSV.replace('qname="api.mistral.ai",', ''), verdict: 'noDomain' },
  { name: 'a reverse lookup', line: DNS_CSV.replace('api.mistral.ai', '45.2.0.192.in-addr.arpa'), verdict: 'skip' },
  {
    name: 'a mail without a host',
    line: utm('emailfilter', 'from="a@mail.example" to="b@example.com" hostname="mail.example.com"'),
    verdict: 'noDomain',
  },
  {
    name: 'a file that has the name of a host',
    line: utm('virus', 'filename="eicar.com" referralurl="https://referer.example/" action="blocked"'),
    verdict: 'noDomain',
  },
  {
    name: 'the lease of a client that has a name',
    line: `${HEAD} type="event" subtype="system" level="information" vd="root" interface="lan" dhcp_msg="Ack" mac="aa:bb" ip=192.0.2.45 hostname="pc-7.example.com" msg="DHCP server sends a DHCPACK"`,
    verdict: 'skip',
  },
  {
    name: 'statistics of a mail gateway',
    line: 'date=2026-11-20 time=09:15:02 device_id=FE100C log_id=0200025843 type=statistics pri=information session_id="x" client_name="mail.example.com" dst_ip="192.0.2.9" from="a@example.com"',
    verdict: 'skip',
  },
  {
    name: 'an external client sends a request to an internal server',
    line: WEB.replace('198.51.100.20', '192.168.1.9'),
    verdict: 'skip',
  },
  {
    name: 'the source is on the external side',
    line: WEB.replace('srcport', 'srcintfrole="wan" dstintfrole="dmz" srcport'),
    verdict: 'skip',
  },
  { name: 'no type', line: WEB.replace('type="utm" subtype="webfilter"', ''), verdict: 'reject', reason: /^type/ },
  {
    name: 'a nonexistent day',
    line: WEB.replace('eventtime=1795162502123456789 ', '').replace('2026-11-20', '2026-02-31'),
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'a message that is truncated inside the host',
    line: WEB.slice(0, WEB.indexOf('hostname="') + 'hostname="chat.openai.co'.length),
    verdict: 'reject',
    reason: /^host/,
  },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
