import t from 'tap'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { spanText } from '../../../engine/store/name-spans.ts'
import { cpuMsOf } from '../../support/wait.ts'

/** A declaration of dhcpd.leases. */
function lease(words: string, address = '10.2.0.7'): string {
  return `lease ${address} {\n  ${words.replaceAll('; ', ';\n  ')}\n}\n`
}

const DAY = (from: string, to: string): string => `starts 5 2026/11/20 ${from}:00; ends 5 2026/11/20 ${to}:00;`
const ACTIVE = 'binding state active; next binding state free; rewind binding state free;'
const LAPTOP = `${ACTIVE} client-hostname "laptop";`
const KEA =
  'address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id'
const kea = (address: string, lifetime: number, expire: string, hostname: string, state: number): string =>
  `\n${address},00:00:5e:00:53:01,,${lifetime},${Date.parse(expire) / 1000},1,0,0,${hostname},${state},,0`

t.test('names and their times are read from CSV and from the leases of three DHCP servers', async (t) => {
  const cases: readonly (readonly [about: string, format: string, text: string, spans: readonly string[]])[] = [
    ['CSV', 'csv', '10.2.0.7,laptop', ['laptop']],
    ['CSV with a header', 'csv', '\ufeffAddress,Name\r\n# a comment\r\n10.2.0.7,laptop\r\n', ['laptop']],
    ['a later line', 'csv', '10.2.0.7,old\n10.2.0.7,laptop', ['laptop']],
    ['a name like a column', 'csv', '10.2.0.7,from', ['from']],
    [
      'CSV with times',
      'csv',
      'address,name,to,from\n10.2.0.7,old,2026-11-03,2026-11-01\n10.2.0.7,laptop,,2026-11-03T08:00:00Z\n',
      ['old from 2026-11-01 to 2026-11-03', 'laptop since 2026-11-03T08:00:00Z'],
    ],
    [
      'no times after times, which count more',
      'csv',
      'address,name,from,to\n10.2.0.7,old,2026-11-01,2026-11-03\n10.2.0.7,laptop,,\n',
      ['laptop', 'old from 2026-11-01 to 2026-11-03'],
    ],
    [
      'times after no times',
      'csv',
      'address,name,from,to\n10.2.0.7,laptop,,\n10.2.0.7,old,2026-11-01,2026-11-03\n',
      ['laptop', 'old from 2026-11-01 to 2026-11-03'],
    ],
    [
      'an end after no times',
      'csv',
      'address,name,from,to\n10.2.0.7,older,,\n10.2.0.7,laptop,,\n10.2.0.7,old,,2026-11-03\n',
      ['laptop', 'old until 2026-11-03'],
    ],
    [
      'times without a header',
      'csv',
      '10.2.0.7,old,2026-11-01,2026-11-03\n10.2.0.7,laptop,2026-11-03\n',
      ['old from 2026-11-01 to 2026-11-03', 'laptop since 2026-11-03'],
    ],
    ['other columns without a header', 'csv', '10.2.0.7,laptop,00:00:5e:00:53:01,desk 4', ['laptop']],
    ['other headers', 'csv', 'ip,host,Start,Valid until\n10.2.0.7,laptop,,2026-11-03', ['laptop until 2026-11-03']],
    ['an end only', 'csv', 'address,name,from,to\n10.2.0.7,laptop,,2026-11-03', ['laptop until 2026-11-03']],
    [
      'Kea: the last renewal and the expiry',
      'kea',
      KEA + kea('10.2.0.7', 3600, '2026-11-20T10:00:00Z', 'laptop', 0),
      ['laptop from 2026-11-20T09:00:00Z to 2026-11-20T10:00:00Z'],
    ],
    [
      'Kea: renewals are one span',
      'kea',
      KEA +
        kea('10.2.0.7', 3600, '2026-11-20T10:00:00Z', 'laptop', 0) +
        kea('10.2.0.7', 3600, '2026-11-20T10:30:00Z', 'laptop', 0) +
        kea('10.2.0.7', 3600, '2026-11-20T11:30:00Z', 'laptop', 0),
      ['laptop from 2026-11-20T09:00:00Z to 2026-11-20T11:30:00Z'],
    ],
    [
      'Kea: a lease without an end',
      'kea',
      KEA + kea('10.2.0.7', 0xffff_ffff, '2162-12-27T15:28:15Z', 'laptop', 0),
      ['laptop from 2026-11-20T09:00:00Z to 2162-12-27T15:28:15Z'],
    ],
    ['Kea: a file without times', 'kea', 'address,hostname\n10.2.0.7,laptop', ['laptop']],
    ['Kea: damaged times', 'kea', 'address,hostname,expire,valid_lifetime\n10.2.0.7,laptop,x,60', []],
    [
      'Kea: a time that cannot be printed',
      'kea',
      'address,hostname,expire,valid_lifetime\n10.2.0.7,laptop,9000000000000001,9000000000000000',
      [],
    ],
    ['Kea: declined', 'kea', KEA + kea('10.2.0.7', 3600, '2026-11-20T10:00:00Z', 'laptop', 1), []],
    ['Kea: expired', 'kea', KEA + kea('10.2.0.7', 3600, '2026-11-20T10:00:00Z', 'laptop', 2), []],
    ['Kea: deleted', 'kea', KEA + kea('10.2.0.7', 0, '2026-11-20T10:00:00Z', 'laptop', 0), []],
    ['Kea: no name', 'kea', KEA + kea('10.2.0.7', 3600, '2026-11-20T10:00:00Z', '', 0), []],
    [
      'dnsmasq: the expiry is not the end',
      'dnsmasq',
      '1795000000 00:00:5e:00:53:01 10.2.0.7 laptop 01:00:00:5e:00:53:01\n1795000000 00:00:5e:00:53:02 10.2.0.8 * *',
      ['laptop'],
    ],
    ['dnsmasq: never', 'dnsmasq', '0 00:00:5e:00:53:01 10.2.0.7 laptop *', ['laptop']],
    [
      'dhcpd',
      'dhcpd',
      `# dhcpd.leases(5)\nauthoring-byte-order little-endian;\n${lease(`${DAY('09:00', '10:00')} ${LAPTOP}`)}`,
      ['laptop from 2026-11-20T09:00:00Z to 2026-11-20T10:00:00Z'],
    ],
    ['dhcpd: no times', 'dhcpd', lease('client-hostname "laptop";'), ['laptop']],
    [
      'dhcpd: never',
      'dhcpd',
      lease(`starts 5 2026/11/20 09:00:00; ends never; ${LAPTOP}`),
      ['laptop since 2026-11-20T09:00:00Z'],
    ],
    [
      'dhcpd: seconds since 1970',
      'dhcpd',
      lease(`starts epoch 1795165200; # Fri Nov 20 09:00:00 2026\nends epoch 1795168800; ${LAPTOP}`),
      ['laptop from 2026-11-20T09:00:00Z to 2026-11-20T10:00:00Z'],
    ],
    [
      'dhcpd: renewals are one span, and another device begins another',
      'dhcpd',
      lease(`${DAY('09:00', '10:00')} ${LAPTOP}`) +
        lease(`${DAY('09:30', '10:30')} ${LAPTOP}`) +
        lease(`${DAY('11:00', '12:00')} ${ACTIVE} client-hostname "phone";`),
      [
        'laptop from 2026-11-20T09:00:00Z to 2026-11-20T10:30:00Z',
        'phone from 2026-11-20T11:00:00Z to 2026-11-20T12:00:00Z',
      ],
    ],
    [
      'dhcpd: a released lease ends',
      'dhcpd',
      lease(`${DAY('09:00', '10:00')} ${LAPTOP}`) + lease(`${DAY('09:00', '09:20')} binding state free;`),
      ['laptop from 2026-11-20T09:00:00Z to 2026-11-20T09:20:00Z'],
    ],
    [
      'dhcpd: an expired lease was one',
      'dhcpd',
      lease(`${DAY('09:00', '10:00')} binding state expired; client-hostname "laptop";`),
      ['laptop from 2026-11-20T09:00:00Z to 2026-11-20T10:00:00Z'],
    ],
    ['dhcpd: an end before the beginning', 'dhcpd', lease(`${DAY('09:00', '08:00')} ${LAPTOP}`), []],
    [
      'dhcpd: a wrong beginning',
      'dhcpd',
      lease(`starts 5 2026/11/31 09:00:00; ends 2 2026/12/01 10:00:00; ${LAPTOP}`),
      [],
    ],
    [
      'dhcpd: free without an end',
      'dhcpd',
      lease('starts 5 2026/11/20 09:00:00; ends never; binding state free; client-hostname "laptop";'),
      [],
    ],
    ['dhcpd: free without times', 'dhcpd', lease('binding state free; client-hostname "laptop";'), []],
    ...['abandoned', 'backup', 'reset'].map(
      (state) =>
        [
          `dhcpd: ${state}`,
          'dhcpd',
          lease(`${DAY('09:00', '10:00')} binding state ${state}; client-hostname "laptop";`),
          [],
        ] as const,
    ),
    [
      'dhcpd: a client that chooses words of the file',
      'dhcpd',
      `lease 10.2.0.7 {
  starts 5 2026/11/20 09:00:00;
  ends 5 2026/11/20 10:00:00;
  uid "\\001} ends never\\"; ends never;\\" binding state reset;";
  client-hostname "a; starts 5 2020/01/01 00:00:00; ends never; b";
}`,
      ['a; starts 5 2020/01/01 00:00:00; ends never; b from 2026-11-20T09:00:00Z to 2026-11-20T10:00:00Z'],
    ],
  ]
  for (const [about, format, text, spans] of cases) {
    const read = readHostNames(text, 'names')
    t.same([read.format, ...(read.names.get('10.2.0.7') ?? []).map(spanText)], [format, ...spans], about)
    t.equal(read.names.size, Number(spans.length > 0), about)
  }
})

t.test('a row that cannot be read is an error', async (t) => {
  for (const [text, message] of [
    ['10.2.0.7,laptop\nnobody,x', /names: row 2: expected address,name/],
    ['10.2.0.7', /row 1: expected address,name/],
    ['10.2.0.7,"a', /names: /],
    [
      'address,name,from\n10.2.0.7,laptop,yesterday',
      /row 2: expected a time from.*found "10\.2\.0\.7,laptop,yesterday"/,
    ],
    ['10.2.0.7,old,2026-11-01\n10.2.0.7,laptop,yesterday', /row 2: expected a time from/],
    ['address,name,from\n10.2.0.7,laptop,2026-02-30', /row 2: expected a time from/],
    ['address,name,to\n10.2.0.7,laptop,2026-11-03T08:00:00', /such as 2026-03-31 or 2026-03-31T12:00:00Z/],
    ['address,name,from,to\n10.2.0.7,laptop,2026-11-03,2026-11-03', /a later time to/],
  ] as const) {
    t.throws(() => readHostNames(text, 'names'), { code: 'USAGE', message }, text)
  }
  t.equal(readHostNames('', 'names').names.size, 0)
})

t.test('the time to read names is linear in the size of a file', async (t) => {
  const texts = [
    ...['\n', ' ', 'lease a {\n', 'lease a {', 'client-hostname "', 'lease 10.2.0.7 {\n client-hostname "x"\n'],
    ...['lease a {\n starts 5 ', 'lease a { ; ', '\\"', 'lease 10.2.0.7 { client-hostname "x"; }\n'],
    'address,name,from,to\n10.2.0.7,a,2026-01-01,2026-01-02\n10.2.0.7,b,2025-01-01,2025-01-02\n',
  ]
  for (const part of texts) {
    const read = (bytes: number): number =>
      cpuMsOf(() => {
        try {
          readHostNames(`${part.repeat(bytes / part.length)}x`, 'names')
        } catch (error) {
          t.match(error, { code: 'USAGE' })
        }
      })
    read(64 * 1024)
    // Quadratic time would be minutes.
    t.ok(read(1024 * 1024) < 5000, JSON.stringify(part))
  }
})
