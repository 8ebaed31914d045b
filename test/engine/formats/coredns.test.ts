import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const rows: LogRow[] = [
  {
    name: 'query and answer in one line',
    line: '[INFO] 192.0.2.45:51234 - 4711 "A IN api.openai.com. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '',
    action: 'allowed',
  },
  {
    name: 'a refused IPv6 client',
    line: '[INFO] [2001:db8:10::45]:51234 - 4711 "AAAA IN Claude.AI. udp 43 false 512" REFUSED qr,rd 80 0.001s',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    action: 'blocked',
  },
  {
    name: 'after the time of a container runtime',
    line: '2026-11-20T08:15:02.119Z stdout F [INFO] 192.0.2.45:51234 - 4711 "HTTPS IN claude.ai. udp 43 false 512" NXDOMAIN qr,rd,ra 80 0.001s',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02.119Z',
    action: 'unknown',
  },
  {
    name: 'a single label',
    line: '[INFO] 192.0.2.45:51234 - 4711 "A IN wpad. udp 43 false 512" NXDOMAIN qr 80 0.001s',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a reverse lookup',
    line: '[INFO] 192.0.2.45:51234 - 4711 "PTR IN 45.2.0.192.in-addr.arpa. udp 43 false 512" NOERROR qr 80 0.001s',
    verdict: 'skip',
  },
  {
    name: 'the version',
    line: '[INFO] 192.0.2.45:51234 - 4711 "TXT CH version.bind. udp 43 false 512" NOERROR qr 80 0.001s',
    verdict: 'noDomain',
  },
  {
    name: 'an error of a plugin',
    line: '[ERROR] plugin/errors: 2 claude.ai. A: read udp 192.0.2.53:40000->198.51.100.9:53: i/o timeout',
    verdict: 'skip',
  },
  {
    name: 'a system event of a plugin',
    line: '[INFO] plugin/reload: Running configuration SHA512 = 7',
    verdict: 'skip',
  },
  { name: 'no name', line: '[INFO] 192.0.2.45:51234 - 4711 "A IN', verdict: 'noDomain' },
  {
    name: 'a client by its name',
    line: '[INFO] pc-7:1 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr 80 0.001s',
    verdict: 'reject',
    reason: /^client/,
  },
  { name: 'another program with the level INFO', line: '[INFO] 192.0.2.45:51234 "claude.ai"', verdict: 'unknown' },
]

checkRows(t, 'sentences', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
