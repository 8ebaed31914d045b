import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader, type NamedRow } from '../../support/log-rows.ts'

const rows: LogRows = {
  'a query in a file': [
    'Nov 20 09:15:02 dnsmasq[310]: query[A] api.openai.com from 192.0.2.45',
    'event api.openai.com from 192.0.2.45 at 2026-11-20T09:15:02, unknown',
  ],
  'with the number of the query and its client': [
    'Nov 20 09:15:02 dnsmasq[310]: 17 192.0.2.45/51234 query[AAAA] api.openai.com from 192.0.2.45',
    'event api.openai.com from 192.0.2.45',
  ],
  'without its tag, and of a type by number': [
    'query[type=65] Claude.AI from 2001:db8:10::45',
    'event claude.ai from 2001:db8:10::45 at -',
  ],
  'with number and without tag': [
    '17 2001:db8:10::45/51234 query[HTTPS] claude.ai from 2001:db8:10::45',
    'event claude.ai from 2001:db8:10::45',
  ],
  'the tag of Pi-hole, after a header and a host': [
    '<30>Nov 20 09:15:02 pi pihole-FTL[310]: query[SVCB] claude.ai from 192.0.2.45',
    'event claude.ai',
  ],
  'a host with the name of the tag': [
    'Nov 20 09:15:02 dnsmasq dnsmasq[310]: query[A] claude.ai from 192.0.2.45',
    'event claude.ai',
  ],
  'a name like the tag': ['query[A] dnsmasq from 192.0.2.45', 'noDomain from 192.0.2.45'],
  'a day at the end of the previous year': [
    'Dec 31 23:59:59 dnsmasq[310]: query[A] claude.ai from 192.0.2.45',
    'event claude.ai at 2025-12-31T23:59:59',
  ],
  'a name that is a keyword': ['query[A] from from 192.0.2.45', 'noDomain from 192.0.2.45'],
  'a name that looks like a query': ['query[A] query[A].claude.ai from 192.0.2.45', 'noDomain from 192.0.2.45'],
  'an unprintable name': ['query[A] <name unprintable> from 192.0.2.45', 'noDomain'],
  'a single label': ['query[A] wpad from 192.0.2.45', 'noDomain from 192.0.2.45'],
  'a slash in a name': ['query[A] claude.ai/x.com from 192.0.2.45', 'noDomain'],
  'a reverse lookup': ['query[PTR] 45.2.0.192.in-addr.arpa from 192.0.2.45', 'skip'],
  ...Object.fromEntries(
    [
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
    ].flatMap((text): NamedRow[] => [
      [`follows from a query: ${text}`, [text, 'skip']],
      [`after the tag: ${text}`, [`Nov 20 09:15:02 dnsmasq[310]: ${text}`, 'skip']],
    ]),
  ),
  'the server for addresses': [
    'Nov 20 09:15:02 dnsmasq-dhcp[310]: DHCPACK(eth0) 192.0.2.45 00:00:5e:00:53:01 claude.ai',
    'skip',
  ],
  ...Object.fromEntries(
    ['CET [71/T80]', 'CET [71M]', '[71/F80]', 'UTC [71F]'].map(
      (thread): NamedRow => [
        `a system event of Pi-hole: ${thread}`,
        [`2026-11-20 09:15:02.109 ${thread} INFO: Blocked claude.ai for 192.0.2.45`, 'skip'],
      ],
    ),
  ),
  'a system event of an older Pi-hole': ['[2026-11-20 09:15:02.109 71M] Blocked claude.ai for 192.0.2.45', 'skip'],
  'no "from"': ['query[A] claude.ai to 192.0.2.45', 'reject: client'],
  'no client': ['query[A] claude.ai from', 'reject: client'],
  'an invalid client': ['query[A] claude.ai from pc-7', 'reject: client'],
  'a nonexistent day': ['Feb 30 09:15:02 dnsmasq[310]: query[A] claude.ai from 192.0.2.45', 'reject: time'],
  'a reply of something else': ['reply from 192.0.2.45 for claude.ai', 'unknown'],
  'a word that begins like the tag': ['dnsmasqerade claude.ai 192.0.2.45', 'unknown'],
}

checkFormat(t, 'dnsmasq', rows)
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
