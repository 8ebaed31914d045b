import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const HTTP =
  'SERIAL (2026-11-20T08:15:02) http-proxy[1881]: msg_id="1AFF-0024" Allow 1-Trusted 0-External tcp 192.0.2.45 198.51.100.20 50301 443 msg="HTTP request" proxy_act="HTTP-Client.1" op="GET" dstname="api.perplexity.ai" arg="/chat" sent_bytes="733" rcvd_bytes="0" (HTTP-proxy-00)'
const TLS =
  '(2026-11-20T08:15:02) https-proxy[1882]: msg_id="2CFF-0001" Deny Guest net 0-External tcp 192.0.2.45 198.51.100.20 50301 443 msg="ProxyDrop: HTTPS" proxy_act="HTTPS-Client" sni="claude.ai" cn="*.other.example" cert_issuer="CN=ca.example.com" (HTTPS-00)'

const rows: LogRows = {
  'a request through the HTTP proxy': [HTTP, 'event api.perplexity.ai from 192.0.2.45 at 2026-11-20T08:15:02, allowed'],
  'a handshake that was denied, from an interface whose name has a blank': [
    TLS,
    'event claude.ai from 192.0.2.45, blocked',
  ],
  'a certificate alone': [TLS.replace('sni="claude.ai"', 'sni=""'), 'event other.example'],
  'a DNS question': [
    'FB-1 (2026-11-20T08:15:02) dns-proxy[1883]: msg_id="1DFF-0008" Allow 1-Trusted 0-External udp 2001:db8:10::45 2001:db8::53 50301 53 msg="DNS request" proxy_act="DNS-Outgoing" query_type="A" question="api.openai.com" (DNS-00)',
    'event api.openai.com from 2001:db8:10::45',
  ],
  'an address as the name': [HTTP.replace('api.perplexity.ai', '198.51.100.20'), 'noDomain'],
  'a packet, with length and time to live': [
    'FB-1 (2026-11-20T08:15:02) firewall: msg_id="3000-0148" Deny 1-Trusted 0-External 52 tcp 20 127 192.0.2.45 198.51.100.20 50301 443 offset 8 S 1 win 32 (Unhandled-00) dstname="x.example"',
    'noDomain from 192.0.2.45, blocked',
  ],
  'a mail': [
    HTTP.replace('1AFF-0024', '1BFF-000F').replace(
      'dstname="api.perplexity.ai"',
      'rcpt="a@mail.example" host="mail.example.com"',
    ),
    'noDomain',
  ],
  'a file': [HTTP.replace('1AFF-0024', '1CFF-000F'), 'noDomain'],
  'a request without a name': [
    HTTP.replace('dstname="api.perplexity.ai" ', '').replace('/chat', 'setup.zip'),
    'noDomain',
  ],
  "the device's own messages": [
    'SERIAL (2026-11-20T08:15:02) sessiond[1]: msg_id="3E00-0002" Management user admin@Firebox-DB from 192.0.2.2 logged in',
    'skip',
  ],
  'a system event without addresses': [
    'SERIAL (2026-11-20T08:15:02) loggerd[1]: msg_id="3D04-0001" Archived log file host="log.example.com"',
    'skip',
  ],
  'a nonexistent hour': [HTTP.replace('T08:15', 'T31:15'), 'reject: time'],
  'a message that is truncated inside the host': [
    HTTP.slice(0, HTTP.indexOf('lexity.ai') + 'lexity'.length),
    'reject: host',
  ],
  'another msg_id': ['msg_id="12" a="b" dstname="claude.ai"', 'unknown'],
}

checkFormat(t, 'firewall-kv', rows, {
  words: (bytes) => `x: msg_id="1AFF-0024" ${'a '.repeat(bytes / 2)}`,
  'open parentheses': (bytes) => `${'('.repeat(200)} msg_id="1AFF-0024" ${'('.repeat(bytes)}`,
})
