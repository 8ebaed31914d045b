import t from 'tap'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'

const HEAD = '11/20/2026 9:15:02 AM 0A14 PACKET  00000000041C20D0 UDP'
const FLAGS = '[0001   D   NOERROR]'

function asked(name: string): string {
  return `${HEAD} Rcv 192.0.2.45      71aa   Q ${FLAGS} A      ${name}`
}

const rows: LogRow[] = [
  {
    name: "a client's query",
    line: asked('(3)api(6)openai(3)com(0)'),
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:02',
    action: 'unknown',
  },
  {
    name: 'by TCP, of an IPv6 client, with the year first',
    line: '2026-11-20 09:15:04 0C3C PACKET  00000031A0C2D340 TCP Rcv 2001:db8:10::45 b6e0   Q [0001   D   NOERROR] AAAA   (6)claude(2)ai(0)',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    time: '2026-11-20T09:15:04',
  },
  {
    name: 'runs of blanks squeezed, a short identifier, no flags',
    line: '20.11.2026 09:15:03 B20 PACKET 0A1B2C3D UDP Rcv 192.0.2.45 3fd2 Q [0028 NOERROR] HTTPS (6)Claude(2)AI(0)',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T09:15:03',
  },
  {
    name: 'without the identifier of the packet',
    line: '20.11.2026 09:15:03 0B20 PACKET UDP Rcv 192.0.2.45 3fd2 Q [0001 D NOERROR] 65 (6)claude(2)ai(0)',
    verdict: 'event',
    host: 'claude.ai',
  },
  ...[
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
    ([written, time]): LogRow => ({
      name: `the time ${JSON.stringify(written)}`,
      line: `${written} 0A14 PACKET  00000000041C20D0 UDP Rcv 192.0.2.45      71aa   Q ${FLAGS} A      (6)claude(2)ai(0)`,
      verdict: 'event',
      host: 'claude.ai',
      client: '192.0.2.45',
      time: time ?? '',
    }),
  ),
  {
    name: 'lengths that do not match, because somebody edited the name',
    line: asked('(15)claude(2)ai(0)'),
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'names with underscores are legal in DNS',
    line: asked('(6)_https(6)claude(2)ai(0)'),
    verdict: 'event',
    host: '_https.claude.ai',
  },
  { name: 'a name that is the context', line: asked('(6)PACKET(0)'), verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'a name that looks like a line', line: asked('(8) PACKET (2)ai(0)'), verdict: 'noDomain' },
  { name: 'a dot inside a label', line: asked('(9)claude.ai(7)example(3)com(0)'), verdict: 'noDomain' },
  { name: 'a delimiter inside a label', line: asked('(9)claude(2)(2)ai(0)'), verdict: 'noDomain' },
  { name: 'delimiters inside a label', line: asked('(11)claude(2)ai(3)com(0)'), verdict: 'noDomain' },
  {
    name: 'a name over the length limit',
    line: asked(`${`(60)${'a'.repeat(60)}`.repeat(6)}(2)ai(0)`),
    verdict: 'noDomain',
  },
  { name: 'a slash inside a label', line: asked('(12)claude.ai/xx(7)example(3)com(0)'), verdict: 'noDomain' },
  { name: 'the root', line: asked('(0)'), verdict: 'noDomain', client: '192.0.2.45' },
  { name: 'a label over the length limit', line: asked(`(300)${'a'.repeat(300)}(2)ai(0)`), verdict: 'noDomain' },
  { name: 'a reverse lookup', line: asked('(2)45(1)2(1)0(3)192(7)in-addr(4)arpa(0)'), verdict: 'skip' },
  {
    name: "the server's query to its forwarder",
    line: `${HEAD} Snd 198.51.100.53   0c11   Q ${FLAGS} A      (3)api(6)openai(3)com(0)`,
    verdict: 'skip',
  },
  {
    name: "the server's answer",
    line: '20.11.2026 09:15:03 0B20 PACKET 0000009C20AA1110 UDP Snd 192.0.2.45 3fd2 R Q [8081 DR NOERROR] A (6)claude(2)ai(0)',
    verdict: 'skip',
  },
  {
    name: "the forwarder's answer",
    line: `${HEAD} Rcv 198.51.100.53   0c11 R Q [8081   DR  NOERROR] A      (3)api(6)openai(3)com(0)`,
    verdict: 'skip',
  },
  ...['N', 'U', '?'].map(
    (operation): LogRow => ({
      name: `the operation ${operation}`,
      line: `${HEAD} Rcv 192.0.2.45      71aa   ${operation} [0028       NOERROR] SOA    (6)claude(2)ai(0)`,
      verdict: 'skip',
    }),
  ),
  {
    name: 'an event',
    line: '11/20/2026 9:15:02 AM 0A14 EVENT   The DNS server has finished the transfer of zone claude.ai',
    verdict: 'skip',
  },
  {
    name: 'a note',
    line: '20.11.2026 09:15:03 0B20 Note: got GQCS failure on a dead socket claude.ai',
    verdict: 'skip',
  },
  ...[
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
  ].flatMap((line): LogRow[] => [
    { name: `lines around packets: ${JSON.stringify(line)}`, line, verdict: 'skip' },
    ...(line.trim() === line
      ? []
      : [{ name: `the same without blanks: ${line.trim()}`, line: line.trim(), verdict: 'skip' } as const]),
  ]),
  ...(
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
    ([time, is]): LogRow => ({
      name: `a time in another language: ${time}`,
      line: `${time} PACKET  00000000041C20D0 UDP Rcv 192.0.2.45 71aa Q ${FLAGS} A (6)claude(2)ai(0)`,
      verdict: 'event',
      host: 'claude.ai',
      client: '192.0.2.45',
      time: is,
    }),
  ),
  { name: 'an endless name', line: asked('(3)api(6)openai(3)com'), verdict: 'reject', reason: /^name/ },
  { name: 'a name without lengths', line: asked('api.openai.com'), verdict: 'reject', reason: /^name/ },
  { name: 'no flags', line: `${HEAD} Rcv 192.0.2.45 71aa Q A (6)claude(2)ai(0)`, verdict: 'reject', reason: /^flags/ },
  { name: 'no address', line: `${HEAD} Rcv pc-7 71aa Q ${FLAGS} A (0)`, verdict: 'reject', reason: /^address/ },
  { name: 'no direction', line: `${HEAD} 192.0.2.45 71aa Q ${FLAGS} A (0)`, verdict: 'reject', reason: /^direction/ },
  {
    name: 'no transaction',
    line: `${HEAD} Rcv 192.0.2.45 Q ${FLAGS} A (0)`,
    verdict: 'reject',
    reason: /^transaction/,
  },
  { name: 'no operation', line: `${HEAD} Rcv 192.0.2.45 71aa ${FLAGS} A (0)`, verdict: 'reject', reason: /^operation/ },
  {
    name: 'another protocol',
    line: '20.11.2026 09:15:03 0B20 PACKET ICMP Rcv',
    verdict: 'reject',
    reason: /^protocol/,
  },
  {
    name: 'a nonexistent day',
    line: `31.02.2026 09:15:03 0B20 PACKET 0A1B2C3D UDP Rcv 192.0.2.45 3fd2 Q ${FLAGS} A (6)claude(2)ai(0)`,
    verdict: 'reject',
    reason: /^time/,
  },
  { name: 'no thread', line: '20.11.2026 09:15:03 PACKET claude.ai 192.0.2.45', verdict: 'unknown' },
  { name: 'no time', line: 'host 0B20 PACKET 0A1B2C3D UDP Rcv 192.0.2.45', verdict: 'unknown' },
  { name: 'a header of a table', line: 'Time\tClient\tName\tType', verdict: 'skip', format: 'any-csv' },
  { name: 'a word like one of the details', line: 'Name claude.ai of 192.0.2.45', verdict: 'unknown' },
]

checkRows(t, 'windows-dns', rows)
checkMutations(
  t,
  rows.map(({ line }) => line),
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
