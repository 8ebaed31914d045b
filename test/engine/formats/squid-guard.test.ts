import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const HEAD = '2026-11-20 09:15:02 [31]'

const rows: LogRows = {
  'a rejected tunnel': [
    `${HEAD} Request(default/ai/-) claude.ai:443 192.0.2.45/192.0.2.45 - CONNECT REDIRECT`,
    'event claude.ai from 192.0.2.45 at 2026-11-20T09:15:02, blocked',
  ],
  'an allowed URL of an IPv6 client': [
    `${HEAD} Request(staff/none/-) http://chat.mistral.ai/x 2001:db8:10::45/pc-7.example.com jdoe GET PASS`,
    'event chat.mistral.ai from 2001:db8:10::45, allowed',
  ],
  'the name of a client is no host': [
    `${HEAD} Request(default/in-addr/-) 198.51.100.20:443 192.0.2.45/claude.ai - CONNECT REDIRECT`,
    'noDomain from 192.0.2.45',
  ],
  'a path is not a host': [`${HEAD} Request(default/ai/-) /claude.ai 192.0.2.45/- - GET REDIRECT`, 'noDomain'],
  'its start message': [`${HEAD} squidGuard 1.6.0 started (1795162502.119)`, 'unknown'],
  'a message about its lists': [`${HEAD} init domainlist /var/db/ai/claude.ai`, 'unknown'],
  'a nonexistent day': [
    '2026-02-31 09:15:02 [31] Request(default/ai/-) claude.ai:443 192.0.2.45/- - CONNECT REDIRECT',
    'reject: time',
  ],
  'no client': [`${HEAD} Request(default/ai/-) claude.ai:443`, 'unknown'],
  'another program': [`${HEAD} worker claude.ai 192.0.2.45`, 'unknown'],
}

checkFormat(t, 'sentences', rows)
