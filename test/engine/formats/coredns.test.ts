import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows } from '../../support/log-rows.ts'

const rows: LogRows = {
  'query and answer in one line': [
    '[INFO] 192.0.2.45:51234 - 4711 "A IN api.openai.com. udp 43 false 512" NOERROR qr,rd,ra 80 0.001s',
    'event api.openai.com from 192.0.2.45 at -, allowed',
  ],
  'a refused IPv6 client': [
    '[INFO] [2001:db8:10::45]:51234 - 4711 "AAAA IN Claude.AI. udp 43 false 512" REFUSED qr,rd 80 0.001s',
    'event claude.ai from 2001:db8:10::45, blocked',
  ],
  'after the time of a container runtime': [
    '2026-11-20T08:15:02.119Z stdout F [INFO] 192.0.2.45:51234 - 4711 "HTTPS IN claude.ai. udp 43 false 512" NXDOMAIN qr,rd,ra 80 0.001s',
    'event claude.ai at 2026-11-20T08:15:02.119Z, unknown',
  ],
  'a single label': [
    '[INFO] 192.0.2.45:51234 - 4711 "A IN wpad. udp 43 false 512" NXDOMAIN qr 80 0.001s',
    'noDomain from 192.0.2.45',
  ],
  'a reverse lookup': [
    '[INFO] 192.0.2.45:51234 - 4711 "PTR IN 45.2.0.192.in-addr.arpa. udp 43 false 512" NOERROR qr 80 0.001s',
    'skip',
  ],
  'the version': [
    '[INFO] 192.0.2.45:51234 - 4711 "TXT CH version.bind. udp 43 false 512" NOERROR qr 80 0.001s',
    'noDomain',
  ],
  'an error of a plugin': [
    '[ERROR] plugin/errors: 2 claude.ai. A: read udp 192.0.2.53:40000->198.51.100.9:53: i/o timeout',
    'skip',
  ],
  'a system event of a plugin': ['[INFO] plugin/reload: Running configuration SHA512 = 7', 'skip'],
  'no name': ['[INFO] 192.0.2.45:51234 - 4711 "A IN', 'noDomain'],
  'a client by its name': [
    '[INFO] pc-7:1 - 4711 "A IN claude.ai. udp 43 false 512" NOERROR qr 80 0.001s',
    'reject: client',
  ],
  'another program with the level INFO': ['[INFO] 192.0.2.45:51234 "claude.ai"', 'unknown'],
}

checkFormat(t, 'sentences', rows)
