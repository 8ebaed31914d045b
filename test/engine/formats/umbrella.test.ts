import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const DNS =
  '"2026-11-20 08:15:02","Doe, Jane (jdoe@example.com)","Doe, Jane (jdoe@example.com),PC-7","192.0.2.45","203.0.113.7","Allowed","1 (A)","NOERROR","api.openai.com.","Generative AI,Application","AD Users","AD Users,Anyconnect Roaming Client",""'
const PROXY =
  '"2026-11-20 08:15:03","PC-7","","203.0.113.7","198.51.100.20","application/json","ALLOWED","https://claude.ai/api/append_message","https://ref.example.net/","Mozilla/5.0","200","1910","8204","7777","","Generative AI","","","","","","Roaming Computers"'

const rows: readonly LogRow[] = [
  {
    name: 'DNS: the address inside is the client, the mail address no host',
    line: DNS,
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'DNS with blanks before the quotes',
    line: DNS.replaceAll('","', '", "'),
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
  },
  {
    name: 'DNS without an address inside',
    line: DNS.replace('192.0.2.45', ''),
    verdict: 'event',
    host: 'api.openai.com',
    client: '203.0.113.7',
  },
  {
    name: 'DNS, blocked, of a type without name',
    line: DNS.replace('Allowed', 'Blocked').replace('1 (A)', '65'),
    verdict: 'event',
    host: 'api.openai.com',
    action: 'blocked',
  },
  {
    name: 'DNS, proxied, of another type',
    line: DNS.replace('Allowed', 'Proxied').replace('1 (A)', 'Other'),
    verdict: 'event',
    host: 'api.openai.com',
    action: 'allowed',
  },
  {
    name: 'DNS, IPv6 client',
    line: DNS.replace('192.0.2.45', '2001:db8::45'),
    verdict: 'event',
    host: 'api.openai.com',
    client: '2001:db8::45',
  },
  {
    name: 'DNS, reverse lookup',
    line: DNS.replace('api.openai.com.', '45.2.0.192.in-addr.arpa.'),
    verdict: 'skip',
    host: '45.2.0.192.in-addr.arpa',
  },
  {
    name: 'DNS, single label',
    line: DNS.replace('api.openai.com.', 'wpad.'),
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'DNS truncated before the domain',
    line: DNS.slice(0, DNS.indexOf(',"api')),
    verdict: 'reject',
    reason: /^domain/,
  },
  { name: 'DNS of 31 November', line: DNS.replace('11-20', '11-31'), verdict: 'reject', reason: /^time/ },
  {
    name: 'proxy: the URL, not the referer',
    line: PROXY,
    verdict: 'event',
    host: 'claude.ai',
    client: '203.0.113.7',
    time: '2026-11-20T08:15:03Z',
    action: 'allowed',
  },
  {
    name: 'proxy, blocked, with an address inside',
    line: PROXY.replace('ALLOWED', 'BLOCKED').replace('"PC-7",""', '"PC-7","192.0.2.45"'),
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    action: 'blocked',
  },
  {
    name: 'proxy, a doubled quote and a comma in the URL',
    line: PROXY.replace('append_message', 'x?q={""a"":1,""b"":2}'),
    verdict: 'event',
    host: 'claude.ai',
  },
  { name: 'proxy, an address in the URL', line: PROXY.replace('claude.ai', '198.51.100.20'), verdict: 'noDomain' },
  {
    name: 'proxy, no URL, but a referer',
    line: PROXY.replace('https://claude.ai/api/append_message', ''),
    verdict: 'noDomain',
  },
  {
    name: 'proxy truncated before the URL',
    line: PROXY.slice(0, PROXY.indexOf(',"https://claude')),
    verdict: 'reject',
    reason: /^URL/,
  },
  {
    name: 'the header of an export',
    line: '"Timestamp","Policy Identity","Identities","InternalIp","ExternalIp","Action","QueryType","ResponseCode","Domain","Categories"',
    verdict: 'skip',
  },
  {
    name: 'the header without quotes',
    line: 'Timestamp,Most Granular Identity,Identities,Internal IP,External IP,Action',
    verdict: 'skip',
  },
  {
    name: 'the log of addresses names no domain',
    line: '"2026-11-20 08:15:02","Jane Doe","Jane Doe,PC-7","192.0.2.45","24123","198.51.100.20","443","Tunnel","AD Users,Network"',
    verdict: 'unknown',
  },
  {
    name: 'the audit log names no domain',
    line: '"2468","2026-11-20 08:15:02","admin@example.com","","logexportconfigurations","update","209.165.200.227","","version: 4"',
    verdict: 'unknown',
  },
]
checkRows(t, 'umbrella', rows)

t.test('long values take linear time', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(PROXY.replace('append_message', 'x'.repeat(65_536))).host, 'claude.ai')
  t.equal(reader.read(`"2026-11-20 08:15:02",${'"",'.repeat(60_000)}`).verdict, 'unknown')
  t.equal(reader.read(`"2026-11-20 08:15:02",${'"'.repeat(200_001)}`).verdict, 'unknown')
})

checkMutations(
  t,
  rows.map((row) => row.line),
)
