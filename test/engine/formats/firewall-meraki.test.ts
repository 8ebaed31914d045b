import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const URLS =
  '1795162502.342705328 MX84 urls src=192.0.2.45:51234 dst=198.51.100.20:443 mac=58:1F:AA:CE:61:F2 request: GET https://chatgpt.com/c/1?q=a=b'

const rows: LogRows = {
  'a request': [URLS, 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02.342Z, unknown'],
  'without epoch and name': [URLS.slice(URLS.indexOf('urls')), 'event chatgpt.com from 192.0.2.45 at -'],
  "RFC 5424's version before it": [`1 ${URLS}`, 'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02.342Z'],
  'an agent that calls itself a request': [
    URLS.replace('request:', "agent='Mozilla request: GET https://evil.example/' request:"),
    'event chatgpt.com',
  ],
  'an IPv6 client': [
    URLS.replace('192.0.2.45:51234', '[2001:db8:10::45]:51234'),
    'event chatgpt.com from 2001:db8:10::45',
  ],
  'an unknown method': [
    URLS.replace('GET https://chatgpt.com/c/1?q=a=b', 'UNKNOWN https://claude.ai/...'),
    'event claude.ai',
  ],
  'an address in the URL': [URLS.replace('chatgpt.com', '198.51.100.20'), 'noDomain from 192.0.2.45'],
  'a flow': [
    '1795162502.342705328 MX84 flows src=192.0.2.45 dst=198.51.100.20 mac=58:1F:AA:CE:61:F2 protocol=tcp sport=52421 dport=443 pattern: 1 all',
    'noDomain from 192.0.2.45',
  ],
  'an allowed flow': [
    '1795162502.342705328 MX84 flows allow src=192.0.2.45 dst=198.51.100.20 mac=58:1F:AA:CE:61:F2 protocol=tcp sport=52421 dport=443',
    'noDomain, allowed',
  ],
  'a rule of the firewall': [
    '1795162502.342705328 MX84 firewall src=192.0.2.45 dst=198.51.100.20 protocol=tcp sport=1 dport=443 pattern: deny (dst 198.51.100.20)',
    'noDomain',
  ],
  'an event': [
    '1795162502.342705328 MX84 events type=vpn_connectivity_change vpn_type=site-to-site peer_contact=vpn.example.com',
    'skip',
  ],
  'a lease': [
    '1795162502.342705328 MX84 events dhcp lease of ip 192.0.2.45 from mx mac 00:11 for client mac 00:22 hostname pc-7.example.com',
    'skip',
  ],
  'an attack': [
    '1795162502.342705328 MX84 ids-alerts signature=1:28423:1 priority=1 timestamp=1795162502.1 direction=ingress protocol=tcp/ip src=192.0.2.45:80 message: evil.example',
    'skip',
  ],
  'no request': [URLS.slice(0, URLS.indexOf(' request')), 'reject: request'],
  'a message that is truncated inside the host': [
    URLS.slice(0, URLS.indexOf('chatgpt.com') + 'chatgpt.co'.length),
    'reject: host',
  ],
  'the word in a text': ['the urls https://chatgpt.com/ and a=b', 'unknown'],
}

checkFormat(t, 'firewall-kv', rows, {
  requests: (bytes) => `${URLS} ${"' request: ".repeat(bytes / 11)}`,
  agents: (bytes) => `${URLS} ${" agent='".repeat(bytes / 8)}`,
  'almost requests': (bytes) => `${URLS} ${' request'.repeat(bytes / 8)}`,
})
