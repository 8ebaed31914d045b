import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRows, MessageReader, type NamedRow } from '../../support/log-rows.ts'

const HEAD = '11/20/2026 9:15:02 AM 0A14 PACKET  00000000041C20D0 UDP'
const FLAGS = '[0001   D   NOERROR]'

function asked(name: string): string {
  return `${HEAD} Rcv 192.0.2.45      71aa   Q ${FLAGS} A      ${name}`
}

const rows: LogRows = {
  "a client's query": [
    asked('(3)api(6)openai(3)com(0)'),
    'event api.openai.com from 192.0.2.45 at 2026-11-20T09:15:02, unknown',
  ],
  'by TCP, of an IPv6 client, with the year first': [
    '2026-11-20 09:15:04 0C3C PACKET  00000031A0C2D340 TCP Rcv 2001:db8:10::45 b6e0   Q [0001   D   NOERROR] AAAA   (6)claude(2)ai(0)',
    'event claude.ai from 2001:db8:10::45 at 2026-11-20T09:15:04',
  ],
  'runs of blanks squeezed, a short identifier, no flags': [
    '20.11.2026 09:15:03 B20 PACKET 0A1B2C3D UDP Rcv 192.0.2.45 3fd2 Q [0028 NOERROR] HTTPS (6)Claude(2)AI(0)',
    'event claude.ai at 2026-11-20T09:15:03',
  ],
  'without the identifier of the packet': [
    '20.11.2026 09:15:03 0B20 PACKET UDP Rcv 192.0.2.45 3fd2 Q [0001 D NOERROR] 65 (6)claude(2)ai(0)',
    'event claude.ai',
  ],
  ...Object.fromEntries(
    [
      ['11/20/2026 12:15:02 AM', '2026-11-20T00:15:02'],
      ['11/20/2026 12:15:02 PM', '2026-11-20T12:15:02'],
      ['11/20/2026 1:15:02\u202fPM', '2026-11-20T13:15:02'],
      ['11/20/2026 1:15:02\u00a0PM', '2026-11-20T13:15:02'],
      ['20/11/2026 1:15:02 p. m.', '2026-11-20T13:15:02'],
      ['20/11/2026 12:15:02 a.m.', '2026-11-20T00:15:02'],
      ['20/11/2026 09:15:02', '2026-11-20T09:15:02'],
      ['2026/11/20 9:15:02', '2026-11-20T09:15:02'],
      ['20-11-2026 09:15:02', '2026-11-20T09:15:02'],
      ['20. 11. 2026 09:15:02', '2026-11-20T09:15:02'],
      ['20.11.26 09:15:02', '2026-11-20T09:15:02'],
      ['DC01 11/20/2026 9:15:02 AM', '2026-11-20T09:15:02'],
      ['dc01.example.com 20.11.2026 09:15:02', '2026-11-20T09:15:02'],
    ].map(
      ([written, time]): NamedRow => [
        `the time ${JSON.stringify(written)}`,
        [
          `${written} 0A14 PACKET  00000000041C20D0 UDP Rcv 192.0.2.45      71aa   Q ${FLAGS} A      (6)claude(2)ai(0)`,
          `event claude.ai from 192.0.2.45 at ${time ?? ''}`,
        ],
      ],
    ),
  ),
  'lengths that do not match, because somebody edited the name': [asked('(15)claude(2)ai(0)'), 'event claude.ai'],
  'names with underscores are legal in DNS': [asked('(6)_https(6)claude(2)ai(0)'), 'event _https.claude.ai'],
  'a name that is the context': [asked('(6)PACKET(0)'), 'noDomain from 192.0.2.45'],
  'a name that looks like a line': [asked('(8) PACKET (2)ai(0)'), 'noDomain'],
  'a dot inside a label': [asked('(9)claude.ai(7)example(3)com(0)'), 'noDomain'],
  'a delimiter inside a label': [asked('(9)claude(2)(2)ai(0)'), 'noDomain'],
  'delimiters inside a label': [asked('(11)claude(2)ai(3)com(0)'), 'noDomain'],
  'a name over the length limit': [asked(`${`(60)${'a'.repeat(60)}`.repeat(6)}(2)ai(0)`), 'noDomain'],
  'a slash inside a label': [asked('(12)claude.ai/xx(7)example(3)com(0)'), 'noDomain'],
  'the root': [asked('(0)'), 'noDomain from 192.0.2.45'],
  'a label over the length limit': [asked(`(300)${'a'.repeat(300)}(2)ai(0)`), 'noDomain'],
  'a reverse lookup': [asked('(2)45(1)2(1)0(3)192(7)in-addr(4)arpa(0)'), 'skip'],
  "the server's query to its forwarder": [
    `${HEAD} Snd 198.51.100.53   0c11   Q ${FLAGS} A      (3)api(6)openai(3)com(0)`,
    'skip',
  ],
  "the server's answer": [
    '20.11.2026 09:15:03 0B20 PACKET 0000009C20AA1110 UDP Snd 192.0.2.45 3fd2 R Q [8081 DR NOERROR] A (6)claude(2)ai(0)',
    'skip',
  ],
  "the forwarder's answer": [
    `${HEAD} Rcv 198.51.100.53   0c11 R Q [8081   DR  NOERROR] A      (3)api(6)openai(3)com(0)`,
    'skip',
  ],
  ...Object.fromEntries(
    ['N', 'U', '?'].map(
      (operation): NamedRow => [
        `the operation ${operation}`,
        [`${HEAD} Rcv 192.0.2.45      71aa   ${operation} [0028       NOERROR] SOA    (6)claude(2)ai(0)`, 'skip'],
      ],
    ),
  ),
  'an event': ['11/20/2026 9:15:02 AM 0A14 EVENT   The DNS server has finished the transfer of zone claude.ai', 'skip'],
  'a note': ['20.11.2026 09:15:03 0B20 Note: got GQCS failure on a dead socket claude.ai', 'skip'],
  ...Object.fromEntries(
    [
      'DNS Server log file creation at 11/20/2026 9:15:02 AM',
      'Log file wrap at 11/20/2026 9:15:02 AM',
      'Message logging key (for packets - other items use a subset of these fields):',
      '\tField #  Information         Values',
      '\t-------  -----------         ------',
      '\t   1     Date',
      '\t   4     Context',
      '\t   7     Send/Receive indicator',
      '\t  10     Query/Response      R = Response',
      '                               blank = Query',
      '                               Q = Standard Query',
      '\t  12     [ Flags (hex)',
      '\t  16     Question Name',
      'UDP question info at 00000000041C20D0',
      'TCP response info at 00000000041C20D0',
      '  Socket = 512',
      '  Remote addr 192.0.2.45, port 50001',
      '  Time Query=1023, Queued=0, Expire=0',
      '  Buf length = 0x0fa0 (4000)',
      '  Msg length = 0x0020 (32)',
      '  Message:',
      '    XID       0x71aa',
      '    Flags     0x0100',
      '      QR        0 (QUESTION)',
      '      RCODE     0 (NOERROR)',
      '    QUESTION SECTION:',
      '    Offset = 0x000c, RR count = 0',
      '    Name      "(3)api(6)openai(3)com(0)"',
      '      QTYPE   A (1)',
      '    ANSWER SECTION:',
      '      DATA   [C00C](3)api(6)openai(3)com(0)',
      '      empty',
    ].flatMap((line): NamedRow[] => [
      [`lines around packets: ${JSON.stringify(line)}`, [line, 'skip']],
      ...(line.trim() === line ? [] : [[`the same without blanks: ${line.trim()}`, [line.trim(), 'skip']] as const]),
    ]),
  ),
  ...Object.fromEntries(
    (
      [
        ['2026-11-20 오후 3:15:02 0A14', '2026-11-20T15:15:02'],
        ['2026/11/20 下午 03:15:02 0A14', '2026-11-20T15:15:02'],
        ['2026. 11. 20. 9:15:02 0A14', '2026-11-20T09:15:02'],
        ['20.11.2026 г. 9:15:02 0A14', '2026-11-20T09:15:02'],
        ['20-Nov-26 9:15:02 AM 0A14', '2026-11-20T09:15:02'],
        ['20/11/2026 3:15:02 μμ 0A14', '2026-11-20T15:15:02'],
        ['20/11/2026 3:15:02 p. m. 0A14', '2026-11-20T15:15:02'],
        ['20/11/2026 3:15:02 a.m. 0A14', '2026-11-20T03:15:02'],
        ['20.11.2026 9.15.02 0A14', '2026-11-20T09:15:02'],
        ['DC1 20.11.2026 9.15.02 1A2B3', '2026-11-20T09:15:02'],
      ] as const
    ).map(
      ([time, is]): NamedRow => [
        `a time in another language: ${time}`,
        [
          `${time} PACKET  00000000041C20D0 UDP Rcv 192.0.2.45 71aa Q ${FLAGS} A (6)claude(2)ai(0)`,
          `event claude.ai from 192.0.2.45 at ${is}`,
        ],
      ],
    ),
  ),
  'an endless name': [asked('(3)api(6)openai(3)com'), 'reject: name'],
  'a name without lengths': [asked('api.openai.com'), 'reject: name'],
  'no flags': [`${HEAD} Rcv 192.0.2.45 71aa Q A (6)claude(2)ai(0)`, 'reject: flags'],
  'no address': [`${HEAD} Rcv pc-7 71aa Q ${FLAGS} A (0)`, 'reject: address'],
  'no direction': [`${HEAD} 192.0.2.45 71aa Q ${FLAGS} A (0)`, 'reject: direction'],
  'no transaction': [`${HEAD} Rcv 192.0.2.45 Q ${FLAGS} A (0)`, 'reject: transaction'],
  'no operation': [`${HEAD} Rcv 192.0.2.45 71aa ${FLAGS} A (0)`, 'reject: operation'],
  'another protocol': ['20.11.2026 09:15:03 0B20 PACKET ICMP Rcv', 'reject: protocol'],
  'a nonexistent day': [
    `31.02.2026 09:15:03 0B20 PACKET 0A1B2C3D UDP Rcv 192.0.2.45 3fd2 Q ${FLAGS} A (6)claude(2)ai(0)`,
    'reject: time',
  ],
  'no thread': ['20.11.2026 09:15:03 PACKET claude.ai 192.0.2.45', 'unknown'],
  'no time': ['host 0B20 PACKET 0A1B2C3D UDP Rcv 192.0.2.45', 'unknown'],
  'a header of a table': ['Time\tClient\tName\tType', 'skip', { format: 'any-csv' }],
  'a word like one of the details': ['Name claude.ai of 192.0.2.45', 'unknown'],
}

checkRows(t, 'windows-dns', rows)
checkMutations(
  t,
  Object.values(rows).map(([line]) => line),
  // Labels are separated by their lengths.
  (host, line) => host.split('.').every((label) => line.includes(label)),
)

t.test('a number above twelve in a packet or the file header sets the order for later dates', async (t) => {
  const unclear = `05/06/2026 09:15:02 0A14 PACKET  00000000041C20D0 UDP Rcv 192.0.2.45 71aa Q ${FLAGS} A (6)claude(2)ai(0)`
  t.equal(new MessageReader().read(unclear).time, '2026-06-05T09:15:02.000', 'day first without evidence')
  for (const before of [unclear.replace('05/06', '05/23'), 'DNS Server log file creation at 05/23/2026 09:00:00']) {
    const reader = new MessageReader()
    reader.read(before)
    t.equal(reader.read(unclear).time, '2026-05-06T09:15:02.000', before)
  }
})
