import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import type { LogRows, NamedRow } from '../../support/log-rows.ts'

const TCP =
  '77,,,1700000101,vlan0.40,match,pass,in,4,0x0,,64,30211,0,DF,6,tcp,60,192.0.2.45,198.51.100.20,50222,443,0,S,2713340011,,65228,,mss;nop;wscale'
const UDP6 =
  '4,,,02f4bab031b57d1e30553ce08e0ec131,igb0.40,match,block,out,6,0x00,0x00000,64,UDP,17,60,2001:db8:10::45,2001:db8:ffff::8,50222,53,40'
const BLOCKED =
  'DNSBL-python,Nov 20 09:15:02,api.deepseek.com,192.0.2.45,Python,DNSBL,DNSBL_AI,deepseek.com,AI_feed,+,A'
const REPLY = 'DNS-reply,2026-11-20 09:15:04,reply,A,A,300,gemini.google.com,2001:db8:10::45,198.51.100.77,US'

const rows: LogRows = {
  'a blocked query, without a year': [
    BLOCKED,
    'event api.deepseek.com from 192.0.2.45 at 2026-11-20T09:15:02, blocked',
  ],
  'a query that was answered': [REPLY, 'event gemini.google.com from 2001:db8:10::45 at 2026-11-20T09:15:04, allowed'],
  'another mode of the blocker': [BLOCKED.replace('DNSBL-python', 'DNSBL-Full'), 'event api.deepseek.com'],
  'a time by numbers': [
    BLOCKED.replace('Nov 20 09:15:02', '11/20/26 09:15:02'),
    'event api.deepseek.com at 2026-11-20T09:15:02',
  ],
  'the last day of the previous year': [
    BLOCKED.replace('Nov 20', 'Dec 31'),
    'event api.deepseek.com at 2025-12-31T09:15:02',
  ],
  'a name in mixed case that starts with an underscore': [
    REPLY.replace('gemini.google.com', '_dns.Resolver.ARPA'),
    'event _dns.resolver.arpa',
  ],
  'a packet of IPv4': [TCP, 'noDomain from 192.0.2.45 at -'],
  'a packet of IPv6': [UDP6, 'noDomain from 2001:db8:10::45'],
  'the tag before it': [`filterlog[40112]: ${TCP}`, 'noDomain from 192.0.2.45'],
  'the tag without colon': [`filterlog[40112] ${TCP}`, 'noDomain from 192.0.2.45'],
  'the tag without number': [`filterlog: ${TCP}`, 'noDomain from 192.0.2.45'],
  'another reason than a match': [TCP.replace('match', 'fragment'), 'noDomain'],
  'a garbled tail': [`${TCP.slice(0, 60)}\u0001\u0002evil.example`, 'noDomain'],
  'the tag, and garbage': ['filterlog[40112]: 77,,evil.example', 'noDomain'],
  'an interface that looks like a host': [TCP.replace('vlan0.40', 'lan.example'), 'noDomain'],
  'a translation': [TCP.replace('pass', 'rdr'), 'noDomain'],
  'a row of addresses': [
    'Block,Nov 20 09:15:02,1770009001,igb0,WAN,block,4,6,TCP-S,198.51.100.9,192.0.2.1,40111,443,in,US,pfB_Top_v4,198.51.100.0/24,Feed,evil.example,Unknown,+',
    'noDomain at 2026-11-20T09:15:02',
  ],
  'a row of allowed addresses': [
    'Permit,2026-11-20 09:15:02,1770009001,igb0,WAN,pass,4,6,TCP-S,198.51.100.9,192.0.2.1',
    'noDomain',
  ],
  'a row of addresses without a readable time': [
    'Block,Nov |0 09:15:02,1770009001,igb0,WAN,block,4,6,TCP-S,198.51.100.9,192.0.2.1,40111,443,in,US,pfB_Top_v4,198.51.100.0/24,Feed,evil.example,Unknown,+',
    'reject',
    { reason: /time: expected/ },
  ],
  ...Object.fromEntries(
    ['2026-11-20T09:15:02Z', '2026-11-20 09:15:02', '1795166102'].map(
      (time): NamedRow => [
        `another CSV file that begins with an action, at ${time}`,
        [
          `Block,${time},192.0.2.45,claude.ai,443,tcp,GET,200`,
          'event claude.ai from 192.0.2.45',
          { format: 'any-csv' },
        ],
      ],
    ),
  ),
  'a single label': [REPLY.replace('gemini.google.com', 'printer'), 'noDomain'],
  'the root': [REPLY.replace('gemini.google.com', '.'), 'noDomain'],
  'a reverse lookup': [REPLY.replace('gemini.google.com', '45.2.0.192.in-addr.arpa'), 'skip'],
  'a client that is a name': [BLOCKED.replace('192.0.2.45', 'pc-7.example.com'), 'reject: client'],
  'no client': [BLOCKED.split(',').slice(0, 3).join(','), 'reject: fields'],
  'a truncated answer': [REPLY.split(',').slice(0, 7).join(','), 'reject: fields'],
  'a nonexistent day': [BLOCKED.replace('Nov 20', 'Nov 31'), 'reject: time'],
  'no time after the word': ['DNSBL-python,api.deepseek.com,192.0.2.45', 'unknown'],
  'a text that begins with a word of theirs': ['Block,claude.ai,192.0.2.45', 'unknown'],
  'an unknown direction': [TCP.replace(',in,', ',up,'), 'unknown'],
}

checkFormat(t, 'open-firewall-csv', rows, {
  commas: (bytes) => ','.repeat(bytes),
  'commas behind a row': (bytes) => `${BLOCKED}${','.repeat(bytes)}`,
  'commas behind a packet': (bytes) => `${TCP}${','.repeat(bytes)}`,
  quotes: (bytes) => `7,,${'"'.repeat(bytes)}`,
  digits: (bytes) => '7'.repeat(bytes),
})
