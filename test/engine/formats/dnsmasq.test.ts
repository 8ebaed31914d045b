import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const rows: LogRow[] = [
  {
    name: 'a query in a file',
    line: 'Nov 20 09:15:02 dnsmasq[310]: query[A] api.openai.com from 192.0.2.45',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'unknown',
  },
  {
    name: 'with the number of the query and its client',
    line: 'Nov 20 09:15:02 dnsmasq[310]: 17 192.0.2.45/51234 query[AAAA] api.openai.com from 192.0.2.45',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
  },
  {
    name: 'without its tag, and of a type by number',
    line: 'query[type=65] Claude.AI from 2001:db8:10::45',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    time: '',
  },
  {
    name: 'with number and without tag',
    line: '17 2001:db8:10::45/51234 query[HTTPS] claude.ai from 2001:db8:10::45',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
  },
  {
    name: 'the tag of Pi-hole, after a header and a host',
    line: '<30>Nov 20 09:15:02 pi pihole-FTL[310]: query[SVCB] claude.ai from 192.0.2.45',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a host with the name of the tag',
    line: 'Nov 20 09:15:02 dnsmasq dnsmasq[310]: query[A] claude.ai from 192.0.2.45',
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'a name like the tag',
    line: 'query[A] dnsmasq from 192.0.2.45',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a day at the end of the previous year',
    line: 'Dec 31 23:59:59 dnsmasq[310]: query[A] claude.ai from 192.0.2.45',
    verdict: 'event',
    host: 'claude.ai',
    time: '2025-12-31T23:59:59',
  },
  {
    name: 'a name that is a keyword',
    line: 'query[A] from from 192.0.2.45',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'a name that looks like a query',
    line: 'query[A] query[A].claude.ai from 192.0.2.45',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  { name: 'an unprintable name', line: 'query[A] <name unprintable> from 192.0.2.45', verdict: 'noDomain' },
  { name: 'a single label', line: 'query[A] wpad from 192.0.2.45', verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'a slash in a name', line: 'query[A] claude.ai/x.com from 192.0.2.45', verdict: 'noDomain' },
  { name: 'a reverse lookup', line: 'query[PTR] 45.2.0.192.in-addr.arpa from 192.0.2.45', verdict: 'skip' },
  ...[
    'forwarded api.openai.com to 9.9.9.9',
    'reply api.openai.com is 198.51.100.9',
    'cached api.openai.com is <CNAME>',
    'cached-stale api.openai.com is 198.51.100.9',
    'config claude.ai is NXDOMAIN',
    '/etc/hosts claude.ai is 192.0.2.9',
    'gravity blocked claude.ai is 0.0.0.0',
    'exactly denied claude.ai is 0.0.0.0',
    'regex denied claude.ai is 0.0.0.0',
    'special domain mask.icloud.com is NXDOMAIN',
    'Rate-limiting 192.0.2.45 is REFUSED',
    'dnssec-query[DS] claude.ai to 9.9.9.9',
    'Apple iCloud Private Relay domain mask.icloud.com is NXDOMAIN',
    'read /etc/hosts - 7 names',
    'started, version pi-hole-v2.90 cachesize 10000',
    '17 192.0.2.45/51234 reply api.openai.com is 198.51.100.9',
  ].flatMap((text): LogRow[] => [
    { name: `follows from a query: ${text}`, line: text, verdict: 'skip' },
    { name: `after the tag: ${text}`, line: `Nov 20 09:15:02 dnsmasq[310]: ${text}`, verdict: 'skip' },
  ]),
  {
    name: 'the server for addresses',
    line: 'Nov 20 09:15:02 dnsmasq-dhcp[310]: DHCPACK(eth0) 192.0.2.45 00:00:5e:00:53:01 claude.ai',
    verdict: 'skip',
  },
  ...['CET [71/T80]', 'CET [71M]', '[71/F80]', 'UTC [71F]'].map(
    (thread): LogRow => ({
      name: `a system event of Pi-hole: ${thread}`,
      line: `2026-11-20 09:15:02.109 ${thread} INFO: Blocked claude.ai for 192.0.2.45`,
      verdict: 'skip',
    }),
  ),
  {
    name: 'a system event of an older Pi-hole',
    line: '[2026-11-20 09:15:02.109 71M] Blocked claude.ai for 192.0.2.45',
    verdict: 'skip',
  },
  { name: 'no "from"', line: 'query[A] claude.ai to 192.0.2.45', verdict: 'reject', reason: /^client/ },
  { name: 'no client', line: 'query[A] claude.ai from', verdict: 'reject', reason: /^client/ },
  { name: 'an invalid client', line: 'query[A] claude.ai from pc-7', verdict: 'reject', reason: /^client/ },
  {
    name: 'a nonexistent day',
    line: 'Feb 30 09:15:02 dnsmasq[310]: query[A] claude.ai from 192.0.2.45',
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'a reply of something else', line: 'reply from 192.0.2.45 for claude.ai', verdict: 'unknown' },
  { name: 'a word that begins like the tag', line: 'dnsmasqerade claude.ai 192.0.2.45', verdict: 'unknown' },
]

checkRows(t, 'dnsmasq', rows)
t.test('its own messages are recognized after a header that took the tag', async (t) => {
  for (const line of [
    'DHCPREQUEST(eth0) 192.0.2.45 02:00:00:00:00:01',
    'DHCPACK(eth0) 192.0.2.45 02:00:00:00:00:01 claude.ai',
    'DHCPv6, IP range 2001:db8::10 -- 2001:db8::20, lease time 1h',
    'RTR-ADVERT(eth0) 2001:db8::',
    'exiting on receipt of SIGTERM',
    'possible DNS-rebind attack detected: claude.ai',
    'started, version 2.90 cachesize 150',
    'using nameserver 192.0.2.53#53',
  ]) {
    t.match(new MessageReader().read(line), { verdict: 'skip', format: 'dnsmasq' }, line)
  }
  t.equal(new MessageReader().read('exiting with claude.ai').verdict, 'unknown')
})

checkMutations(
  t,
  rows.map(({ line }) => line),
)
