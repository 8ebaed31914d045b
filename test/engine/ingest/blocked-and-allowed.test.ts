import t from 'tap'
import { Origin } from '../../../engine/ingest/origin.ts'
import { eventsOf, openPipeline } from '../../support/pipeline.ts'
import { rfc5424 } from '../../support/syslog-service.ts'

/*
 * A line of each family of devices, blocked and allowed. ACTION stands for the device's words.
 * refused-queries.test.ts has the DNS servers that block in a line of its own.
 */
const families: readonly [name: string, line: string, blocked: readonly string[], allowed: readonly string[]][] = [
  [
    'FortiGate, web filter',
    'date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" logid="0317013312" type="utm" subtype="webfilter" level="notice" srcip=192.0.2.45 srcport=51234 dstip=198.51.100.20 dstport=443 hostname="claude.ai" action="ACTION" url="/" direction="outgoing"',
    ['blocked'],
    ['passthrough'],
  ],
  [
    'FortiGate, DNS filter',
    'date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" logid="1501054802" type="utm" subtype="dns" eventtype="dns-response" level="notice" srcip=192.0.2.45 srcport=50777 dstip=192.0.2.53 dstport=53 qname="claude.ai" qtype="A" action="ACTION"',
    ['block', 'redirect'],
    ['pass'],
  ],
  [
    'PAN-OS, URL',
    '1,2026/11/20 09:15:02,007951000012345,THREAT,url,2817,2026/11/20 09:15:01,192.0.2.45,198.51.100.20,203.0.113.7,198.51.100.20,allow-web,corp\\jdoe,,ssl,vsys1,trust,untrust,ethernet1/2.30,ethernet1/1,to-siem,2026/11/20 09:15:02,81234,1,51514,443,32011,443,0x40b000,tcp,ACTION,"claude.ai/",(9999),artificial-intelligence,informational,client-to-server,7311,0x8000000000000000,192.0.2.0-192.0.2.255,United States,,,0,,,1',
    ['block-url', 'block-continue', 'reset-both', 'drop'],
    ['alert', 'allow', 'continue'],
  ],
  [
    'PAN-OS, CEF',
    'CEF:0|Palo Alto Networks|LF|2.0|THREAT|url|1|dtz=UTC rt=Nov 20 2026 08:15:02 src=192.0.2.45 request=https://claude.ai/ PanOSURLDomain=claude.ai act=ACTION',
    ['block-url'],
    ['alert'],
  ],
  [
    'Squid',
    '1795162503.001      0 192.0.2.45 ACTION 4001 CONNECT claude.ai:443 - HIER_NONE/- text/html',
    ['TCP_DENIED/403', 'TCP_DENIED_ABORTED/403'],
    ['TCP_TUNNEL/200', 'TCP_MISS/200'],
  ],
  [
    'Zscaler, web',
    'datetime=Fri Nov 20 09:15:02 2026\tproduct=NSS\tvendor=Zscaler\tclientip=192.0.2.45\tlogin=jdoe@example.com\turl=claude.ai/new\thostname=claude.ai\taction=ACTION\treason=x',
    ['Blocked'],
    ['Allowed'],
  ],
  [
    'Zscaler, DNS',
    'ZSCALERNSS: datetime=Fri Nov 20 09:15:02 2026^^epochtime=1795162502^^clt_sip=192.0.2.45^^dns_req=claude.ai.^^dns_resp=cdn.example.net^^reqaction=ACTION',
    ['Block'],
    ['Allow'],
  ],
  [
    'Umbrella, DNS',
    '"2026-11-20 08:15:02","PC-7","PC-7","192.0.2.45","203.0.113.7","ACTION","1 (A)","NOERROR","claude.ai.","Generative AI","AD Users","AD Users",""',
    ['Blocked'],
    ['Allowed'],
  ],
  [
    'Umbrella, proxy',
    '"2026-11-20 08:15:03","PC-7","192.0.2.45","203.0.113.7","198.51.100.20","application/json","ACTION","https://claude.ai/","","Mozilla/5.0","200","1910","8204","7777","","Generative AI","","","","","","Roaming Computers"',
    ['BLOCKED'],
    ['ALLOWED'],
  ],
  [
    'Netskope',
    '{"timestamp":1795162502,"type":"application","domain":"claude.ai","url":"claude.ai/api","site":"Claude","app":"Claude","userip":"192.0.2.45","dstip":"198.51.100.20","user":"jdoe@example.com","action":"ACTION"}',
    ['block'],
    ['allow', 'useralert'],
  ],
  [
    'Cloudflare Gateway, DNS',
    '{"Datetime":"2026-11-20T08:15:02Z","QueryName":"claude.ai","QueryType":1,"ResolverDecision":"ACTION","RData":[],"SrcIP":"192.0.2.45","SrcPort":51234,"Protocol":"udp","Policy":"","DeviceID":""}',
    ['blockedByCategory', 'blockedRule'],
    ['allowedOnNoPolicyMatch', 'allowedRule'],
  ],
  [
    'AdGuard Home',
    '{"T":"2026-11-20T09:15:02.123456789+01:00","QH":"claude.ai","QT":"A","QC":"IN","CP":"","Answer":"AAAA","IP":"192.0.2.45","Result":{ACTION},"Elapsed":123}',
    ['"IsFiltered":true,"Reason":3', '"IsFiltered":true,"Reason":8'],
    ['', '"Reason":1'],
  ],
  [
    'CoreDNS',
    '[INFO] 192.0.2.45:51234 - 4711 "A IN claude.ai. udp 43 false 512" ACTION qr,rd 80 0.001s',
    ['REFUSED'],
    ['NOERROR', 'NXDOMAIN', 'SERVFAIL'],
  ],
  [
    'Blocky',
    '[2026-11-20 09:15:02]  INFO queryLog: query resolved  answer=A (0.0.0.0) client_ip=192.0.2.45 client_names=laptop duration_ms=12 instance=blocky question_name=claude.ai question_type=A response_code=NOERROR response_reason=x response_type=ACTION',
    ['BLOCKED'],
    ['RESOLVED', 'CACHED'],
  ],
  [
    'Technitium DNS Server',
    '{"timestamp":"2026-11-20T09:15:02.1Z","clientIp":"192.0.2.45","protocol":"Udp","responseType":"ACTION","rCode":"NoError","question":{"questionName":"claude.ai","questionType":"A","questionClass":"IN"},"answers":[]}',
    ['Blocked', 'UpstreamBlocked'],
    ['Recursive', 'Cached'],
  ],
  [
    'NextDNS',
    '{"timestamp":"2026-11-20T09:15:02.1Z","domain":"claude.ai","root":"claude.ai","encrypted":true,"protocol":"DNS-over-HTTPS","clientIp":"192.0.2.45","status":"ACTION","reasons":[]}',
    ['blocked'],
    ['default', 'allowed'],
  ],
  [
    'pfBlockerNG',
    'ACTION,192.0.2.45,Python,DNSBL,DNSBL_AI,claude.ai,AI_feed,+,A',
    ['DNSBL-python,Nov 20 09:15:02,claude.ai'],
    [],
  ],
  [
    'Infoblox, policy zone',
    'CEF:0|Infoblox|NIOS|8.6.2|RPZ-QNAME|ACTION|7|app=DNS dst=192.0.2.53 src=192.0.2.45 spt=53200 view=_default qtype=A msg="rpz QNAME ACTION rewrite claude.ai [A] via claude.ai.rpz.example.org" CAT=RPZ',
    ['NXDOMAIN'],
    ['PASSTHRU'],
  ],
  [
    'Infoblox, responses',
    'infoblox-responses: 20-Nov-2026 09:15:02.046 client 192.0.2.45#40117: UDP: query: claude.ai IN A response: ACTION',
    ['REFUSED -', 'NOERROR +A claude.ai. 300 IN A 0.0.0.0;', 'NOERROR +A claude.ai. 300 IN AAAA ::;'],
    ['NOERROR +A claude.ai. 300 IN A 198.51.100.9;', 'NXDOMAIN +'],
  ],
  [
    'Sophos Firewall',
    'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" device_name="XG210" device_id=C2000000000001 log_id=050901616001 log_type="Content Filtering" log_component="HTTP" log_subtype="ACTION" priority=Information fw_rule_id=3 category="AI" url="https://claude.ai/chat" src_ip=192.0.2.45 dst_ip=198.51.100.20 protocol="TCP" domain=claude.ai',
    ['Denied'],
    ['Allowed'],
  ],
  [
    'Sophos UTM',
    '2026:11:20-09:15:02 utm-1 httpproxy[5150]: id="0001" severity="info" sys="SecureWeb" sub="http" name="http access" action="ACTION" method="CONNECT" srcip="192.0.2.45" dstip="198.51.100.20" user="jdoe" statuscode="200" size="18810" url="https://claude.ai/"',
    ['block'],
    ['pass'],
  ],
  [
    'WatchGuard',
    'SERIAL (2026-11-20T08:15:02) http-proxy[1881]: msg_id="1AFF-0024" ACTION 1-Trusted 0-External tcp 192.0.2.45 198.51.100.20 50301 443 msg="HTTP request" proxy_act="HTTP-Client.1" op="GET" dstname="claude.ai" arg="/chat" (HTTP-proxy-00)',
    ['Deny'],
    ['Allow'],
  ],
  [
    'Check Point',
    'time=1795162502|hostname=gw.example.com|product=URL Filtering|action=ACTION|loguid={0x0,0x0}|src=192.0.2.45|dst=198.51.100.20|resource=https://claude.ai/x=1|origin=192.0.2.1',
    ['Block', 'Drop', 'Reject'],
    ['Accept', 'Allow', 'Detect'],
  ],
  [
    'SonicWall',
    'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 pri=6 c=1024 ACTION src=192.0.2.45:50222:X0 dst=198.51.100.20:443:X1 usr="jdoe" proto=tcp/https dstname=claude.ai arg=/api code=64 Category="Not Rated" n=9',
    ['m=14 msg="Web site access denied"'],
    ['m=97 msg="Web site hit"'],
  ],
  [
    'Blue Coat',
    'date=2026-11-20 time=08:15:02 time-taken=120 c-ip=192.0.2.45 cs-username=jdoe sc-filter-result=ACTION sc-status=200 cs-method=GET cs-uri-scheme=https cs-host=claude.ai cs-uri-port=443 cs-uri-path=/ sc-bytes=900',
    ['DENIED s-action=TCP_DENIED'],
    ['OBSERVED s-action=TCP_NC_MISS'],
  ],
  [
    'Zeek dns.log, JSON',
    '{"ts":1795162502.1,"uid":"C1","id.orig_h":"192.0.2.45","id.orig_p":51234,"id.resp_h":"192.0.2.53","id.resp_p":53,"proto":"udp","trans_id":1,"query":"claude.ai","qclass":1,"qtype":1,"rcode":0,"answers":[ACTION]}',
    ['"0.0.0.0"', '"::"'],
    ['', '"198.51.100.9"', '"alias.example.net","198.51.100.9"', '"redirect.example.net","198.51.100.9"'],
  ],
  [
    'Suricata, alert',
    '{"timestamp":"2026-11-20T09:15:02.1+0100","flow_id":1,"event_type":"alert","src_ip":"192.0.2.45","src_port":51234,"dest_ip":"198.51.100.20","dest_port":443,"proto":"TCP","direction":"to_server","alert":{"action":"ACTION","signature_id":1},"tls":{"sni":"claude.ai"}}',
    ['blocked'],
    ['allowed'],
  ],
]

function blockedOf(...lines: readonly string[]): string {
  const { pipeline, take, token } = openPipeline(t)
  const origin = new Origin('tcp', '192.0.2.200', 514)
  const outcome = lines.map((line) => take(rfc5424(token.raw, line), origin)).at(-1)
  const [event] = eventsOf(pipeline.takeBatches('all'))
  if (event === undefined) return `${outcome}: ${pipeline.line.reason}`
  return `${event.name} ${event.client} ${event.count}/${event.blocked ?? 0}`
}

for (const [name, line, blocked, allowed] of families) {
  t.test(name, async (t) => {
    for (const word of blocked)
      t.equal(blockedOf(line.replaceAll('ACTION', word)), 'claude.ai 192.0.2.45 1/1', `blocked: ${word}`)
    for (const word of allowed)
      t.equal(blockedOf(line.replaceAll('ACTION', word)), 'claude.ai 192.0.2.45 1/0', `allowed: ${word}`)
  })
}

t.test('Zeek dns.log, table', async (t) => {
  const fields = '#fields\tts\tid.orig_h\tid.resp_h\tid.resp_p\ttrans_id\tquery\tanswers'
  const row = (answers: string): string => `1795162502.1\t192.0.2.45\t192.0.2.53\t53\t1\tclaude.ai\t${answers}`
  for (const answers of ['0.0.0.0', 'alias.example.net,::'])
    t.equal(blockedOf(fields, row(answers)), 'claude.ai 192.0.2.45 1/1', answers)
  for (const answers of ['-', '198.51.100.9', 'alias.example.net,198.51.100.9'])
    t.equal(blockedOf(fields, row(answers)), 'claude.ai 192.0.2.45 1/0', answers)
})
