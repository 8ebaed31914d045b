/**
 * A line of a format as its vendor writes it, with placeholders for the parts that differ from line
 * to line: {host}, {client}, {n}.
 */
export interface LineKind {
  readonly name: string
  /** The format that parses the line. */
  readonly format: string
  readonly line: string
  /** The field separator, for contenders that only split the line. */
  readonly separator: string
}

export const LINE_KINDS: readonly LineKind[] = [
  {
    name: 'NGFW CSV, URL filtering',
    format: 'firewall-csv',
    separator: ',',
    line: '1,2026/11/20 09:15:02,007951000012345,THREAT,url,2817,2026/11/20 09:15:01,{client},198.51.100.20,203.0.113.7,198.51.100.20,allow-web,corp\\jdoe,,ssl,vsys1,trust,untrust,ethernet1/2.30,ethernet1/1,to-siem,2026/11/20 09:15:02,{n},1,51514,443,32011,443,0x40b000,tcp,alert,"{host}:443/v1/chat?q=""a"",b",(9999),artificial-intelligence,informational,client-to-server,7311,0x8000000000000000,192.0.2.0-192.0.2.255,United States,,,0,,,1,"Mozilla/5.0 (X11, Linux)",,"192.0.2.201",,,,,,0,0,0,0,,PA-EDGE-1,,,,post,0,,0,,N/A,N/A,AppThreat-0-0,0x0,0,4294967295,,"artificial-intelligence,low-risk",7d0c5b1e-0d7f-4a3e-9f57-0a4f2f6f1c11,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,0,2026-11-20T09:15:01.412+01:00,,,,general-business,saas,browser-based,2,,,ssl,no,no',
  },
  {
    name: 'NGFW CSV, traffic',
    format: 'firewall-csv',
    separator: ',',
    line: '1,2026/11/20 09:16:40,007951000012345,TRAFFIC,end,2817,2026/11/20 09:16:40,{client},198.51.100.8,203.0.113.7,198.51.100.8,allow-web,corp\\jdoe,,openai-base,vsys1,trust,untrust,ethernet1/2.30,ethernet1/1,to-siem,2026/11/20 09:16:40,{n},1,51514,443,0,0,0x1c,tcp,allow,48213,6021,42192,77,2026/11/20 09:15:01,97,artificial-intelligence,,90211,0x0,192.0.2.0-192.0.2.255,United States,,31,46,tcp-fin',
  },
  {
    name: 'key=value firewall, web filter',
    format: 'firewall-kv',
    separator: ' ',
    line: 'date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" eventtime=1795162502123456789 tz="+0100" logid="0317013312" type="utm" subtype="webfilter" eventtype="ftgd_allow" level="notice" vd="root" policyid=7 sessionid={n} user="jdoe" srcip={client} srcport=51234 dstip=198.51.100.20 dstport=443 proto=6 service="HTTPS" hostname="{host}" profile="default" action="passthrough" reqtype="direct" url="https://{host}/backend-api/conversation" sentbyte=1520 rcvdbyte=9120 direction="outgoing" msg="URL belongs to an allowed category in policy" catdesc="Artificial Intelligence Technology"',
  },
  {
    name: 'key=value firewall, WELF',
    format: 'firewall-kv',
    separator: ' ',
    line: 'id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 pri=6 c=1024 gcat=2 m=97 msg="Web site hit" src={client}:50222:X0 dst=198.51.100.20:443:X1 usr="jdoe" proto=tcp/https sent=911 rcvd=20480 dstname={host} arg=/api/organizations code=64 Category="Not Rated" n={n} fw_action="NA"',
  },
  {
    name: 'key=value of no known vendor',
    format: 'any-kv',
    separator: ' ',
    line: 'ts=2026-11-20T09:15:02+01:00 level=info src={client} dst=198.51.100.20 query={host} action=allowed rule={n}',
  },
  {
    name: 'open-source firewall, filter',
    format: 'open-firewall-csv',
    separator: ',',
    line: '77,,,1700000101,vlan0.40,match,pass,in,4,0x0,,64,{n},0,DF,6,tcp,60,{client},198.51.100.20,50222,443,0,S,2713340011,,65228,,mss;nop;wscale',
  },
  {
    name: 'open-source firewall, DNS replies',
    format: 'open-firewall-csv',
    separator: ',',
    line: 'DNS-reply,2026-11-20 09:15:04,reply,A,A,{n},{host},{client},198.51.100.77,US',
  },
  {
    name: 'forward proxy, native',
    format: 'proxy-native',
    separator: ' ',
    line: '1795162502.119    318 {client} TCP_TUNNEL/200 {n} CONNECT {host}:443 jdoe HIER_DIRECT/198.51.100.20 -',
  },
  {
    name: 'forward proxy, combined',
    format: 'proxy-common',
    separator: ' ',
    line: '{client} - corp\\jdoe [20/Nov/2026:09:15:02 +0100] "CONNECT {host}:443 HTTP/1.1" 200 {n} "-" "curl/8.5.0" TCP_TUNNEL:HIER_DIRECT',
  },
  {
    name: 'Windows DNS debug',
    format: 'windows-dns',
    separator: ' ',
    line: '11/20/2026 9:15:02 AM 0A14 PACKET  00000000041C20D0 UDP Rcv {client}      71aa   Q [0001   D   NOERROR] A      {labels}',
  },
  {
    name: 'BIND',
    format: 'bind-query',
    separator: ' ',
    line: 'client @0x7fb1c0004e10 {client}#40404 ({host}): query: {host} IN HTTPS +E(0)K (192.0.2.53)',
  },
  {
    name: 'unbound',
    format: 'unbound',
    separator: ' ',
    line: '[3120:0] info: {client} {host}. A IN',
  },
  {
    name: 'dnsmasq',
    format: 'dnsmasq',
    separator: ' ',
    line: 'query[A] {host} from {client}',
  },
  {
    name: 'CoreDNS',
    format: 'sentences',
    separator: ' ',
    line: '[INFO] {client}:51234 - 4711 "A IN {host}. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s',
  },
  {
    name: 'cloud web gateway, CSV',
    format: 'zscaler',
    separator: ',',
    line: '"Fri Nov 20 08:15:02 2026","jdoe@example.com","HTTPS","{host}/backend-api/conversation","Allowed","ChatGPT","AI and ML Applications","1212","{n}","41","58","Business Use","Information Technology","AI and ML Apps","None","None","0","None","None","HQ","Sales, EMEA","{client}","198.51.100.20","POST","200","Mozilla/5.0 (Windows NT 10.0%2c Win64)","None","None","None","Other","None","jdoe","PC-7","N/A"',
  },
  {
    name: 'cloud web gateway, DNS CSV',
    format: 'umbrella',
    separator: ',',
    line: '"2026-11-20 08:15:02","Doe, Jane (jdoe@example.com)","Doe, Jane (jdoe@example.com),PC-{n}","{client}","203.0.113.7","Allowed","1 (A)","NOERROR","{host}.","Generative AI,Application","AD Users","AD Users,Anyconnect Roaming Client",""',
  },
  {
    name: 'CEF',
    format: 'cef',
    separator: ' ',
    line: 'CEF:0|Fortinet|Fortigate|v7.4.1|13312|utm:webfilter ftgd_allow passthrough|3|deviceExternalId=FGT1 FTNTFGTeventtime=1795162502123456789 FTNTFGTtz=+0100 src={client} spt=51234 dst=198.51.100.20 dpt=443 duser=jdoe app=HTTPS dhost={host} act=passthrough request=/backend-api/me?x=1 out=96 in={n}',
  },
  {
    name: 'LEEF',
    format: 'leef',
    separator: '\t',
    line: 'LEEF:1.0|WatchGuard|XTM|12.10.1|1AFF0024|serial=S{n}\tpolicy=HTTPS-00\tdisp=Allow\tsrc={client}\tsrcPort=50301\tdst=198.51.100.20\tdstPort=443\tproto=tcp\top=GET\tdstname={host}\targ=/\tsent_bytes=733',
  },
  {
    name: 'collector JSON',
    format: 'collector-json',
    separator: ',',
    line: '{"id":"00112233445566aa00000000000{n}","name":"{host}","client":"{client}","method":"dns","first_seen":"2026-11-20T08:15:02.119Z","last_seen":"2026-11-20T08:15:58.002Z","count":3}',
  },
  {
    name: 'JSON by paths, nested',
    format: 'json-logs',
    separator: ',',
    line: '{"insertId":"{n}","jsonPayload":{"authAnswer":false,"destinationIP":"169.254.169.254","protocol":"UDP","queryName":"{host}.","queryType":"A","responseCode":"NOERROR","serverLatency":3,"sourceIP":"{client}","sourceNetwork":"default","structuredRdata":[],"vmInstanceName":"vm-1"},"logName":"projects/p/logs/dns.googleapis.com%2Fdns_queries","receiveTimestamp":"2026-11-20T08:15:03.119Z","resource":{"type":"dns_query","labels":{"project_id":"p","source_type":"gce-vm","target_name":""}},"severity":"INFO","timestamp":"2026-11-20T08:15:02.119Z"}',
  },
  {
    name: 'JSON by paths, network sensor',
    format: 'json-logs',
    separator: ',',
    line: '{"timestamp":"2026-11-20T09:15:02.119000+0100","flow_id":{n},"in_iface":"eth0","event_type":"dns","src_ip":"{client}","src_port":51234,"dest_ip":"192.0.2.53","dest_port":53,"proto":"UDP","dns":{"version":3,"type":"request","tx_id":0,"id":4711,"flags":"100","rd":true,"opcode":0,"rcode":"NOERROR","queries":[{"rrname":"{host}","rrtype":"A"}]}}',
  },
  {
    name: 'sentence, DNS server',
    format: 'sentences',
    separator: ' ',
    line: '[2026-11-20 08:15:02 UTC] [{client}:51234] [UDP] QNAME: {host}; QTYPE: A; QCLASS: IN; RCODE: NoError; ANSWER: [198.51.100.20]',
  },
  {
    name: 'sentence, firewall',
    format: 'sentences',
    separator: ' ',
    line: 'WEBFILTER_URL_PERMITTED [junos@2636.1.1.1.2.129 source-zone="trust" destination-zone="untrust" source-address="{client}" source-port="51234" destination-address="198.51.100.20" destination-port="443" session-id="{n}" application="SSL" nested-application="OPENAI" category="Enhanced_Generative_AI" reason="BY_PRE_DEFINED" profile="wf" url="{host}" obj="/" username="jdoe" roles="N/A"]',
  },
  {
    name: 'key: value firewall',
    format: 'cisco',
    separator: ',',
    line: '%FTD-1-430003: EventPriority: Low, DeviceUUID: 0, InstanceID: 1, FirstPacketSecond: 2026-11-20T08:15:02Z, ConnectionID: {n}, AccessControlRuleAction: Allow, SrcIP: {client}, DstIP: 198.51.100.20, SrcPort: 51234, DstPort: 443, Protocol: tcp, IngressInterface: inside, EgressInterface: outside, ACPolicy: p, AccessControlRuleName: ai, Prefilter Policy: d, User: jdoe, Client: SSL client, ApplicationProtocol: HTTPS, ConnectionDuration: 12, InitiatorBytes: 911, ResponderBytes: 20480, URL: https://{host}',
  },
  {
    name: 'JSON of a proxy',
    format: 'json-logs',
    separator: ',',
    line: '{"@timestamp":"2026-11-20T08:15:02.119Z","service":{"type":"squid"},"source":{"ip":"{client}"},"http":{"request":{"method":"CONNECT"},"response":{"status_code":200,"bytes":{n}}},"url":{"original":"{host}:443"},"labels":{"request_status":"TCP_TUNNEL"}}',
  },
  {
    name: 'W3C extended',
    format: 'w3c-extended',
    separator: ' ',
    line: '2026-11-20 08:15:02 {n} {client} jdoe CONNECT tcp {host} 443 / 200 TCP_TUNNELED 1520 9120',
  },
  {
    name: 'any CSV with a header',
    format: 'any-csv',
    separator: ';',
    line: '20.11.2026 09:15:02;{client};{host};allowed;{n}',
  },
]

/** The line that a source sends before its lines, if a format needs one. */
export const HEADER_LINES: Readonly<Record<string, string>> = {
  'w3c-extended':
    '#Fields: date time time-taken c-ip cs-username cs-method cs-uri-scheme cs-host cs-uri-port cs-uri-path sc-status s-action cs-bytes sc-bytes',
  'any-csv': 'Timestamp;Client;Requested Domain;Action;Rule',
}

/** `count` lines of a kind. Every tenth names a platform. */
export function linesOf({ line }: LineKind, count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const host = index % 10 === 0 ? 'api.openai.com' : `site${index % 40}.news${index % 7}.example.com`
    return line
      .replaceAll('{host}', host)
      .replaceAll(
        '{labels}',
        `${host
          .split('.')
          .map((label) => `(${label.length})${label}`)
          .join('')}(0)`,
      )
      .replaceAll('{client}', `192.0.2.${1 + (index % 250)}`)
      .replaceAll('{n}', String(10_000 + (index % 80_000)))
  })
}
