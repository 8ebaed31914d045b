import t from 'tap'
import { checkGrowth, checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const HTTP =
  'SERIAL (2026-11-20T08:15:02) http-proxy[1881]: msg_id="1AFF-0024" Allow 1-Trusted 0-External tcp 192.0.2.45 198.51.100.20 50301 443 msg="HTTP request" proxy_act="HTTP-Client.1" op="GET" dstname="api.perplexity.ai" arg="/chat" sent_bytes="733" rcvd_bytes="0" (HTTP-proxy-00)'
const TLS =
  '(2026-11-20T08:15:02) https-proxy[1882]: msg_id="2CFF-0001" Deny Guest net 0-External tcp 192.0.2.45 198.51.100.20 50301 443 msg="ProxyDrop: HTTPS" proxy_act="HTTPS-Client" sni="claude.ai" cn="*.other.example" cert_issuer="CN=ca.example.com" (HTTPS-00)'

const rows: LogRow[] = [
  {
    name: 'a request through the HTTP proxy',
    line: HTTP,
    verdict: 'event',
    host: 'api.perplexity.ai',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02',
    action: 'allowed',
  },
  {
    name: 'a handshake that was denied, from an interface whose name has a blank',
    line: TLS,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    action: 'blocked',
  },
  {
    name: 'a certificate alone',
    line: TLS.replace('sni="claude.ai"', 'sni=""'),
    verdict: 'event',
    host: 'other.example',
  },
  {
    name: 'a DNS question',
    line: 'FB-1 (2026-11-20T08:15:02) dns-proxy[1883]: msg_id="1DFF-0008" Allow 1-Trusted 0-External udp 2001:db8:10::45 2001:db8::53 50301 53 msg="DNS request" proxy_act="DNS-Outgoing" query_type="A" question="api.openai.com" (DNS-00)',
    verdict: 'event',
    host: 'api.openai.com',
    client: '2001:db8:10::45',
  },
  { name: 'an address as the name', line: HTTP.replace('api.perplexity.ai', '198.51.100.20'), verdict: 'noDomain' },
  {
    name: 'a packet, with length and time to live',
    line: 'FB-1 (2026-11-20T08:15:02) firewall: msg_id="3000-0148" Deny 1-Trusted 0-External 52 tcp 20 127 192.0.2.45 198.51.100.20 50301 443 offset 8 S 1 win 32 (Unhandled-00) dstname="x.example"',
    verdict: 'noDomain',
    client: '192.0.2.45',
    action: 'blocked',
  },
  {
    name: 'a mail',
    line: HTTP.replace('1AFF-0024', '1BFF-000F').replace(
      'dstname="api.perplexity.ai"',
      'rcpt="a@mail.example" host="mail.example.com"',
    ),
    verdict: 'noDomain',
  },
  { name: 'a file', line: HTTP.replace('1AFF-0024', '1CFF-000F'), verdict: 'noDomain' },
  {
    name: 'a request without a name',
    line: HTTP.replace('dstname="api.perplexity.ai" ', '').replace('/chat', 'setup.zip'),
    verdict: 'noDomain',
  },
  {
    name: "the device's own messages",
    line: 'SERIAL (2026-11-20T08:15:02) sessiond[1]: msg_id="3E00-0002" Management user admin@Firebox-DB from 192.0.2.2 logged in',
    verdict: 'skip',
  },
  {
    name: 'a system event without addresses',
    line: 'SERIAL (2026-11-20T08:15:02) loggerd[1]: msg_id="3D04-0001" Archived log file host="log.example.com"',
    verdict: 'skip',
  },
  { name: 'a nonexistent hour', line: HTTP.replace('T08:15', 'T31:15'), verdict: 'reject', reason: /^time/ },
  {
    name: 'a message that is truncated inside the host',
    line: HTTP.slice(0, HTTP.indexOf('lexity.ai') + 'lexity'.length),
    verdict: 'reject',
    reason: /^host/,
  },
  { name: 'another msg_id', line: 'msg_id="12" a="b" dstname="claude.ai"', verdict: 'unknown' },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
checkGrowth(t, {
  words: (bytes) => `x: msg_id="1AFF-0024" ${'a '.repeat(bytes / 2)}`,
  'open parentheses': (bytes) => `${'('.repeat(200)} msg_id="1AFF-0024" ${'('.repeat(bytes)}`,
})
