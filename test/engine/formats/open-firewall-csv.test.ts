import t from 'tap'
import { checkGrowth, checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow } from '../../support/log-rows.ts'

const TCP =
  '77,,,1700000101,vlan0.40,match,pass,in,4,0x0,,64,30211,0,DF,6,tcp,60,192.0.2.45,198.51.100.20,50222,443,0,S,2713340011,,65228,,mss;nop;wscale'
const UDP6 =
  '4,,,02f4bab031b57d1e30553ce08e0ec131,igb0.40,match,block,out,6,0x00,0x00000,64,UDP,17,60,2001:db8:10::45,2001:db8:ffff::8,50222,53,40'
const BLOCKED =
  'DNSBL-python,Nov 20 09:15:02,api.deepseek.com,192.0.2.45,Python,DNSBL,DNSBL_AI,deepseek.com,AI_feed,+,A'
const REPLY = 'DNS-reply,2026-11-20 09:15:04,reply,A,A,300,gemini.google.com,2001:db8:10::45,198.51.100.77,US'

const rows: LogRow[] = [
  {
    name: 'a blocked query, without a year',
    line: BLOCKED,
    verdict: 'event',
    host: 'api.deepseek.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'blocked',
  },
  {
    name: 'a query that was answered',
    line: REPLY,
    verdict: 'event',
    host: 'gemini.google.com',
    client: '2001:db8:10::45',
    time: '2026-11-20T09:15:04',
    action: 'allowed',
  },
  {
    name: 'another mode of the blocker',
    line: BLOCKED.replace('DNSBL-python', 'DNSBL-Full'),
    verdict: 'event',
    host: 'api.deepseek.com',
  },
  {
    name: 'a time by numbers',
    line: BLOCKED.replace('Nov 20 09:15:02', '11/20/26 09:15:02'),
    verdict: 'event',
    host: 'api.deepseek.com',
    time: '2026-11-20T09:15:02',
  },
  {
    name: 'the last day of the previous year',
    line: BLOCKED.replace('Nov 20', 'Dec 31'),
    verdict: 'event',
    host: 'api.deepseek.com',
    time: '2025-12-31T09:15:02',
  },
  {
    name: 'a name in mixed case that starts with an underscore',
    line: REPLY.replace('gemini.google.com', '_dns.Resolver.ARPA'),
    verdict: 'event',
    host: '_dns.resolver.arpa',
  },
  { name: 'a packet of IPv4', line: TCP, verdict: 'noDomain', client: '192.0.2.45', time: '' },
  { name: 'a packet of IPv6', line: UDP6, verdict: 'noDomain', client: '2001:db8:10::45' },
  { name: 'the tag before it', line: `filterlog[40112]: ${TCP}`, verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'the tag without colon', line: `filterlog[40112] ${TCP}`, verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'the tag without number', line: `filterlog: ${TCP}`, verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'another reason than a match', line: TCP.replace('match', 'fragment'), verdict: 'noDomain' },
  { name: 'a garbled tail', line: `${TCP.slice(0, 60)}\u0001\u0002evil.example`, verdict: 'noDomain' },
  { name: 'the tag, and garbage', line: 'filterlog[40112]: 77,,evil.example', verdict: 'noDomain' },
  { name: 'an interface that looks like a host', line: TCP.replace('vlan0.40', 'lan.example'), verdict: 'noDomain' },
  { name: 'a translation', line: TCP.replace('pass', 'rdr'), verdict: 'noDomain' },
  {
    name: 'a row of addresses',
    line: 'Block,Nov 20 09:15:02,1770009001,igb0,WAN,block,4,6,TCP-S,198.51.100.9,192.0.2.1,40111,443,in,US,pfB_Top_v4,198.51.100.0/24,Feed,evil.example,Unknown,+',
    verdict: 'noDomain',
    time: '2026-11-20T09:15:02',
  },
  {
    name: 'a row of allowed addresses',
    line: 'Permit,2026-11-20 09:15:02,1770009001,igb0,WAN,pass,4,6,TCP-S,198.51.100.9,192.0.2.1',
    verdict: 'noDomain',
  },
  {
    name: 'a row of addresses without a readable time',
    line: 'Block,Nov |0 09:15:02,1770009001,igb0,WAN,block,4,6,TCP-S,198.51.100.9,192.0.2.1,40111,443,in,US,pfB_Top_v4,198.51.100.0/24,Feed,evil.example,Unknown,+',
    verdict: 'reject',
    reason: /time: expected/,
  },
  ...['2026-11-20T09:15:02Z', '2026-11-20 09:15:02', '1795166102'].map(
    (time): LogRow => ({
      name: `another CSV file that begins with an action, at ${time}`,
      line: `Block,${time},192.0.2.45,claude.ai,443,tcp,GET,200`,
      verdict: 'event',
      format: 'any-csv',
      host: 'claude.ai',
      client: '192.0.2.45',
    }),
  ),
  { name: 'a single label', line: REPLY.replace('gemini.google.com', 'printer'), verdict: 'noDomain' },
  { name: 'the root', line: REPLY.replace('gemini.google.com', '.'), verdict: 'noDomain' },
  { name: 'a reverse lookup', line: REPLY.replace('gemini.google.com', '45.2.0.192.in-addr.arpa'), verdict: 'skip' },
  {
    name: 'a client that is a name',
    line: BLOCKED.replace('192.0.2.45', 'pc-7.example.com'),
    verdict: 'reject',
    reason: /^client/,
  },
  { name: 'no client', line: BLOCKED.split(',').slice(0, 3).join(','), verdict: 'reject', reason: /^fields/ },
  { name: 'a truncated answer', line: REPLY.split(',').slice(0, 7).join(','), verdict: 'reject', reason: /^fields/ },
  { name: 'a nonexistent day', line: BLOCKED.replace('Nov 20', 'Nov 31'), verdict: 'reject', reason: /^time/ },
  { name: 'no time after the word', line: 'DNSBL-python,api.deepseek.com,192.0.2.45', verdict: 'unknown' },
  { name: 'a text that begins with a word of theirs', line: 'Block,claude.ai,192.0.2.45', verdict: 'unknown' },
  { name: 'an unknown direction', line: TCP.replace(',in,', ',up,'), verdict: 'unknown' },
]

checkRows(t, 'open-firewall-csv', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
)
checkGrowth(t, {
  commas: (bytes) => ','.repeat(bytes),
  'commas behind a row': (bytes) => `${BLOCKED}${','.repeat(bytes)}`,
  'commas behind a packet': (bytes) => `${TCP}${','.repeat(bytes)}`,
  quotes: (bytes) => `7,,${'"'.repeat(bytes)}`,
  digits: (bytes) => '7'.repeat(bytes),
})
