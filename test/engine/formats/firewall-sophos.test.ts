import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const WEB =
  'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" device_name="XG210" device_id=C2000000000001 log_id=050901616001 log_type="Content Filtering" log_component="HTTP" log_subtype="Allowed" status="" priority=Information fw_rule_id=3 user_name="" category="AI" url="https://claude.ai/chat" contenttype="text/html" src_ip=192.0.2.45 dst_ip=198.51.100.20 protocol="TCP" sent_bytes=911 recv_bytes=20480 domain=claude.ai exceptions="" reason=""'
const TLS =
  'device_name="SFW" timestamp="2026-11-20T09:15:02+0100" device_model="XGS87" device_serial_id="C01" log_id="19001" log_type="SSL" log_component="SSL" log_subtype="Do not decrypt" src_ip="192.0.2.45" dst_ip="198.51.100.20" server_cert="x" sni="api.anthropic.com" category="AI"'
const UTM =
  '2026:11:20-09:15:02 utm-1 httpproxy[5150]: id="0001" severity="info" sys="SecureWeb" sub="http" name="http access" action="pass" method="CONNECT" srcip="192.0.2.45" dstip="198.51.100.20" user="jdoe" statuscode="200" size="18810" url="https://api.openai.com/"'

const rows: LogRow[] = [
  {
    name: 'a web request, in an ambiguous zone',
    line: WEB,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'allowed',
  },
  {
    name: 'a zone that is a number',
    line: WEB.replace('"CET"', '"+11"'),
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-19T22:15:02Z',
  },
  {
    name: 'a web request that was denied',
    line: WEB.replace('"Allowed"', '"Denied"'),
    verdict: 'event',
    host: 'claude.ai',
    action: 'blocked',
  },
  {
    name: 'the URL where there is no domain',
    line: WEB.replace('domain=claude.ai', 'domain='),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'words without quotes that hold blanks',
    line: WEB.replace('fw_rule_id=3', 'fw_rule_id=3 ether_type=IPv4 (0x0800) message=see domain evil.example here'),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a TLS handshake',
    line: TLS,
    verdict: 'event',
    host: 'api.anthropic.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'unknown',
  },
  {
    name: "the older UTM's proxy",
    line: UTM,
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'allowed',
  },
  {
    name: "the older UTM's proxy, the header taken off, blocked, IPv6",
    line: UTM.slice(UTM.indexOf('id=')).replace('"pass"', '"block"').replace('192.0.2.45', '2001:db8:10::45'),
    verdict: 'event',
    host: 'api.openai.com',
    client: '2001:db8:10::45',
    time: '',
    action: 'blocked',
  },
  {
    name: 'an allowed packet',
    line: WEB.replace('"Content Filtering"', '"Firewall"').replace('"HTTP"', '"Firewall Rule"'),
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  { name: 'a virus in a file', line: WEB.replace('"Content Filtering"', '"Anti-Virus"'), verdict: 'noDomain' },
  { name: 'an address as the domain', line: WEB.replaceAll('claude.ai', '198.51.100.20'), verdict: 'noDomain' },
  {
    name: 'a packet of the older UTM',
    line: UTM.replace('SecureWeb', 'SecureNet').replace('"http"', '"packetfilter"'),
    verdict: 'noDomain',
  },
  { name: "the firewall's own messages", line: WEB.replace('"Content Filtering"', '"Event"'), verdict: 'skip' },
  {
    name: 'the state of its components',
    line: 'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" device_name="XG210" log_type="System Health" log_component="CPU" log_subtype="Usage" system=0.5',
    verdict: 'skip',
  },
  { name: 'external requests to internal servers', line: WEB.replace('"Content Filtering"', '"WAF"'), verdict: 'skip' },
  {
    name: 'a system event of the proxy',
    line: '2026:11:20-09:15:02 utm-1 httpproxy[5150]: id="0003" severity="info" sys="SecureWeb" sub="http" request="0x1" function="confd_config_reload_func" file="confd-client.c" line="525" message="reloading config"',
    verdict: 'skip',
  },
  {
    name: 'an external client sends a request to an internal server',
    line: WEB.replace('198.51.100.20', '172.16.0.9'),
    verdict: 'skip',
    host: 'claude.ai',
  },
  {
    name: 'no type',
    line: 'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" url="https://claude.ai/"',
    verdict: 'reject',
    reason: /^log_type/,
  },
  {
    name: 'a month that does not exist',
    line: WEB.replace('2026-11-20', '2026-13-20'),
    verdict: 'reject',
    reason: /^time/,
  },
  {
    name: 'a nonexistent day',
    line: UTM.replace('2026:11:20', '2026:11:31'),
    verdict: 'reject',
    reason: /^time/,
  },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
