import t from 'tap'
import { checkRead, checkRows, checkTruncated, MessageReader, type Read } from '../../support/log-rows.ts'
import * as fc from '../../support/property.ts'

const BLUE_COAT =
  '#Fields: date time time-taken c-ip cs-username s-action sc-status cs-method cs-uri-scheme cs-host cs-uri-port cs-uri-path cs(Referer) cs(User-Agent) sc-filter-result r-ip'
const NETSKOPE =
  '#Fields: date time time-taken cs-bytes sc-bytes bytes c-ip s-ip cs-username cs-method cs-uri-scheme cs-uri-query cs-user-agent cs-content-type sc-status sc-content-type cs-dns cs-host cs-uri cs-uri-port cs-referer x-cs-session-id x-cs-userip x-cs-sni x-policy-action'
const IIS = '#Fields: date time s-ip cs-method cs-uri-stem c-ip cs(User-Agent) cs-host sc-status'

/** A row after the lines that define its columns. */
type TableRow = readonly [head: readonly string[], row: string, expected: string]

const rows: Readonly<Record<string, TableRow>> = {
  'a proxy of Blue Coat': [
    ['#Software: SGOS 7.3', '#Version: 1.0', BLUE_COAT],
    '2026-11-20 08:15:02 131 192.0.2.45 jdoe TCP_TUNNELED 200 CONNECT tcp api.openai.com 443 / - "Mozilla/5.0 (X11; a, b)" OBSERVED 198.51.100.9',
    'event api.openai.com from 192.0.2.45 at 2026-11-20T08:15:02Z, allowed',
  ],
  denied: [
    [BLUE_COAT],
    '2026-11-20 08:15:02 131 2001:db8:10::45 - TCP_DENIED 403 GET http claude.ai 80 /x https://chatgpt.com/ "a ""quoted"" agent" DENIED -',
    'event claude.ai from 2001:db8:10::45, blocked',
  ],
  'separated by TAB': [
    ['#Fields: date\ttime\tc-ip\tcs-uri'],
    '2026-11-20\t08:15:02\t192.0.2.45\thttps://claude.ai/x',
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'Netskope transactions: the client inside the tunnel': [
    [NETSKOPE],
    '2026-11-20 08:15:02 22 900 4000 4900 203.0.113.7 198.51.100.9 jdoe@example.com POST https - "Mozilla/5.0 (Windows NT 10.0)" - 200 text/html - chatgpt.com /backend 443 - 77 192.0.2.45 - block',
    'event chatgpt.com from 192.0.2.45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'separated by commas, with the server name in place of the host': [
    [NETSKOPE],
    '2026-11-20,08:15:02,22,900,4000,4900,203.0.113.7,198.51.100.9,192.0.2.45,-,ssl,-,-,-,-,-,-,-,-,443,-,77,192.0.2.45,claude.ai,allow',
    'event claude.ai from 192.0.2.45, allowed',
  ],
  'date and time apart': [
    ['#Fields: time c-ip date cs-host'],
    '08:15:02 192.0.2.45 2026-11-20 claude.ai',
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'date and time in quotes': [
    ['#Fields: date time c-ip cs-host'],
    '"2026-11-20" "08:15:02" "192.0.2.45" "claude.ai"',
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'one time in brackets': [
    ['#Fields: gmttime c-ip r-dns'],
    '"[20/11/2026:08:15:02 GMT]" 192.0.2.45 claude.ai',
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'seconds since 1970': [
    ['#Fields: x-timestamp c-ip cs-host'],
    '1795162502 192.0.2.45 claude.ai',
    'event claude.ai at 2026-11-20T08:15:02Z',
  ],
  'new columns replace the previous ones': [
    [BLUE_COAT, '#Fields: date time cs-host c-ip'],
    '2026-11-20 08:15:02 claude.ai 192.0.2.45',
    'event claude.ai from 192.0.2.45',
  ],
  'neither the referer nor a path is a host': [
    ['#Fields: date time c-ip cs-uri cs(Referer) cs(User-Agent)'],
    '2026-11-20 08:15:02 192.0.2.45 setup.zip https://chatgpt.com/ claude.ai',
    'noDomain from 192.0.2.45',
  ],
  'an address': [['#Fields: date time c-ip cs-host'], '2026-11-20 08:15:02 192.0.2.45 198.51.100.9', 'noDomain'],
  'a truncated row': [[BLUE_COAT], '2026-11-20 08:15:02 131 192.0.2.45 jdoe TCP_TUNN', 'unknown'],
  "a web server's own pages": [
    ['#Software: Microsoft Internet Information Services 10.0', '#Version: 1.0', IIS],
    '2026-11-20 08:15:02 192.0.2.9 GET /index.html 192.0.2.45 Mozilla/5.0+(X11) www.example.com 200',
    'noDomain from 192.0.2.45',
  ],
  'columns again': [[BLUE_COAT], '#Date: 2026-11-20 08:15:02', 'skip'],
  'the end': [[BLUE_COAT], '#End-Date: 2026-11-20 08:15:02', 'skip'],
  'a row without columns': [[], '2026-11-20 08:15:02 192.0.2.45 claude.ai', 'unknown'],
  'a row of unknown columns': [['#Fields: x-one x-two x-three'], '2026-11-20 08:15:02 192.0.2.45 claude.ai', 'unknown'],
  "columns of another product's log": [
    ['#Fields: date time c-ip cs-host', '#Software: another'],
    '2026-11-20 08:15:02 192.0.2.45 claude.ai',
    'unknown',
  ],
  'another message of the source': [
    ['#Fields: date time c-ip cs-host'],
    'restarted at claude.ai 192.0.2.45',
    'unknown',
  ],
  'another message with a date, and a word in place of the client': [
    ['#Fields: date time c-ip cs-host'],
    '2026-11-20 08:15:02 restarted claude.ai',
    'unknown',
  ],
  'an unknown client': [
    ['#Fields: date time c-ip cs-host'],
    '2026-11-20 08:15:02 - claude.ai',
    'event claude.ai from -',
  ],
  'a comment of something else': [[], '# claude.ai 192.0.2.45', 'unknown'],
}

for (const [name, [head, ...row]] of Object.entries(rows)) {
  t.test(name, async (t) => {
    checkRead(t, readAfter(head, row[0]), 'w3c-extended', row)
    checkTruncated(t, row, (prefix) => readAfter(head, prefix))
  })
}

function readAfter(head: readonly string[], line: string | Uint8Array): Read {
  const reader = new MessageReader()
  for (const each of head) reader.read(each)
  return reader.read(line)
}

const DIRECTIVES = [
  '#Software: SGOS 7.3',
  '#Version: 1.0',
  '#Date: 2026-11-20 08:15:02',
  '#Remark: claude.ai',
  BLUE_COAT,
]
checkRows(t, 'w3c-extended', Object.fromEntries(DIRECTIVES.map((line) => [line.slice(0, 20), [line, 'skip']])))

t.test('a nonexistent day is not read', async (t) => {
  const read = readAfter([BLUE_COAT], '2026-02-31 08:15:02 131 192.0.2.45 - - 200 GET http claude.ai 80 / - - - -')
  t.match(read, { verdict: 'reject', reason: /^time/ })
})

t.test('messages of other formats between the rows are recognized', async (t) => {
  const reader = new MessageReader()
  const row = '2026-11-20 08:15:02 192.0.2.45 claude.ai'
  reader.read('#Fields: date time c-ip cs-host')
  t.equal(reader.read(row).format, 'w3c-extended')
  t.equal(reader.read('query[A] api.openai.com from 192.0.2.45').format, 'dnsmasq')
  t.equal(reader.read('client 192.0.2.45#2048: query: claude.ai IN A +').format, 'bind-query')
  const packet =
    '2026-11-20 09:15:04 0C3C PACKET 00000031A0C2D340 TCP Rcv 192.0.2.45 b6e0 Q [0001 D NOERROR] A (6)claude(2)ai(0)'
  t.match(reader.read(packet), { format: 'windows-dns', host: 'claude.ai' })
  t.equal(reader.read(row).format, 'w3c-extended')
  for (const [format, line] of [
    [
      'zscaler',
      '2026-11-20 09:15:02\treason=Allowed\tevent_id=7\tprotocol=HTTPS\tClientIP=192.0.2.45\thostname=claude.ai',
    ],
    ['bind-query', '2026-11-20T09:15:02.123Z queries: client @0x7 192.0.2.45#1 (claude.ai): query: claude.ai IN A +'],
    [
      'proxy-native',
      '1795162502.119    318 192.0.2.45 TCP_TUNNEL/200 6340 CONNECT claude.ai:443 - HIER_DIRECT/198.51.100.9 -',
    ],
    ['unbound', '[1795162502] unbound[4242:0] info: 192.0.2.45 claude.ai. A IN'],
  ] as const) {
    t.match(reader.read(line), { format, verdict: 'event', host: 'claude.ai', client: '192.0.2.45' }, line)
    t.equal(reader.read(row).format, 'w3c-extended')
  }
  t.equal(reader.read('Timestamp;Client;Requested Domain').format, 'any-csv')
  t.equal(reader.read('20.11.2026 09:15:02;192.0.2.45;claude.ai').format, 'any-csv')
  t.equal(reader.read(row).format, 'w3c-extended', 'a table of another source changes nothing')
})

t.test('a row must have exactly the columns, with time and address in their places', async (t) => {
  const head = ['#Fields: date time c-ip cs-host sc-status']
  t.equal(readAfter(head, '2026-11-20 08:15:02 192.0.2.45 claude.ai 200').verdict, 'event')
  for (const line of [
    '2026-11-20 08:15:02 192.0.2.45 claude.ai',
    '2026-11-20 08:15:02 192.0.2.45 claude.ai 200 x',
    '318 1795162502.119 192.0.2.45 claude.ai 200',
    '2026-11-20 08:15 pc-7 claude.ai 200',
  ]) {
    t.equal(readAfter(head, line).verdict, 'unknown', line)
  }
})

t.test('for any columns and any row, nothing throws, and a host is in the row', async () => {
  const names = fc.constantFrom(...BLUE_COAT.split(' '), ...NETSKOPE.split(' '), '"', ',', '\t', '')
  const cells = fc.constantFrom(
    ...Object.values(rows).flatMap(([, line]) => line.split(' ')),
    '"',
    '""',
    ',',
    '\t',
    '-',
    '',
  )
  fc.assert(
    fc.property(fc.array(names, { maxLength: 300 }), fc.array(cells, { maxLength: 40 }), (columns, row) => {
      const line = row.join(' ')
      const read = readAfter([`#Fields: ${columns.join(' ')}`], line)
      return read.verdict !== 'event' || line.toLowerCase().includes(read.host)
    }),
    { numRuns: 2000 },
  )
})
