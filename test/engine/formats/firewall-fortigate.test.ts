import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows, NamedRow } from '../../support/log-rows.ts'

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

const rows: LogRows = {
  'a web filter, with an epoch of nanoseconds': [
    WEB,
    'event chat.openai.com from 192.0.2.45 at 2026-11-20T08:15:02.123Z, allowed',
  ],
  'commas between the pairs, and an epoch of seconds': [
    DNS_CSV,
    'event api.mistral.ai from 192.0.2.45 at 2026-11-20T08:15:03Z, allowed',
  ],
  'cells of a CSV that are pairs': [
    '"itime=1795162502","date=2026-11-20","time=09:15:02","devid=""FGT60FTK00000001""","type=utm","subtype=webfilter","srcip=192.0.2.45","dstip=198.51.100.20","hostname=""claude.ai""","msg=""a, hostname=evil.example""","action=blocked"',
    'event claude.ai from 192.0.2.45 at 2026-11-20T09:15:02, blocked',
  ],
  'a relay has removed the date': [
    WEB.slice('date=2026-11-20 '.length),
    'event chat.openai.com at 2026-11-20T08:15:02.123Z',
  ],
  'a relay has removed date and time': [WEB.slice(WEB.indexOf('devname')), 'event chat.openai.com'],
  'blanks and the rest of a header before the date': [`  fgt-1: ${WEB}`, 'event chat.openai.com'],
  'date, time and zone, an offset of half an hour': [
    WEB.replace('eventtime=1795162502123456789 tz="+0100"', 'tz="+0530"'),
    'event chat.openai.com at 2026-11-20T03:45:02Z',
  ],
  'west of Greenwich': [
    WEB.replace('eventtime=1795162502123456789 tz="+0100"', 'tz="-0930"'),
    'event chat.openai.com at 2026-11-20T18:45:02Z',
  ],
  "without a zone, the device's zone applies": [
    WEB.replace('eventtime=1795162502123456789 tz="+0100" ', ''),
    'event chat.openai.com at 2026-11-20T09:15:02',
  ],
  'FortiOS 4 wrote src and the kind as the type': [
    'date=2026-11-20 time=09:15:02 devname=fgt-1 device_id=FGT60B log_id=0315093003 type=webfilter subtype=ftgd_allow pri=notice vd=root src=192.0.2.45 dst=198.51.100.20 hostname="claude.ai" url="/chat" status=passthrough',
    'event claude.ai from 192.0.2.45',
  ],
  'the URL where there is no hostname': [WEB.replace('hostname="chat.openai.com" ', ''), 'event chat.openai.com'],
  'a name in brackets, in upper case, with a dot at its end': [
    DNS_CSV.replace('"api.mistral.ai"', '"[API.Mistral.AI.]"'),
    'event api.mistral.ai',
  ],
  'a query without an action': [
    DNS_CSV.replace('dns-response', 'dns-query').replace(',action="pass"', ''),
    'event api.mistral.ai, unknown',
  ],
  'a blocked application of an IPv6 client': [
    utm('app-ctrl', 'app="ChatGPT" hostname="chatgpt.com" url="/" action="block" direction="outgoing"').replace(
      'srcip=192.0.2.45',
      'srcip=2001:db8:10::45',
    ),
    'event chatgpt.com from 2001:db8:10::45, blocked',
  ],
  'an application with a name only in its certificate': [
    utm('app-ctrl', 'app="Claude" action="pass" scertcname="*.anthropic.com" scertissuer="ca.example.com"'),
    'event anthropic.com',
  ],
  'both sides have the external role': [
    WEB.replace('srcport', 'srcintfrole="wan" dstintfrole="wan" srcport'),
    'event chat.openai.com',
  ],
  'values that are keys': [
    DNS_CSV.replace('api.mistral.ai', 'type.devid.logid.example').replace(
      'Domain is monitored',
      'type=event,hostname=evil.example',
    ),
    'event type.devid.logid.example',
  ],
  'traffic with a name': [
    utm('forward', 'dstname="api.groq.com" action="close"').replace('type="utm"', 'type="traffic"'),
    'event api.groq.com, allowed',
  ],
  'a virus that a client fetched is incoming': [
    utm(
      'virus',
      'hostname="cdn.example.com" direction="incoming" filename="setup.zip" url="http://cdn.example.com/setup.zip" action="blocked"',
      FLOW.replace('192.0.2.45', '10.1.2.3'),
    ),
    'event cdn.example.com from 10.1.2.3, blocked',
  ],
  'an attack whose source is the server': [
    utm(
      'ips',
      'hostname="cdn.example.com" direction="incoming" attack="x" action="dropped"',
      FLOW.replace('192.0.2.45', '198.51.100.9').replace('dstip=198.51.100.20', 'dstip=10.1.2.3'),
    ),
    'event cdn.example.com from 10.1.2.3, blocked',
  ],
  'quotes and pairs within a value': [
    utm('webfilter', 'agent="Mozilla \\" hostname=\\"evil.example\\" x=" hostname="claude.ai" action="passthrough"'),
    'event claude.ai',
  ],
  'traffic names no host': [
    'date=2026-11-20 time=09:15:05 tz="+0100" logid="0000000013" type="traffic" subtype="forward" srcip=2001:db8:10::45 dstip=2001:db8:ffff::8 dstport=443 action="close" app="Claude" appcat="Collaboration" sentbyte=900 rcvdbyte=4000',
    'noDomain from 2001:db8:10::45 at 2026-11-20T08:15:05Z, allowed',
  ],
  ...Object.fromEntries(
    ['casb', 'videofilter'].map(
      (subtype): NamedRow => [
        `a request logged by ${subtype}`,
        [WEB.replace('subtype="webfilter"', `subtype="${subtype}"`), 'event chat.openai.com'],
      ],
    ),
  ),
  'an address as the host': [WEB.replaceAll('chat.openai.com', '198.51.100.20'), 'noDomain'],
  'a path alone': [
    WEB.replace('hostname="chat.openai.com" ', '').replace('https://chat.openai.com/', '/x/setup.zip'),
    'noDomain',
  ],
  'a path without a slash': [
    WEB.replace('hostname="chat.openai.com" ', '').replace(
      'https://chat.openai.com/backend-api/conversation',
      'setup.zip',
    ),
    'noDomain',
  ],
  'a query without a name': [DNS_CSV.replace('qname="api.mistral.ai",', ''), 'noDomain'],
  'a reverse lookup': [DNS_CSV.replace('api.mistral.ai', '45.2.0.192.in-addr.arpa'), 'skip'],
  'a mail without a host': [
    utm('emailfilter', 'from="a@mail.example" to="b@example.com" hostname="mail.example.com"'),
    'noDomain',
  ],
  'a file that has the name of a host': [
    utm('virus', 'filename="eicar.com" referralurl="https://referer.example/" action="blocked"'),
    'noDomain',
  ],
  'the lease of a client that has a name': [
    `${HEAD} type="event" subtype="system" level="information" vd="root" interface="lan" dhcp_msg="Ack" mac="aa:bb" ip=192.0.2.45 hostname="pc-7.example.com" msg="DHCP server sends a DHCPACK"`,
    'skip',
  ],
  'statistics of a mail gateway': [
    'date=2026-11-20 time=09:15:02 device_id=FE100C log_id=0200025843 type=statistics pri=information session_id="x" client_name="mail.example.com" dst_ip="192.0.2.9" from="a@example.com"',
    'skip',
  ],
  'an external client sends a request to an internal server': [WEB.replace('198.51.100.20', '192.168.1.9'), 'skip'],
  'the source is on the external side': [WEB.replace('srcport', 'srcintfrole="wan" dstintfrole="dmz" srcport'), 'skip'],
  'no type': [WEB.replace('type="utm" subtype="webfilter"', ''), 'reject: type'],
  'a nonexistent day': [
    WEB.replace('eventtime=1795162502123456789 ', '').replace('2026-11-20', '2026-02-31'),
    'reject: time',
  ],
  'a message that is truncated inside the host': [
    WEB.slice(0, WEB.indexOf('hostname="') + 'hostname="chat.openai.co'.length),
    'reject: host',
  ],
}

checkFormat(t, 'firewall-kv', rows)
