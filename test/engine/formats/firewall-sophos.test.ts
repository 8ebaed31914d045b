import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const WEB =
  'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" device_name="XG210" device_id=C2000000000001 log_id=050901616001 log_type="Content Filtering" log_component="HTTP" log_subtype="Allowed" status="" priority=Information fw_rule_id=3 user_name="" category="AI" url="https://claude.ai/chat" contenttype="text/html" src_ip=192.0.2.45 dst_ip=198.51.100.20 protocol="TCP" sent_bytes=911 recv_bytes=20480 domain=claude.ai exceptions="" reason=""'
const TLS =
  'device_name="SFW" timestamp="2026-11-20T09:15:02+0100" device_model="XGS87" device_serial_id="C01" log_id="19001" log_type="SSL" log_component="SSL" log_subtype="Do not decrypt" src_ip="192.0.2.45" dst_ip="198.51.100.20" server_cert="x" sni="api.anthropic.com" category="AI"'
const UTM =
  '2026:11:20-09:15:02 utm-1 httpproxy[5150]: id="0001" severity="info" sys="SecureWeb" sub="http" name="http access" action="pass" method="CONNECT" srcip="192.0.2.45" dstip="198.51.100.20" user="jdoe" statuscode="200" size="18810" url="https://api.openai.com/"'

const rows: LogRows = {
  'a web request, in an ambiguous zone': [WEB, 'event claude.ai from 192.0.2.45 at 2026-11-20T09:15:02, allowed'],
  'a zone that is a number': [WEB.replace('"CET"', '"+11"'), 'event claude.ai at 2026-11-19T22:15:02Z'],
  'a web request that was denied': [WEB.replace('"Allowed"', '"Denied"'), 'event claude.ai, blocked'],
  'the URL where there is no domain': [WEB.replace('domain=claude.ai', 'domain='), 'event claude.ai'],
  'words without quotes that hold blanks': [
    WEB.replace('fw_rule_id=3', 'fw_rule_id=3 ether_type=IPv4 (0x0800) message=see domain evil.example here'),
    'event claude.ai',
  ],
  'a TLS handshake': [TLS, 'event api.anthropic.com from 192.0.2.45 at 2026-11-20T08:15:02Z, unknown'],
  "the older UTM's proxy": [UTM, 'event api.openai.com from 192.0.2.45 at 2026-11-20T09:15:02, allowed'],
  "the older UTM's proxy, the header taken off, blocked, IPv6": [
    UTM.slice(UTM.indexOf('id=')).replace('"pass"', '"block"').replace('192.0.2.45', '2001:db8:10::45'),
    'event api.openai.com from 2001:db8:10::45 at -, blocked',
  ],
  'an allowed packet': [
    WEB.replace('"Content Filtering"', '"Firewall"').replace('"HTTP"', '"Firewall Rule"'),
    'noDomain from 192.0.2.45',
  ],
  'a virus in a file': [WEB.replace('"Content Filtering"', '"Anti-Virus"'), 'noDomain'],
  'an address as the domain': [WEB.replaceAll('claude.ai', '198.51.100.20'), 'noDomain'],
  'a packet of the older UTM': [UTM.replace('SecureWeb', 'SecureNet').replace('"http"', '"packetfilter"'), 'noDomain'],
  "the firewall's own messages": [WEB.replace('"Content Filtering"', '"Event"'), 'skip'],
  'the state of its components': [
    'device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" device_name="XG210" log_type="System Health" log_component="CPU" log_subtype="Usage" system=0.5',
    'skip',
  ],
  'external requests to internal servers': [WEB.replace('"Content Filtering"', '"WAF"'), 'skip'],
  'a system event of the proxy': [
    '2026:11:20-09:15:02 utm-1 httpproxy[5150]: id="0003" severity="info" sys="SecureWeb" sub="http" request="0x1" function="confd_config_reload_func" file="confd-client.c" line="525" message="reloading config"',
    'skip',
  ],
  'an external client sends a request to an internal server': [
    WEB.replace('198.51.100.20', '172.16.0.9'),
    'skip claude.ai',
  ],
  'no type': ['device="SFW" date=2026-11-20 time=09:15:02 timezone="CET" url="https://claude.ai/"', 'reject: log_type'],
  'a month that does not exist': [WEB.replace('2026-11-20', '2026-13-20'), 'reject: time'],
  'a nonexistent day': [UTM.replace('2026:11:20', '2026:11:31'), 'reject: time'],
}

checkFormat(t, 'firewall-kv', rows)
