import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader } from '../../support/log-rows.ts'

const DNS =
  '"2026-11-20 08:15:02","Doe, Jane (jdoe@example.com)","Doe, Jane (jdoe@example.com),PC-7","192.0.2.45","203.0.113.7","Allowed","1 (A)","NOERROR","api.openai.com.","Generative AI,Application","AD Users","AD Users,Anyconnect Roaming Client",""'
const PROXY =
  '"2026-11-20 08:15:03","PC-7","","203.0.113.7","198.51.100.20","application/json","ALLOWED","https://claude.ai/api/append_message","https://ref.example.net/","Mozilla/5.0","200","1910","8204","7777","","Generative AI","","","","","","Roaming Computers"'

const rows: LogRows = {
  'DNS: the address inside is the client, the mail address no host': [
    DNS,
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed',
  ],
  'DNS with blanks before the quotes': [DNS.replaceAll('","', '", "'), 'event api.openai.com from 192.0.2.45'],
  'DNS without an address inside': [DNS.replace('192.0.2.45', ''), 'event api.openai.com from 203.0.113.7'],
  'DNS, blocked, of a type without name': [
    DNS.replace('Allowed', 'Blocked').replace('1 (A)', '65'),
    'event api.openai.com, blocked',
  ],
  'DNS, proxied, of another type': [
    DNS.replace('Allowed', 'Proxied').replace('1 (A)', 'Other'),
    'event api.openai.com, allowed',
  ],
  'DNS, IPv6 client': [DNS.replace('192.0.2.45', '2001:db8::45'), 'event api.openai.com from 2001:db8::45'],
  'DNS, reverse lookup': [DNS.replace('api.openai.com.', '45.2.0.192.in-addr.arpa.'), 'skip 45.2.0.192.in-addr.arpa'],
  'DNS, single label': [DNS.replace('api.openai.com.', 'wpad.'), 'noDomain from 192.0.2.45'],
  'DNS truncated before the domain': [DNS.slice(0, DNS.indexOf(',"api')), 'reject: domain'],
  'DNS of 31 November': [DNS.replace('11-20', '11-31'), 'reject: time'],
  'proxy: the URL, not the referer': [PROXY, 'event claude.ai from 203.0.113.7 at 2026-11-20T08:15:03Z, allowed'],
  'proxy, blocked, with an address inside': [
    PROXY.replace('ALLOWED', 'BLOCKED').replace('"PC-7",""', '"PC-7","192.0.2.45"'),
    'event claude.ai from 192.0.2.45, blocked',
  ],
  'proxy, a doubled quote and a comma in the URL': [
    PROXY.replace('append_message', 'x?q={""a"":1,""b"":2}'),
    'event claude.ai',
  ],
  'proxy, an address in the URL': [PROXY.replace('claude.ai', '198.51.100.20'), 'noDomain'],
  'proxy, no URL, but a referer': [PROXY.replace('https://claude.ai/api/append_message', ''), 'noDomain'],
  'proxy truncated before the URL': [PROXY.slice(0, PROXY.indexOf(',"https://claude')), 'reject: URL'],
  'the header of an export': [
    '"Timestamp","Policy Identity","Identities","InternalIp","ExternalIp","Action","QueryType","ResponseCode","Domain","Categories"',
    'skip',
  ],
  'the header without quotes': ['Timestamp,Most Granular Identity,Identities,Internal IP,External IP,Action', 'skip'],
  'the log of addresses names no domain': [
    '"2026-11-20 08:15:02","Jane Doe","Jane Doe,PC-7","192.0.2.45","24123","198.51.100.20","443","Tunnel","AD Users,Network"',
    'unknown',
  ],
  'the audit log names no domain': [
    '"2468","2026-11-20 08:15:02","admin@example.com","","logexportconfigurations","update","209.165.200.227","","version: 4"',
    'unknown',
  ],
}
checkFormat(t, 'umbrella', rows)

t.test('long values take linear time', async (t) => {
  const reader = new MessageReader()
  t.equal(reader.read(PROXY.replace('append_message', 'x'.repeat(65_536))).host, 'claude.ai')
  t.equal(reader.read(`"2026-11-20 08:15:02",${'"",'.repeat(60_000)}`).verdict, 'unknown')
  t.equal(reader.read(`"2026-11-20 08:15:02",${'"'.repeat(200_001)}`).verdict, 'unknown')
})
