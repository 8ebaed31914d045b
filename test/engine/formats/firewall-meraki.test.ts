import t from 'tap'
import { checkGrowth, checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const URLS =
  '1795162502.342705328 MX84 urls src=192.0.2.45:51234 dst=198.51.100.20:443 mac=58:1F:AA:CE:61:F2 request: GET https://chatgpt.com/c/1?q=a=b'

const rows: LogRow[] = [
  {
    name: 'a request',
    line: URLS,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02.342Z',
    action: 'unknown',
  },
  {
    name: 'without epoch and name',
    line: URLS.slice(URLS.indexOf('urls')),
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '',
  },
  {
    name: "RFC 5424's version before it",
    line: `1 ${URLS}`,
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02.342Z',
  },
  {
    name: 'an agent that calls itself a request',
    line: URLS.replace('request:', "agent='Mozilla request: GET https://evil.example/' request:"),
    verdict: 'event',
    host: 'chatgpt.com',
  },
  {
    name: 'an IPv6 client',
    line: URLS.replace('192.0.2.45:51234', '[2001:db8:10::45]:51234'),
    verdict: 'event',
    host: 'chatgpt.com',
    client: '2001:db8:10::45',
  },
  {
    name: 'an unknown method',
    line: URLS.replace('GET https://chatgpt.com/c/1?q=a=b', 'UNKNOWN https://claude.ai/...'),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'an address in the URL',
    line: URLS.replace('chatgpt.com', '198.51.100.20'),
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a flow',
    line: '1795162502.342705328 MX84 flows src=192.0.2.45 dst=198.51.100.20 mac=58:1F:AA:CE:61:F2 protocol=tcp sport=52421 dport=443 pattern: 1 all',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'an allowed flow',
    line: '1795162502.342705328 MX84 flows allow src=192.0.2.45 dst=198.51.100.20 mac=58:1F:AA:CE:61:F2 protocol=tcp sport=52421 dport=443',
    verdict: 'noDomain',
    action: 'allowed',
  },
  {
    name: 'a rule of the firewall',
    line: '1795162502.342705328 MX84 firewall src=192.0.2.45 dst=198.51.100.20 protocol=tcp sport=1 dport=443 pattern: deny (dst 198.51.100.20)',
    verdict: 'noDomain',
  },
  {
    name: 'an event',
    line: '1795162502.342705328 MX84 events type=vpn_connectivity_change vpn_type=site-to-site peer_contact=vpn.example.com',
    verdict: 'skip',
  },
  {
    name: 'a lease',
    line: '1795162502.342705328 MX84 events dhcp lease of ip 192.0.2.45 from mx mac 00:11 for client mac 00:22 hostname pc-7.example.com',
    verdict: 'skip',
  },
  {
    name: 'an attack',
    line: '1795162502.342705328 MX84 ids-alerts signature=1:28423:1 priority=1 timestamp=1795162502.1 direction=ingress protocol=tcp/ip src=192.0.2.45:80 message: evil.example',
    verdict: 'skip',
  },
  { name: 'no request', line: URLS.slice(0, URLS.indexOf(' request')), verdict: 'reject', reason: /^request/ },
  {
    name: 'a message that is truncated inside the host',
    line: URLS.slice(0, URLS.indexOf('chatgpt.com') + 'chatgpt.co'.length),
    verdict: 'reject',
    reason: /^host/,
  },
  { name: 'the word in a text', line: 'the urls https://chatgpt.com/ and a=b', verdict: 'unknown' },
]

checkRows(t, 'firewall-kv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
checkGrowth(t, {
  requests: (bytes) => `${URLS} ${"' request: ".repeat(bytes / 11)}`,
  agents: (bytes) => `${URLS} ${" agent='".repeat(bytes / 8)}`,
  'almost requests': (bytes) => `${URLS} ${' request'.repeat(bytes / 8)}`,
})
