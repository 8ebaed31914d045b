import t from 'tap'
import { checkRows } from '../../../support/log-rows.ts'

checkRows(t, 'proxy-native', [
  {
    name: 'a tunnel names its host and port',
    line: '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT api.anthropic.com:443 jdoe HIER_DIRECT/198.51.100.20 -',
    verdict: 'event',
    host: 'api.anthropic.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02.119Z',
    action: 'unknown',
  },
  {
    name: 'a request of an IPv6 client that was denied',
    line: '1795162503.001      0 2001:db8:10::45 TCP_DENIED/403 4001 GET http://chat.mistral.ai/chat - HIER_NONE/- text/html',
    verdict: 'event',
    host: 'chat.mistral.ai',
    client: '2001:db8:10::45',
    time: '2026-11-20T08:15:03.001Z',
    action: 'blocked',
  },
  {
    name: 'the resolved address behind the hierarchy is no host',
    line: '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6120 CONNECT 198.51.100.20:443 - HIER_DIRECT/198.51.100.20 -',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a client that stands by name is not known by address',
    line: '1795162502.119    318 pc-7.example.com TCP_MISS/200 6120 GET http://claude.ai/ - HIER_DIRECT/claude.ai -',
    verdict: 'event',
    host: 'claude.ai',
    client: '',
  },
  {
    name: 'an error in the place of the URL',
    line: '1795162502.119      0 192.0.2.45 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a line without result',
    line: '1795162502.119    318 192.0.2.45 api.anthropic.com:443 jdoe',
    verdict: 'reject',
    reason: /^result/,
  },
])
