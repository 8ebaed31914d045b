import t from 'tap'
import { SourceMemory } from '../../../engine/formats/log-line.ts'
import { USER_BYTES_MAX } from '../../../engine/kernel/event/event.ts'
import { checkRows, MessageReader, type NamedRow, type OtherResults } from '../../support/log-rows.ts'

/** Lines of vendors with the user and byte counts of their client. Default: none. */
type Rows = Readonly<Record<string, readonly [line: string, results?: OtherResults]>>

function check(format: string, rows: Rows): void {
  const all = Object.entries(rows).map(([name, [line, results]]): NamedRow => {
    return [name, [line, 'event claude.ai', { user: '', sent: 0, received: 0, ...results }]]
  })
  checkRows(t, format, Object.fromEntries(all))
}

const squid = (user: string, bytes = '6120') =>
  `1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 ${bytes} CONNECT claude.ai:443 ${user} HIER_DIRECT/198.51.100.20 -`
check('proxy-native', {
  'Squid: the bytes of the reply': [squid('jdoe'), { user: 'jdoe', received: 6120 }],
  'Squid: no user': [squid('-'), { received: 6120 }],
  'Squid: an escaped domain': [squid('CORP%5cjdoe'), { user: 'CORP\\jdoe', received: 6120 }],
  'Squid: an escaped blank': [squid('jane%20doe'), { user: 'jane doe', received: 6120 }],
  'Squid: UTF-8': [squid('J%C3%BCrgen'), { user: 'Jürgen', received: 6120 }],
  'Squid: another encoding': [squid('J%FCrgen'), { received: 6120 }],
  'Squid: an escaped line feed': [squid('j%0adoe'), { received: 6120 }],
  'Squid: a percent sign': [squid('100%doe'), { user: '100%doe', received: 6120 }],
  'Squid: an address': [squid('192.0.2.45'), { received: 6120 }],
  'Squid: no bytes': [squid('jdoe', '-'), { user: 'jdoe' }],
  'Squid: several sizes, whose order the site chose': [squid('jdoe', '812 6120'), { user: 'jdoe' }],
  'Cisco WSA: a name in quotes': [squid('"corp\\\\jane doe@realm"'), { user: 'corp\\jane doe@realm', received: 6120 }],
  'Squid: no column of the hierarchy': [
    '1795162502.119 318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT claude.ai:443 jdoe',
    { received: 6120 },
  ],
})

const common = (user: string, bytes = '39') =>
  `192.0.2.45 - ${user} [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 ${bytes} "-" "curl/8.5.0"`
check('proxy-common', {
  'combined: a domain': [common('corp\\jdoe'), { user: 'corp\\jdoe', received: 39 }],
  'combined: a blank': [common('john doe'), { user: 'john doe', received: 39 }],
  'combined: no user and no bytes': [common('-', '-')],
  'combined: after a virtual host': [
    'proxy.example:443 192.0.2.45 - jdoe [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
    { user: 'jdoe', received: 39 },
  ],
  'combined: a remark after the client': [
    '192.0.2.45 (-) - - [20/Nov/2026:09:15:02 +0100] "CONNECT claude.ai:443 HTTP/1.1" 200 39',
    { received: 39 },
  ],
  'Skyhigh: sizes of no documented order': [
    '[20/Nov/2026:09:15:02 +0100] "CORP\\jdoe" 192.0.2.45 200 "GET https://claude.ai/ HTTP/1.1" "Chat" "Minimal Risk" "text/html" 812 9000',
    { user: 'CORP\\jdoe' },
  ],
})

check('sentences', {
  'squidGuard: the user after the client': [
    '2026-11-20 09:15:02 [31] Request(default/ai/-) claude.ai:443 192.0.2.45/192.0.2.45 corp%5cjdoe CONNECT REDIRECT',
    { user: 'corp\\jdoe' },
  ],
  'squidGuard: no user': [
    '2026-11-20 09:15:02 [31] Request(default/ai/-) claude.ai:443 192.0.2.45/192.0.2.45 - CONNECT REDIRECT',
  ],
})

const fortiGate = (fields: string, logid = '0317013312') =>
  `date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" logid="${logid}" type="utm" subtype="webfilter" srcip=10.0.0.45 dstip=198.51.100.20 ${fields} hostname="claude.ai" action="passthrough" url="https://claude.ai/"`
const fortiGateTraffic = (fields: string, logid: string) =>
  `date=2026-11-20 time=09:15:02 devid="FGT60FTK00000001" logid="${logid}" type="traffic" subtype="forward" srcip=10.0.0.45 dstip=198.51.100.20 ${fields} hostname="claude.ai" action="accept"`
check('firewall-kv', {
  'FortiGate: bytes of the source': [
    fortiGate('user="jdoe" sentbyte=1520 rcvdbyte=9120'),
    { user: 'jdoe', sent: 1520, received: 9120 },
  ],
  'FortiGate: a user it learned': [fortiGate('user="N/A" unauthuser="jdoe"'), { user: 'jdoe' }],
  'FortiGate: an escaped domain': [fortiGate('user="CORP\\\\jdoe"'), { user: 'CORP\\jdoe' }],
  'FortiGate: a user of the server': [fortiGate('dstuser="admin" dstunauthuser="root"')],
  'FortiGate: the address as user': [fortiGate('user="10.0.0.45"')],
  'FortiGate: deltas of a long session': [
    fortiGateTraffic('sentbyte=90000 rcvdbyte=80000 sentdelta=500 rcvddelta=700', '0000000020'),
    { sent: 500, received: 700 },
  ],
  'FortiGate: totals of a session that continues': [fortiGateTraffic('sentbyte=90000 rcvdbyte=80000', '0000000020')],
  'FortiGate: totals of a session that ended': [
    fortiGateTraffic('sentbyte=90000 rcvdbyte=80000', '0000000013'),
    { sent: 90_000, received: 80_000 },
  ],
  SonicWall: [
    'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 pri=6 c=1024 m=97 src=10.0.0.45:50222:X0 dst=198.51.100.20:443:X1 usr="jdoe" proto=tcp/https sent=911 rcvd=20480 dstname=claude.ai arg=/',
    { user: 'jdoe', sent: 911, received: 20_480 },
  ],
  'SonicWall: single sign-on failed': [
    'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 m=97 src=10.0.0.45:50222:X0 dst=198.51.100.20:443:X1 usr="Unknown (SSO failed)" dstname=claude.ai',
  ],
  'Sophos SFOS': [
    'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" log_type="Content Filtering" log_component="HTTP" log_subtype="Allowed" user_name="jdoe@example.com" user_gp="Staff" url="https://claude.ai/" src_ip=10.0.0.45 dst_ip=198.51.100.20 sent_bytes=812 recv_bytes=21865 domain=claude.ai',
    { user: 'jdoe@example.com', sent: 812, received: 21_865 },
  ],
  'Sophos SFOS, newer keys, and no user': [
    'timestamp="2026-11-20T09:15:02+0100" device_model="XGS" log_type="SSL" log_component="SSL" user="" src_ip="10.0.0.45" dst_ip="198.51.100.20" bytes_sent=5 bytes_received=6 sni="claude.ai"',
    { sent: 5, received: 6 },
  ],
  'Sophos UTM: a size without a direction': [
    '2026:11:20-09:15:02 utm-1 httpproxy[5150]: id="0001" severity="info" sys="SecureWeb" sub="http" name="http access" action="pass" method="CONNECT" srcip="10.0.0.45" dstip="198.51.100.20" user="jdoe" statuscode="200" size="18810" url="https://claude.ai/"',
    { user: 'jdoe' },
  ],
  WatchGuard: [
    'FB-1 SERIAL (2026-11-20T08:15:02) https-proxy[1881]: msg_id="2CFF-0000" Allow 1-Trusted 0-External tcp 10.0.0.45 198.51.100.20 50301 443 msg="HTTPS Request" src_user="jdoe@example.com" sni="claude.ai" sent_bytes="733" rcvd_bytes="5120" (HTTPS-proxy-00)',
    { user: 'jdoe@example.com', sent: 733, received: 5120 },
  ],
  'Check Point': [
    '[action:"Accept"; flags:"411908"; ifname:"eth2"; loguid:"{0x1}"; time:"1795162502"; product:"URL Filtering"; src:"10.0.0.45"; dst:"198.51.100.20"; src_user_name:"Jane Doe (jdoe)"; dst_user_name:"Root"; sent_bytes:"1200"; received_bytes:"5600"; bytes:"6800"; resource:"https://claude.ai/"]',
    { user: 'Jane Doe (jdoe)', sent: 1200, received: 5600 },
  ],
  'Check Point: the bytes of the client side': [
    '[action:"Accept"; flags:"411908"; ifname:"eth2"; time:"1795162502"; src:"10.0.0.45"; dst:"198.51.100.20"; client_inbound_bytes:"5600"; client_outbound_bytes:"1200"; server_inbound_bytes:"1"; resource:"https://claude.ai/"]',
    { sent: 1200, received: 5600 },
  ],
  'Blue Coat': [
    'date=2026-11-20 time=08:15:02 c-ip=10.0.0.45 cs-username=- cs-userdn="CN=Jane Doe,DC=example" cs-host=claude.ai cs-bytes=812 sc-bytes=9000',
    { user: 'CN=Jane Doe,DC=example', sent: 812, received: 9000 },
  ],
  'Meraki names no user': [
    '1795162502.342705328 MX84 urls src=10.0.0.45:51234 dst=198.51.100.20:443 mac=00:53:00:AA:BB:CC request: GET https://claude.ai/',
  ],
})

const panUrl = (user: string, target = '') =>
  `1,2026/11/20 09:15:02,007951000012345,THREAT,url,2817,2026/11/20 09:15:01,10.0.0.45,198.51.100.20,,,allow-web,${user},${target},ssl,vsys1,trust,untrust,ethernet1/2.30,ethernet1/1,to-siem,2026/11/20 09:15:02,81234,1,51514,443,32011,443,0x40b000,tcp,alert,"claude.ai/v1",(9999),artificial-intelligence,informational`
check('firewall-csv', {
  'PAN-OS: the source user': [panUrl('corp\\jdoe', 'corp\\root'), { user: 'corp\\jdoe' }],
  'PAN-OS: a destination user alone': [panUrl('', 'corp\\root')],
  'PAN-OS: a forwarded address': [panUrl('x-fwd-for: 192.0.2.9')],
  'PAN-OS: doubled quotes': [panUrl('"Doe, ""J"" Jane"'), { user: 'Doe, "J" Jane' }],
})

const zscaler = (login: string, location = 'HQ') =>
  `"Fri Nov 20 08:15:02 2026","${login}","HTTPS","claude.ai/","Allowed","Claude","AI","1212","9800","41","58","Business Use","IT","AI","None","None","0","None","None","${location}","Sales, EMEA","10.0.0.45","198.51.100.20","POST","200"`
check('zscaler', {
  Zscaler: [zscaler('jdoe@example.com'), { user: 'jdoe@example.com', sent: 1212, received: 9800 }],
  'Zscaler: the location of an unknown user': [zscaler('HQ'), { sent: 1212, received: 9800 }],
  'Zscaler: a hidden login': [zscaler('4094304256'), { sent: 1212, received: 9800 }],
  'Zscaler: pairs': [
    '2026-11-20 09:15:02\treason=Allowed\tevent_id=7\tprotocol=HTTPS\taction=Allowed\ttransactionsize=11012\tresponsesize=9800\trequestsize=1212\tClientIP=10.0.0.45\tlocation=HQ\tuser=jdoe@example.com\turl=claude.ai:443\thostname=claude.ai',
    { user: 'jdoe@example.com', sent: 1212, received: 9800 },
  ],
  'Zscaler: pairs of an unknown user, and a total': [
    '2026-11-20 09:15:02\treason=Allowed\tevent_id=7\taction=Allowed\ttransactionsize=11012\tClientIP=10.0.0.45\tlocation=HQ\tuser=HQ\turl=claude.ai:443',
  ],
})

const umbrellaDns = (type: string) =>
  `"2026-11-20 08:15:02","Doe, Jane (jdoe@example.com)","Doe, Jane (jdoe@example.com),PC-7","10.0.0.45","203.0.113.7","Allowed","1 (A)","NOERROR","claude.ai.","Generative AI","${type}","${type},Networks",""`
const umbrellaProxy = (type: string) =>
  `"2026-11-20 08:15:03","Doe, Jane (jdoe@example.com)","10.0.0.45","203.0.113.7","198.51.100.20","application/json","ALLOWED","https://claude.ai/api","","Mozilla/5.0","200","1910","8204","7777","","Generative AI","","","","","","${type}"`
check('umbrella', {
  'Umbrella DNS: a user': [umbrellaDns('AD Users'), { user: 'Doe, Jane (jdoe@example.com)' }],
  'Umbrella DNS: a computer': [umbrellaDns('Anyconnect Roaming Client')],
  'Umbrella proxy: a user': [
    umbrellaProxy('AD Users'),
    { user: 'Doe, Jane (jdoe@example.com)', sent: 1910, received: 8204 },
  ],
  'Umbrella proxy: a network': [umbrellaProxy('Networks'), { sent: 1910, received: 8204 }],
})

const netskope = (user: string) =>
  `2026-11-20 09:15:02 12 1093 17084 18177 10.0.0.45 198.51.100.20 ${user} GET https - "Mozilla/5.0" - 200 text/html claude.ai claude.ai / 443 -`
check('netskope', {
  Netskope: [netskope('jdoe@example.com'), { user: 'jdoe@example.com', sent: 1093, received: 17_084 }],
  'Netskope: the address of a client without a user': [netskope('10.0.0.45'), { sent: 1093, received: 17_084 }],
})

const cef = (vendor: string, fields: string) =>
  `CEF:0|${vendor}|Product|1|13312|utm:webfilter|3|rt=1795162502123 src=10.0.0.45 dst=198.51.100.20 dhost=claude.ai act=passthrough ${fields}`
check('cef', {
  'CEF: FortiGate': [cef('Fortinet', 'duser=jdoe out=96 in=1200'), { user: 'jdoe', sent: 96, received: 1200 }],
  'CEF: FortiGate, the source user': [cef('Fortinet', 'suser=jdoe duser=root'), { user: 'jdoe' }],
  'CEF: FortiGate, an escaped domain': [cef('Fortinet', 'duser=CORP\\\\jdoe'), { user: 'CORP\\jdoe' }],
  'CEF: Zscaler': [
    cef('Zscaler', 'suser=jdoe@example.com in=9800 out=1212 request=claude.ai/x'),
    { user: 'jdoe@example.com', sent: 1212, received: 9800 },
  ],
  'CEF: of other vendors, the direction of in and out is unknown': [
    cef('Example', 'request=https://claude.ai/ suser=CN=Jane Doe,DC=example duser=root in=1 out=2'),
    { user: 'CN=Jane Doe,DC=example' },
  ],
  'CEF: the user of the server': [cef('Example', 'request=https://claude.ai/ duser=root suser=-')],
})

const leef = (fields: string) =>
  `LEEF:1.0|WatchGuard|XTM|12.10.1|2CFF0000|disp=Allow\tsrc=10.0.0.45\tdst=198.51.100.20\tdstname=claude.ai\t${fields}`
check('leef', {
  'LEEF: WatchGuard': [
    leef('src_user=jdoe\tsent_bytes=733\trcvd_bytes=900'),
    { user: 'jdoe', sent: 733, received: 900 },
  ],
  'LEEF: the dictionary': [
    leef('usrName=CORP\\jdoe\tsrcBytes=5\tdstBytes=6'),
    { user: 'CORP\\jdoe', sent: 5, received: 6 },
  ],
  'LEEF: an account that is not the client': [leef('accountName=root\tduser=root')],
})

const json = (members: string) =>
  `{"timestamp":"2026-11-20T08:15:02Z","srcip":"10.0.0.45","url":"https://claude.ai/",${members}}`
check('json-logs', {
  'JSON: an escaped domain': [json('"user":"CORP\\\\jdoe"'), { user: 'CORP\\jdoe' }],
  'JSON: an escaped letter': [json('"user":"J\\u00fcrgen"'), { user: 'Jürgen' }],
  'JSON: an escaped control character': [json('"user":"j\\u000adoe"')],
  'JSON: half of a surrogate pair': [json('"user":"j\\ud83d"')],
  'JSON: null': [json('"user":null')],
  'JSON: the user of the server': [json('"destinationUser":"root","email":"a@b.example"')],
  'JSON: sent and received of unknown view': [json('"bytes_sent":5,"bytes_received":6,"bytes":11')],
  'JSON: Netskope': [
    json('"user":"jdoe@example.com","client_bytes":5,"server_bytes":6'),
    { user: 'jdoe@example.com', sent: 5, received: 6 },
  ],
  'JSON: Zscaler': [
    '{"sourcetype":"zscalernss-web","event":{"datetime":"2026-11-20 08:15:02","login":"jdoe@example.com","location":"HQ","cip":"10.0.0.45","host":"claude.ai","action":"Allowed","requestsize":"1212","responsesize":"9800"}}',
    { user: 'jdoe@example.com', sent: 1212, received: 9800 },
  ],
  'JSON: Zscaler, the location of an unknown user': [
    '{"sourcetype":"zscalernss-web","event":{"datetime":"2026-11-20 08:15:02","login":"HQ","location":"HQ","cip":"10.0.0.45","host":"claude.ai","action":"Allowed"}}',
  ],
  'JSON: the Elastic Common Schema': [
    '{"@timestamp":"2026-11-20T08:15:02Z","service":{"type":"squid"},"source":{"ip":"10.0.0.45","user":{"name":"jdoe"},"bytes":5},"destination":{"bytes":6,"user":{"name":"root"}},"network":{"bytes":11},"url":{"original":"https://claude.ai/"}}',
    { user: 'jdoe', sent: 5, received: 6 },
  ],
  'JSON: FortiGate': [
    '{"logid":"0317013312","devid":"FGT1","type":"utm","subtype":"webfilter","eventtime":1795162502,"srcip":"10.0.0.45","user":"jdoe","hostname":"claude.ai","sentbyte":1520,"rcvdbyte":9120}',
    { user: 'jdoe', sent: 1520, received: 9120 },
  ],
})

const pairs = (fields: string) => `ts=2026-11-20T09:15:02+01:00 src=10.0.0.45 query=claude.ai action=allowed ${fields}`
check('any-kv', {
  'pairs: a user': [pairs('user=jdoe rule=7'), { user: 'jdoe' }],
  'pairs: a client identifier is no user': [pairs('userid=1004 account=123456789012 rule=7')],
  'pairs: sizes of request and response': [pairs('reqsize=5 respsize=6 bytes=11'), { sent: 5, received: 6 }],
  'pairs: sent and received of unknown view': [pairs('sent=5 rcvd=6 bytes_in=7 bytes_out=8 rule=7')],
  'pairs: too large a number': [pairs('reqsize=1234567890123456 respsize=-5 rule=7')],
  'pairs: an unclosed name': [pairs('user="jane doe')],
  'pairs: a control character': [pairs('user="j\tdoe\x01" rule=7')],
})

t.test('rows of a table have the user and bytes of their columns', async (t) => {
  const tables = [
    {
      header: '#Fields: date time c-ip cs-username cs-method cs-host cs-bytes sc-bytes',
      rows: [
        ['2026-11-20 08:15:02 10.0.0.45 CORP\\jdoe CONNECT claude.ai 1520 9120', 'CORP\\jdoe', 1520, 9120],
        ['2026-11-20 08:15:02 10.0.0.45 - CONNECT claude.ai - -', '', 0, 0],
        ['2026-11-20 08:15:02 10.0.0.45 "jane doe" CONNECT claude.ai 5 6', 'jane doe', 5, 6],
        ['2026-11-20 08:15:02 10.0.0.45 10.0.0.45 CONNECT claude.ai 5 6', '', 5, 6],
      ],
    },
    {
      header: 'Timestamp;Client IP;Source User;Destination User;URL;Request Size;Response Size;Bytes',
      rows: [
        ['2026-11-20T08:15:02Z;10.0.0.45;jdoe;root;https://claude.ai/;5;6;11', 'jdoe', 5, 6],
        ['2026-11-20T08:15:02Z;10.0.0.45;;root;https://claude.ai/;;;11', '', 0, 0],
      ],
    },
    {
      // The column of the time is found in the first row.
      header: 'query,client,username,wann',
      rows: [
        ['claude.ai,10.0.0.45,jdoe,2026-11-20T08:15:02Z', 'jdoe', 0, 0],
        ['claude.ai,10.0.0.45,asmith,2026-11-20T08:15:02Z', 'asmith', 0, 0],
      ],
    },
  ] as const
  for (const { header, rows } of tables) {
    const reader = new MessageReader(new SourceMemory())
    t.equal(reader.read(header).verdict, 'skip')
    for (const [line, user, sent, received] of rows) {
      t.match(reader.read(line), { verdict: 'event', host: 'claude.ai', user, sent, received }, line)
    }
  }
})

t.test('an escaped equals sign is one', async (t) => {
  const read = new MessageReader().read(cef('Fortinet', 'suser=CN\\=Jane Doe,DC\\=example spt=1'))
  t.match(read, { user: 'CN=Jane Doe,DC=example' })
})

t.test('two users of a message without escapes are evidence of neither', async (t) => {
  const message = pairs('user=root src_user=jdoe dst_user=root rule=7')
  t.match(new MessageReader().read(message), { verdict: 'event', user: '' })
})

t.test('a long name is truncated after a whole character', async (t) => {
  const reader = new MessageReader()
  const read = (user: string) => reader.read(fortiGate(`user="${user}"`)).user
  t.equal(read('u'.repeat(USER_BYTES_MAX)), 'u'.repeat(USER_BYTES_MAX))
  t.equal(read('u'.repeat(USER_BYTES_MAX + 1)), 'u'.repeat(USER_BYTES_MAX))
  t.equal(read(`${'ü'.repeat(USER_BYTES_MAX / 2)}x`), 'ü'.repeat(USER_BYTES_MAX / 2))
  t.equal(read(`u${'ü'.repeat(USER_BYTES_MAX / 2)}`), `u${'ü'.repeat(USER_BYTES_MAX / 2 - 1)}`)
  t.equal(read(`${'山'.repeat(50)}`), '山'.repeat(Math.floor(USER_BYTES_MAX / 3)))
  t.equal(read('\\\\'.repeat(USER_BYTES_MAX + 5)), '\\'.repeat(USER_BYTES_MAX))
})

for (const word of [
  '-',
  '--',
  'N/A',
  'none',
  'NULL',
  '(null)',
  'Unknown',
  'unknown user',
  'anonymous',
  '10.0.0.45',
  '2001:db8::1',
  '10.0.0.45:51234',
  ' ',
]) {
  t.test(`no user is known: ${word}`, async (t) => {
    t.match(new MessageReader().read(fortiGate(`user="${word}"`)), { verdict: 'event', user: '' })
  })
}
