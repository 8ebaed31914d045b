import t from 'tap'
import { MessageReader, type Read } from '../../support/log-rows.ts'
import * as fc from '../../support/property.ts'
import { readMessage } from '../../support/read-messages.ts'

/**
 * What a line is about. A client controls all of it but its address: the name that it looks up, the
 * path of its URL, its user agent and the user name that it signs in with.
 */
interface Request {
  readonly client: string
  readonly host: string
  readonly path: string
  readonly agent: string
  readonly user: string
}
type Controlled = Exclude<keyof Request, 'client'>

interface Writer {
  /** What escapes the fields, by the vendor's documentation or source. */
  readonly escaping: string
  /** The format that must read the line. Absent: no event, whatever the client writes. */
  readonly format?: string
  /** Default: the host. */
  readonly controlled?: readonly Controlled[]
  readonly header?: string
  /**
   * No rule tells the host from another of a client's own: vendors write one host under several
   * names. A client can request any host.
   */
  readonly mayNameOtherHost?: true
  readonly line: (request: Request) => string
}

const printable = (text: string): string => text.replaceAll(/[^\t -~]/g, '?')
/** An HTTP header may have any character but control characters, TAB excepted (RFC 9110 §5.5). */
const raw = printable
const backslash = (text: string): string => printable(text).replaceAll(/["\\]/g, String.raw`\$&`)
const doubled = (text: string): string => printable(text).replaceAll('"', '""')
const percent = (text: string): string => encodeURIComponent(printable(text)).replaceAll('%2F', '/')
const url = (text: string): string => printable(text).replaceAll(/[ \t"<>\\^`{|}]/g, (char) => percent(char))
const decimal = (char: string): string => `\\${String(char.charCodeAt(0)).padStart(3, '0')}`
const labels = (name: string): string[] => name.split('.')
const escapedName = (special: RegExp, other: RegExp) => (name: string) =>
  labels(name)
    .map((label) => label.replaceAll(special, String.raw`\$&`).replaceAll(other, decimal))
    .join('.')
/** dns_name_totext of BIND 9.20. */
const bindName = escapedName(/["();@$\\]/g, /[^\x21-\x7e]/g)
/** isDomainNameLabelSpecial of miekg/dns 1.1. */
const goName = escapedName(/[ '@;()"\\]/g, /[^\x20-\x7e]/g)
/** appendEscapedLabel of PowerDNS 5.1. */
const powerName = escapedName(/[\\]/g, /[^\x21-\x7e]/g)
/** dname_str of Unbound 1.22. */
const unboundName = (name: string): string => name.replaceAll(/[^\w.*-]/g, '?')

const WRITERS: Readonly<Record<string, Writer>> = {
  dnsmasq: {
    escaping: 'none, names with control characters are replaced (cache.c: sanitise)',
    format: 'dnsmasq',
    line: ({ host, client }) => `Nov 20 09:15:02 dnsmasq[310]: query[A] ${dnsmasqName(host)} from ${client}`,
  },
  'dnsmasq, log-queries=extra': {
    escaping: 'as dnsmasq',
    format: 'dnsmasq',
    line: ({ host, client }) => `dnsmasq[310]: 17 ${client}/51234 query[A] ${dnsmasqName(host)} from ${client}`,
  },
  'dnsmasq, answers': {
    escaping: 'as dnsmasq',
    line: ({ host }) => `Nov 20 09:15:02 dnsmasq[310]: reply ${dnsmasqName(host)} is 198.51.100.20`,
  },
  'dnsmasq without its tag': {
    escaping: 'as dnsmasq',
    line: ({ host }) => `forwarded ${dnsmasqName(host)} to 198.51.100.53`,
  },
  unbound: {
    escaping: 'a question mark for all but letters, digits, `-`, `_` and `*` (dname_str)',
    format: 'unbound',
    line: ({ host, client }) => `[3120:0] info: ${client} ${unboundName(host)}. A IN`,
  },
  BIND: {
    escaping: 'dns_name_totext',
    format: 'bind-query',
    line: ({ host, client }) =>
      `client @0x7fb1c0004e10 ${client}#40404 (${bindName(host)}): query: ${bindName(host)} IN A +E(0)K (192.0.2.53)`,
  },
  'BIND, a failed lookup': {
    escaping: 'dns_name_totext',
    line: ({ host }) =>
      `lame-servers: info: SERVFAIL unexpected RCODE resolving '${bindName(host)}/A/IN': 198.51.100.1#53`,
  },
  CoreDNS: {
    escaping: 'miekg/dns',
    format: 'sentences',
    line: ({ host, client }) =>
      `[INFO] ${client}:51234 - 4711 "A IN ${goName(host)}. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s`,
  },
  'CoreDNS, errors': {
    escaping: 'miekg/dns',
    line: ({ host }) =>
      `[ERROR] plugin/errors: 2 ${goName(host)}. A: read udp 10.0.0.2:1->198.51.100.53:53: i/o timeout`,
  },
  'Windows DNS': {
    escaping: 'none, each label has its length',
    format: 'windows-dns',
    line: ({ host, client }) =>
      `11/20/2026 9:15:02 AM 0A14 PACKET  00000000041C20D0 UDP Rcv ${client}      71aa   Q [0001   D   NOERROR] A      ${labels(
        raw(host),
      )
        .map((label) => `(${label.length})${label}`)
        .join('')}(0)`,
  },
  'PowerDNS Recursor': {
    escaping: 'DNSName::toLogString',
    format: 'sentences',
    line: ({ host, client }) => `3 [4711/1] question for '${powerName(host)}|A' from ${client}:51800`,
  },
  'PowerDNS Recursor, structured': {
    escaping: 'DNSName::toLogString, then a backslash before quotes',
    format: 'sentences',
    line: ({ host, client }) =>
      `msg="Question" subsystem="syncres" ts="1795162502.3" proto="udp" qname="${backslash(powerName(host))}" qtype="A" remote="${client}:51800"`,
  },
  'PowerDNS Authoritative': {
    escaping: 'DNSName::toLogString',
    format: 'sentences',
    line: ({ host, client }) => `Remote ${client} wants '${powerName(host)}|A', do = 0, bufsize = 512`,
  },
  dnsdist: {
    escaping: 'DNSName::toLogString',
    format: 'sentences',
    line: ({ host, client }) => `Packet from ${client}:51234 for ${powerName(host)} A with id 4711`,
  },
  'dnsdist, verbose': {
    escaping: 'DNSName::toLogString',
    format: 'sentences',
    line: ({ host, client }) => `Got query for ${powerName(host)}|A from ${client}:51234 (https), relayed to ns1`,
  },
  SmartDNS: {
    escaping: 'not documented, none is assumed',
    format: 'sentences',
    line: ({ host, client }) =>
      `[2026-11-20 09:15:02,123] ${client} query ${raw(host)}, type 1, time 12ms, speed: 12.3ms, group default, result 198.51.100.20`,
  },
  // The agent is the host name that the client gave to a DHCP server.
  ctrld: {
    escaping: 'miekg/dns; none for the name of the client',
    format: 'sentences',
    controlled: ['host', 'agent'],
    line: ({ host, client, agent }) =>
      `[a1b2c3] QUERY: ${client}:51234 (${raw(agent)}) -> listener.0: A ${goName(host)}`,
  },
  'NextDNS, command': {
    escaping: 'not documented, none is assumed',
    format: 'sentences',
    mayNameOtherHost: true,
    line: ({ host, client }) => `Query ${client} UDP A ${raw(host)}. (qry=27/res=43) 17ms HTTP/2.0`,
  },
  'DNS-collector': {
    escaping: 'quotes around names with blanks',
    format: 'sentences',
    line: ({ host, client }) =>
      `CLIENT_QUERY NOERROR ${client} 32918 INET UDP 54b ${/ /.test(host) ? `"${doubled(host)}"` : raw(host)} A 0.000000`,
  },
  RouteDNS: {
    escaping: 'miekg/dns',
    format: 'any-kv',
    mayNameOtherHost: true,
    line: ({ host, client }) => `id=syslog type=query client=${client} qtype=A qname=${goName(host)}.`,
  },
  'CoreDNS before 1.2': {
    escaping: 'miekg/dns',
    format: 'sentences',
    line: ({ host, client }) =>
      `${client}:51234 - [20/Nov/2026:09:15:02 +0100] 4711 "A IN ${goName(host)}. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s`,
  },
  Technitium: {
    escaping: 'not documented, none is assumed',
    format: 'sentences',
    line: ({ host, client }) =>
      `[2026-11-20 08:15:02 UTC] [${client}:51234] [UDP] QNAME: ${raw(host)}; QTYPE: A; QCLASS: IN; RCODE: NoError; ANSWER: [198.51.100.20]`,
  },
  'dnscrypt-proxy': {
    escaping: 'miekg/dns, then quoted as in Go',
    format: 'sentences',
    line: ({ host, client }) => `[2026-11-20 09:15:02]\t${client}\t${backslash(goName(host))}\tA\tPASS\t12ms\tserver`,
  },
  MikroTik: {
    escaping: 'not documented, none is assumed',
    format: 'sentences',
    line: ({ host, client }) => `dns,packet query from ${client}: #4711 ${raw(host)}. A`,
  },
  'MikroTik, answers': {
    escaping: 'not documented, none is assumed',
    line: ({ host }) => `dns done query: #4711 ${raw(host)}. 198.51.100.20`,
  },
  DrayTek: {
    escaping: 'not documented, none is assumed',
    format: 'sentences',
    line: ({ host, client }) =>
      `Local User (MAC=00-53-00-00-00-01): ${client} DNS -> 198.51.100.53 inquire ${raw(host)}`,
  },
  'dnstap-read': {
    escaping: 'dns_name_totext',
    format: 'sentences',
    line: ({ host, client }) =>
      `20-Nov-2026 09:15:02.123 CQ ${client}:51234 -> 192.0.2.53:53 UDP 43b ${bindName(host)}/IN/A`,
  },
  'Windows DNS, analytical': {
    escaping: 'not documented, none is assumed',
    format: 'sentences',
    line: ({ host, client }) =>
      `QUERY_RECEIVED: TCP=0; InterfaceIP=192.0.2.53; Source=${client}; RD=1; QNAME=${raw(host)}; QTYPE=1; XID=4711; Port=51234; Flags=256`,
  },
  pfBlockerNG: {
    escaping: 'not documented, none is assumed',
    format: 'open-firewall-csv',
    line: ({ host, client }) => `DNS-reply,2026-11-20 09:15:04,reply,A,A,300,${raw(host)},${client},198.51.100.77,US`,
  },
  'pfBlockerNG, blocked': {
    escaping: 'not documented, none is assumed',
    format: 'open-firewall-csv',
    line: ({ host, client }) =>
      `DNSBL-python,2026-11-20 09:15:04,${raw(host)},${client},Python,DNSBL_A,AI,${raw(host)},feed,+`,
  },
  'Cisco Umbrella, DNS': {
    escaping: 'quotes are doubled (RFC 4180)',
    format: 'umbrella',
    controlled: ['host', 'user'],
    line: ({ host, client, user }) =>
      `"2026-11-20 08:15:02","${doubled(user)}","${doubled(user)},PC-1","${client}","203.0.113.7","Allowed","1 (A)","NOERROR","${doubled(host)}.","Generative AI","AD Users","AD Users,Anyconnect Roaming Client",""`,
  },
  Suricata: {
    escaping: 'JSON',
    format: 'json-logs',
    line: ({ host, client }) =>
      JSON.stringify({
        timestamp: '2026-11-20T09:15:02.119000+0100',
        flow_id: 4711,
        in_iface: 'eth0',
        event_type: 'dns',
        src_ip: client,
        src_port: 51_234,
        dest_ip: '192.0.2.53',
        dest_port: 53,
        proto: 'UDP',
        dns: { version: 3, type: 'request', tx_id: 0, id: 4711, queries: [{ rrname: host, rrtype: 'A' }] },
      }),
  },
  Squid: {
    escaping: 'URL and user are percent-encoded (Format.cc)',
    format: 'proxy-native',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `1795162502.119    318 ${client} TCP_MISS/200 6120 GET http://${host}/${url(path)} ${percent(user)} HIER_DIRECT/198.51.100.20 text/html`,
  },
  'Squid, custom format': {
    escaping: 'by context: a backslash before quotes, percent-encoded otherwise (Format.cc)',
    format: 'proxy-native',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `1795162502.119 318 ${client} "${backslash(agent)}" ${percent(user)} TCP_MISS GET http://${host}/${url(path)} 200`,
  },
  'Squid, combined': {
    escaping: 'URL and user are percent-encoded, a backslash before quotes (Format.cc)',
    format: 'proxy-common',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `${client} - ${percent(user)} [20/Nov/2026:09:15:02 +0100] "GET http://${host}/${url(path)} HTTP/1.1" 200 9120 "-" "${backslash(agent)}" TCP_MISS:HIER_DIRECT`,
  },
  'Apache httpd as a proxy': {
    escaping: 'a backslash before quotes and backslashes (ap_escape_logitem)',
    format: 'proxy-common',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `${client} - ${backslash(user)} [20/Nov/2026:09:15:02 +0100] "GET http://${host}/${url(path)} HTTP/1.1" 200 9120 "${backslash(agent)}" "${backslash(agent)}"`,
  },
  'nginx with the Host header before the client': {
    escaping: String.raw`\xHH for quotes and backslashes (ngx_http_log_escape); a host has no blanks (ngx_http_validate_host)`,
    format: 'proxy-common',
    controlled: ['path', 'agent'],
    line: ({ client, host, path, agent }) =>
      `${nginx(path).replaceAll(' ', '')} ${client} - - [20/Nov/2026:09:15:02 +0100] "GET http://${host}/ HTTP/1.1" 200 9120 "-" "${nginx(agent)}"`,
  },
  squidGuard: {
    escaping: 'URL and user are percent-encoded by Squid',
    format: 'sentences',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `2026-11-20 09:15:02 [31] Request(default/ai/-) http://${host}/${url(path)} ${client}/- ${percent(user)} GET REDIRECT`,
  },
  FortiGate: {
    escaping: 'none is assumed: the backslash depends on the version',
    format: 'firewall-kv',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `date=2026-11-20 time=09:15:02 devname="fgt-1" devid="FGT60FTK00000001" eventtime=1795162502123456789 tz="+0100" logid="0317013312" type="utm" subtype="webfilter" user="${directory(user)}" agent="${raw(agent)}" srcip=${client} srcport=51234 dstip=198.51.100.20 hostname="${host}" action="passthrough" url="https://${host}/${raw(path)}" sentbyte=1520 rcvdbyte=9120 msg="x"`,
  },
  SonicWall: {
    escaping: 'not documented, none is assumed',
    format: 'firewall-kv',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `id=firewall sn=0017C5000001 time="2026-11-20 08:15:02 UTC" fw=203.0.113.1 m=97 usr="${directory(user)}" src=${client}:50222:X0 dst=198.51.100.20:443:X1 dstname=${host} arg=${raw(path)} code=64 fw_action="NA"`,
  },
  'Sophos Firewall': {
    escaping: 'not documented, none is assumed',
    format: 'firewall-kv',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" log_type="Content Filtering" log_component="HTTP" log_subtype="Allowed" user_agent="${raw(agent)}" user_name="${directory(user)}" src_ip=${client} dst_ip=198.51.100.20 domain="${host}" url="https://${host}/${raw(path)}" sent_bytes=1`,
  },
  'Sophos UTM': {
    escaping: 'not documented, none is assumed',
    format: 'firewall-kv',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `2026:11:20-09:15:02 utm httpproxy[1]: id="0001" severity="info" sys="SecureWeb" sub="http" name="http access" action="pass" method="GET" ua="${raw(agent)}" srcip="${client}" dstip="198.51.100.20" user="${directory(user)}" url="https://${host}/${raw(path)}" size="1"`,
  },
  WatchGuard: {
    escaping: 'not documented, none is assumed',
    format: 'firewall-kv',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `80B20000 (2026-11-20T08:15:02) http-proxy[1]: msg_id="1AFF-0024" Allow 1-Trusted 0-External tcp ${client} 198.51.100.20 51234 80 msg="HTTP request" proxy_act="x" op="GET" arg="${raw(path)}" src_user="${directory(user)}" dstname="${host}" sent_bytes="1" (HTTP-00)`,
  },
  'Check Point': {
    escaping: 'a backslash before quotes (sk122323)',
    format: 'firewall-kv',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `[action:"Accept"; flags:"411908"; ifname:"eth2"; loguid:"{0x1,0x2}"; time:"1795162502"; src_user_name:"${backslash(user)}"; user_agent:"${backslash(path)}"; src:"${client}"; dst:"198.51.100.20"; resource:"https://${host}/${backslash(path)}"; product:"URL Filtering"]`,
  },
  'Check Point, pairs': {
    escaping: 'not documented, none is assumed',
    format: 'firewall-kv',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `time=1795162502|loguid={0x1,0x2}|action=Accept|user_agent=${raw(path)}|src_user_name=${directory(user)}|src=${client}|dst=198.51.100.20|resource=https://${host}/${raw(path)}|product=URL Filtering`,
  },
  'Cisco Meraki': {
    escaping: 'none; a URL has no blanks',
    format: 'firewall-kv',
    controlled: ['path', 'agent'],
    line: ({ client, host, path, agent }) =>
      `1795162502.342705328 MX64 urls src=${client}:51234 dst=198.51.100.20:443 mac=00:53:00:00:00:01 agent='${raw(agent)}' request: GET https://${host}/${url(path)}`,
  },
  'Blue Coat, pairs': {
    escaping: 'not documented, none is assumed',
    format: 'firewall-kv',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `date=2026-11-20 time=08:15:02 cs-user-agent="${raw(agent)}" c-ip=${client} cs-username="${directory(user)}" cs-method=GET cs-host=${host} cs-uri=https://${host}/${raw(path)} sc-filter-result=OBSERVED cs-bytes=1`,
  },
  'Cisco Secure Firewall': {
    escaping: 'none',
    format: 'cisco',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `%FTD-1-430003: EventPriority: Low, InstanceID: 1, FirstPacketSecond: 2026-11-20T08:15:02Z, AccessControlRuleAction: Allow, SrcIP: ${client}, DstIP: 198.51.100.20, SrcPort: 51234, User: ${directory(user)}, UserAgent: ${raw(agent)}, Client: SSL client, ReferencedHost: ${host}, InitiatorBytes: 911, URL: https://${host}/${raw(path)}`,
  },
  'Cisco ASA': {
    escaping: 'none; a URL has no blanks',
    format: 'cisco',
    controlled: ['path'],
    line: ({ client, host, path }) => `%ASA-5-304001: ${client} Accessed URL 198.51.100.20:http://${host}/${url(path)}`,
  },
  'Juniper SRX': {
    escaping: 'a backslash before quotes, backslashes and `]` (RFC 5424)',
    format: 'sentences',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `WEBFILTER_URL_PERMITTED [junos@2636.1.1.1.2.129 source-zone="trust" source-address="${client}" source-port="51234" destination-address="198.51.100.20" application="SSL" profile="wf" url="${host}" obj="/${structured(path)}" username="${structured(user)}" roles="N/A"]`,
  },
  'Envoy of Istio': {
    escaping: 'none',
    format: 'sentences',
    controlled: ['path', 'agent'],
    line: ({ client, host, path, agent }) =>
      `[2026-11-20T08:15:02.119Z] "GET /${url(path)} HTTP/1.1" 200 - via_upstream - "-" 0 9120 41 40 "-" "${raw(agent)}" "4711" "${host}" "198.51.100.20:443" outbound|443||${host} 10.1.0.4:1 198.51.100.20:443 ${client}:51234 ${host} -`,
  },
  'Zscaler, CSV': {
    escaping: 'quotes, commas and backslashes are percent-encoded (feed escape characters)',
    format: 'zscaler',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `"Fri Nov 20 08:15:02 2026","${zscaler(user)}","HTTPS","${host}/${zscaler(path)}","Allowed","ChatGPT","AI","1212","99","41","58","Business Use","IT","AI","None","None","0","None","None","HQ","Sales","${client}","198.51.100.20","POST","200","${zscaler(agent)}","None"`,
  },
  'Zscaler, pairs': {
    escaping: 'none, if the feed has no escape characters',
    format: 'zscaler',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `2026-11-20 09:15:02\treason=Allowed\tevent_id=1\tprotocol=HTTPS\taction=Allowed\tuseragent=${raw(agent)}\tlocation=HQ\tClientIP=${client}\tuser=${directory(user)}\turl=${host}/${raw(path)}\tvendor=Zscaler`,
  },
  'PAN-OS': {
    escaping: 'quotes are doubled',
    format: 'firewall-csv',
    controlled: ['path', 'user'],
    line: ({ client, host, path, user }) =>
      `1,2026/11/20 09:15:02,007951000012345,THREAT,url,2817,2026/11/20 09:15:01,${client},198.51.100.20,203.0.113.7,198.51.100.20,allow-web,"${doubled(user)}",,ssl,vsys1,trust,untrust,e1,e2,siem,2026/11/20 09:15:02,7,1,51514,443,32011,443,0x40b000,tcp,alert,"${host}/${doubled(path)}",(9999),ai,informational,client-to-server`,
  },
  'CEF as specified': {
    escaping: 'a backslash before `=` and backslashes',
    format: 'cef',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `CEF:0|V|Web Gateway|1|1|web|3|rt=1795162502000 requestClientApplication=${cef(agent)} suser=${cef(user)} src=${client} dhost=${host} request=https://${host}/${cef(path)} out=96`,
  },
  'CEF without escapes': {
    escaping: 'none',
    format: 'cef',
    mayNameOtherHost: true,
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `CEF:0|V|Web Gateway|1|1|web|3|rt=1795162502000 requestClientApplication=${raw(agent)} suser=${directory(user)} src=${client} dhost=${host} request=https://${host}/${raw(path)} out=96`,
  },
  LEEF: {
    escaping: 'none',
    format: 'leef',
    mayNameOtherHost: true,
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `LEEF:1.0|V|Web Gateway|1|7|devTime=1795162502000\tuserAgent=${raw(agent)}\tusrName=${directory(user)}\tsrc=${client}\tdstname=${host}\turl=https://${host}/${raw(path)}\tsrcBytes=96`,
  },
  'key=value of another vendor': {
    escaping: 'none',
    format: 'any-kv',
    mayNameOtherHost: true,
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `time="2026-11-20T09:15:02+01:00" level=info agent="${raw(agent)}" user="${directory(user)}" src=${client} dst=198.51.100.20 url="https://${host}/${raw(path)}" action=allowed`,
  },
  'W3C extended': {
    escaping: 'quotes are doubled (W3C)',
    format: 'w3c-extended',
    controlled: ['path', 'agent', 'user'],
    header: '#Fields: date time cs(User-Agent) cs-username c-ip cs-method cs-host cs-uri-path sc-status',
    line: ({ client, host, path, agent, user }) =>
      `2026-11-20 08:15:02 "${doubled(agent)}" "${doubled(user)}" ${client} GET ${host} "/${doubled(path)}" 200`,
  },
  'CSV with a header': {
    escaping: 'quotes are doubled (RFC 4180)',
    format: 'any-csv',
    controlled: ['path', 'agent', 'user'],
    header: 'Timestamp,Agent,User,Client,URL,Action',
    line: ({ client, host, path, agent, user }) =>
      `2026-11-20 09:15:02,"${doubled(agent)}","${doubled(user)}",${client},"https://${host}/${doubled(path)}",allowed`,
  },
  'JSON of Squid (ECS)': {
    escaping: 'JSON',
    format: 'json-logs',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      JSON.stringify({
        '@timestamp': '2026-11-20T08:15:02.119Z',
        user_agent: { original: agent },
        source: { ip: client, user: { name: user } },
        http: { request: { method: 'GET' } },
        url: { original: `https://${host}/${path}` },
      }),
  },
  'JSON without escapes': {
    escaping: 'none, if the feed of Zscaler has no escape characters',
    format: 'json-logs',
    controlled: ['path', 'agent', 'user'],
    line: ({ client, host, path, agent, user }) =>
      `{"sourcetype":"zscalernss-web","event":{"datetime":"2026-11-20 09:15:02","reason":"Allowed","useragent":"${raw(agent)}","user":"${directory(user)}","ClientIP":"${client}","hostname":"${host}","url":"${host}/${raw(path)}","action":"Allowed"}}`,
  },
}

/** Active Directory allows none of these in a sAMAccountName. */
function directory(text: string): string {
  return raw(text).replaceAll(/["/\\[\]:;|=,+*?<>\t]/g, '')
}
function dnsmasqName(name: string): string {
  return /[^\x20-\x7e]/.test(name) ? '<name unprintable>' : name
}
function nginx(text: string): string {
  return text.replaceAll(/["\\]|[^\x20-\x7e]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
function zscaler(text: string): string {
  return printable(text).replaceAll(/[",\\\t]/g, percent)
}
function structured(text: string): string {
  return printable(text).replaceAll(/["\\\]]/g, String.raw`\$&`)
}
function cef(text: string): string {
  return printable(text).replaceAll(/[=\\]/g, String.raw`\$&`)
}

const TRUE: Request = { client: '10.0.0.5', host: 'docs.example', path: 'a', agent: 'curl/8.5.0', user: 'jdoe' }
/** What a hostile client tries to write into its own line. */
const FORGED: Request = { client: '10.0.0.66', host: 'claude.ai', path: 'b', agent: 'x', user: 'victim' }

const LINES = Object.values(WRITERS).map(({ line }) => line(FORGED))
const SEPARATORS = [
  '"',
  '""',
  '\\',
  '\\"',
  "'",
  ' ',
  ',',
  ';',
  '; ',
  '\t',
  '=',
  '|',
  '^^',
  '#011',
  '","',
  '" ',
  '{',
  '}',
  ']',
  '.',
]

/** Text made of a part of a line with another client, of separators and of quotes. */
function hostileText(lines: readonly string[]): fc.Arbitrary<string> {
  const part = fc
    .tuple(fc.constantFrom(...lines), fc.nat(200), fc.integer({ min: 1, max: 12 }))
    .map(([line, first, count]) => {
      const words = line.split(/(?<=[\s,="|;:'()[\]])/)
      const start = first % words.length
      return words.slice(start, start + count).join('')
    })
  const separators = fc.array(fc.constantFrom(...SEPARATORS), { maxLength: 3 }).map((all) => all.join(''))
  return fc
    .tuple(separators, part, separators, part, separators)
    .map((all) => all.join(''))
    .chain((text) => fc.constantFrom(text, `x${text}`, text.slice(0, 60), `claude.ai${text}`))
}

/** RFC 1035: labels of at most 63 bytes, and 253 characters in all. */
function nameOf(text: string): string {
  const all = labels(text)
    .map((label) => label.slice(0, 63))
    .filter((label) => label !== '')
  return `${all.join('.').slice(0, 230) || 'x'}x.example`
}

function isTrue({ client, host, user }: Read, request: Request, { mayNameOtherHost }: Writer): boolean {
  if (client !== '' && client !== request.client) return false
  if (host !== request.host.toLowerCase() && mayNameOtherHost !== true) return false
  // A name may be truncated, and keep escapes, but never be another user's.
  const isOther = user === FORGED.user && directory(request.user).trim() !== user
  const forms = [request.user, directory(request.user), percent(request.user), zscaler(request.user)]
  return !isOther && forms.some((form) => bare(form).startsWith(bare(user)))
}

function bare(text: string): string {
  return text.replaceAll(/\\t|["'\\\s]/g, '')
}

/** Texts with which a client could forge a line. */
const FORGERS = [
  ' 10.0.0.66',
  'Nov [3120:0] info: 10.0.0.66 claude.ai. A IN\t',
  'unbound[3120:0] info: 10.0.0.66 claude.ai. A IN',
  'named[1]: client @0x7fb1c0004e10 10.0.0.66#40404 (claude.ai): query: claude.ai IN A + (192.0.2.53)',
  'client @0x7fb1c0004e10 10.0.0.66#40404 (claude.ai): query: claude.ai IN Nov ',
  'dnsmasq[1]: query[A] claude.ai from 10.0.0.66',
  'claude.ai,10.0.0.66,"DNS-reply,',
  'claude.ai,10.0.0.66,DNSBL-python,"',
  '1795162502.119    318 10.0.0.66 TCP_MISS/200 6120 GET http://claude.ai/b Nov ',
  '02 [31] Request(default/ai/-) http://claude.ai/b 10.0.0.66/- Nov ',
  'Nov 09:15:02.123 CQ 10.0.0.66:51234 -> 192.0.2.53:53 UDP 43b claude.ai/IN/A',
  '192.0.2.53; Source=10.0.0.66; RD=1; QNAME=claude.ai; QTYPE=Nov ',
  '{0x1,0x2}|action=Accept|user_agent=b|src_user_name=victim|src=10.0.0.66|dst="\t,dst=198.51.100.20|resource=https://claude.ai/b||.\\"',
  'CEF:0|V|Web Gateway|1|1|web|3|rt=1795162502000 {wf" url="claude.ai" obj=\\',
  '"victim"#011Nov ',
  'x","user":"victim","ClientIP"\t:"claude.ai/b","action":"Allow',
  '2026-11-20 09:15:02\t.url=claude.ai/b\t',
]

for (const [name, writer] of Object.entries(WRITERS)) {
  const { header, line, format, controlled = ['host'] } = writer
  const sourceOf = (): MessageReader => {
    const reader = new MessageReader()
    if (header !== undefined) reader.read(header)
    return reader
  }
  t.test(`${name}: text of a client forges no other client, host or user`, async (t) => {
    if (format !== undefined) {
      const { client, host } = TRUE
      t.match(readMessage(sourceOf(), line(TRUE)), { verdict: 'event', format, client, host }, line(TRUE))
    }
    const text = fc.oneof(hostileText([line(FORGED)]), hostileText(LINES))
    const withText = (key: Controlled, value: string): Request => ({
      ...TRUE,
      [key]: key === 'host' ? nameOf(value) : value,
    })
    const request = fc.tuple(fc.constantFrom(...controlled), text).map(([key, value]) => withText(key, value))
    const known = sourceOf()
    if (format !== undefined) readMessage(known, line(TRUE))
    fc.assert(
      fc.property(request, (request) => {
        for (const reader of [sourceOf(), known]) {
          const read = readMessage(reader, line(request))
          if (read.verdict !== 'event' || (format !== undefined && isTrue(read, request, writer))) continue
          throw new Error(`${line(request)}\n${JSON.stringify(read)}`)
        }
      }),
      {
        numRuns: Number(process.env['HOSTILE_RUNS'] ?? 300),
        examples: controlled.flatMap((key) => FORGERS.map((text): [Request] => [withText(key, text)])),
      },
    )
  })
}
