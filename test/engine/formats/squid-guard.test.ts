import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const HEAD = '2026-11-20 09:15:02 [31]'

const rows: LogRow[] = [
  {
    name: 'a rejected tunnel',
    line: `${HEAD} Request(default/ai/-) claude.ai:443 192.0.2.45/192.0.2.45 - CONNECT REDIRECT`,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'blocked',
  },
  {
    name: 'an allowed URL of an IPv6 client',
    line: `${HEAD} Request(staff/none/-) http://chat.mistral.ai/x 2001:db8:10::45/pc-7.example.com jdoe GET PASS`,
    verdict: 'event',
    host: 'chat.mistral.ai',
    client: '2001:db8:10::45',
    action: 'allowed',
  },
  {
    name: 'the name of a client is no host',
    line: `${HEAD} Request(default/in-addr/-) 198.51.100.20:443 192.0.2.45/claude.ai - CONNECT REDIRECT`,
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a path is not a host',
    line: `${HEAD} Request(default/ai/-) /claude.ai 192.0.2.45/- - GET REDIRECT`,
    verdict: 'noDomain',
  },
  { name: 'its start message', line: `${HEAD} squidGuard 1.6.0 started (1795162502.119)`, verdict: 'unknown' },
  { name: 'a message about its lists', line: `${HEAD} init domainlist /var/db/ai/claude.ai`, verdict: 'unknown' },
  {
    name: 'a nonexistent day',
    line: '2026-02-31 09:15:02 [31] Request(default/ai/-) claude.ai:443 192.0.2.45/- - CONNECT REDIRECT',
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'no client', line: `${HEAD} Request(default/ai/-) claude.ai:443`, verdict: 'unknown' },
  { name: 'another program', line: `${HEAD} worker claude.ai 192.0.2.45`, verdict: 'unknown' },
]

checkRows(t, 'sentences', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
