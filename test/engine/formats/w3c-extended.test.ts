import t from 'tap'
import { checkRows, type LogRow, MessageReader } from '../../support/log-rows.ts'
import * as fc from '../../support/property.ts'

const BLUE_COAT =
  '#Fields: date time time-taken c-ip cs-username s-action sc-status cs-method cs-uri-scheme cs-host cs-uri-port cs-uri-path cs(Referer) cs(User-Agent) sc-filter-result r-ip'
const NETSKOPE =
  '#Fields: date time time-taken cs-bytes sc-bytes bytes c-ip s-ip cs-username cs-method cs-uri-scheme cs-uri-query cs-user-agent cs-content-type sc-status sc-content-type cs-dns cs-host cs-uri cs-uri-port cs-referer x-cs-session-id x-cs-userip x-cs-sni x-policy-action'
const IIS = '#Fields: date time s-ip cs-method cs-uri-stem c-ip cs(User-Agent) cs-host sc-status'

/** A row after the lines that define its columns. */
interface TableRow extends Omit<LogRow, 'format' | 'reason'> {
  readonly head: readonly string[]
}

const rows: TableRow[] = [
  {
    name: 'a proxy of Blue Coat',
    head: ['#Software: SGOS 7.3', '#Version: 1.0', BLUE_COAT],
    line: '2026-11-20 08:15:02 131 192.0.2.45 jdoe TCP_TUNNELED 200 CONNECT tcp api.openai.com 443 / - "Mozilla/5.0 (X11; a, b)" OBSERVED 198.51.100.9',
    verdict: 'event',
    host: 'api.openai.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'allowed',
  },
  {
    name: 'denied',
    head: [BLUE_COAT],
    line: '2026-11-20 08:15:02 131 2001:db8:10::45 - TCP_DENIED 403 GET http claude.ai 80 /x https://chatgpt.com/ "a ""quoted"" agent" DENIED -',
    verdict: 'event',
    host: 'claude.ai',
    client: '2001:db8:10::45',
    action: 'blocked',
  },
  {
    name: 'separated by TAB',
    head: ['#Fields: date\ttime\tc-ip\tcs-uri'],
    line: '2026-11-20\t08:15:02\t192.0.2.45\thttps://claude.ai/x',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'Netskope transactions: the client inside the tunnel',
    head: [NETSKOPE],
    line: '2026-11-20 08:15:02 22 900 4000 4900 203.0.113.7 198.51.100.9 jdoe@example.com POST https - "Mozilla/5.0 (Windows NT 10.0)" - 200 text/html - chatgpt.com /backend 443 - 77 192.0.2.45 - block',
    verdict: 'event',
    host: 'chatgpt.com',
    client: '192.0.2.45',
    time: '2026-11-20T08:15:02Z',
    action: 'blocked',
  },
  {
    name: 'separated by commas, with the server name in place of the host',
    head: [NETSKOPE],
    line: '2026-11-20,08:15:02,22,900,4000,4900,203.0.113.7,198.51.100.9,192.0.2.45,-,ssl,-,-,-,-,-,-,-,-,443,-,77,192.0.2.45,claude.ai,allow',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    action: 'allowed',
  },
  {
    name: 'date and time apart',
    head: ['#Fields: time c-ip date cs-host'],
    line: '08:15:02 192.0.2.45 2026-11-20 claude.ai',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'date and time in quotes',
    head: ['#Fields: date time c-ip cs-host'],
    line: '"2026-11-20" "08:15:02" "192.0.2.45" "claude.ai"',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'one time in brackets',
    head: ['#Fields: gmttime c-ip r-dns'],
    line: '"[20/11/2026:08:15:02 GMT]" 192.0.2.45 claude.ai',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'seconds since 1970',
    head: ['#Fields: x-timestamp c-ip cs-host'],
    line: '1795162502 192.0.2.45 claude.ai',
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T08:15:02Z',
  },
  {
    name: 'new columns replace the previous ones',
    head: [BLUE_COAT, '#Fields: date time cs-host c-ip'],
    line: '2026-11-20 08:15:02 claude.ai 192.0.2.45',
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
  },
  {
    name: 'neither the referer nor a path is a host',
    head: ['#Fields: date time c-ip cs-uri cs(Referer) cs(User-Agent)'],
    line: '2026-11-20 08:15:02 192.0.2.45 setup.zip https://chatgpt.com/ claude.ai',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  {
    name: 'an address',
    head: ['#Fields: date time c-ip cs-host'],
    line: '2026-11-20 08:15:02 192.0.2.45 198.51.100.9',
    verdict: 'noDomain',
  },
  {
    name: 'a truncated row',
    head: [BLUE_COAT],
    line: '2026-11-20 08:15:02 131 192.0.2.45 jdoe TCP_TUNN',
    verdict: 'unknown',
  },
  {
    name: "a web server's own pages",
    head: ['#Software: Microsoft Internet Information Services 10.0', '#Version: 1.0', IIS],
    line: '2026-11-20 08:15:02 192.0.2.9 GET /index.html 192.0.2.45 Mozilla/5.0+(X11) www.example.com 200',
    verdict: 'noDomain',
    client: '192.0.2.45',
  },
  { name: 'columns again', head: [BLUE_COAT], line: '#Date: 2026-11-20 08:15:02', verdict: 'skip' },
  { name: 'the end', head: [BLUE_COAT], line: '#End-Date: 2026-11-20 08:15:02', verdict: 'skip' },
  { name: 'a row without columns', head: [], line: '2026-11-20 08:15:02 192.0.2.45 claude.ai', verdict: 'unknown' },
  {
    name: 'a row of unknown columns',
    head: ['#Fields: x-one x-two x-three'],
    line: '2026-11-20 08:15:02 192.0.2.45 claude.ai',
    verdict: 'unknown',
  },
  {
    name: "columns of another product's log",
    head: ['#Fields: date time c-ip cs-host', '#Software: another'],
    line: '2026-11-20 08:15:02 192.0.2.45 claude.ai',
    verdict: 'unknown',
  },
  {
    name: 'another message of the source',
    head: ['#Fields: date time c-ip cs-host'],
    line: 'restarted at claude.ai 192.0.2.45',
    verdict: 'unknown',
  },
  {
    name: 'another message with a date, and a word in place of the client',
    head: ['#Fields: date time c-ip cs-host'],
    line: '2026-11-20 08:15:02 restarted claude.ai',
    verdict: 'unknown',
  },
  {
    name: 'an unknown client',
    head: ['#Fields: date time c-ip cs-host'],
    line: '2026-11-20 08:15:02 - claude.ai',
    verdict: 'event',
    host: 'claude.ai',
    client: '',
  },
  {
    name: 'a comment of something else',
    head: [],
    line: '# claude.ai 192.0.2.45',
    verdict: 'unknown',
  },
]

for (const row of rows) {
  t.test(row.name, async (t) => {
    const read = readAfter(row.head, row.line)
    t.equal(read.verdict, row.verdict, 'verdict')
    t.equal(read.format, row.verdict === 'unknown' ? '' : 'w3c-extended', 'format')
    t.equal(read.host, row.host ?? '', 'host')
    if (row.client !== undefined) t.equal(read.client, row.client, 'client')
    if (row.time !== undefined) t.equal(read.time, row.time.replace('Z', '.000Z'), 'time')
    if (row.action !== undefined) t.equal(read.action, row.action, 'action')
    for (let length = 0; length < row.line.length; length++) {
      const { verdict, host } = readAfter(row.head, row.line.slice(0, length))
      if (verdict === 'event') t.ok((row.host ?? '').startsWith(host), `truncated at ${length}: ${host}`)
    }
  })
}

function readAfter(head: readonly string[], line: string): ReturnType<MessageReader['read']> {
  const reader = new MessageReader()
  for (const each of head) reader.read(each)
  return reader.read(line)
}

checkRows(
  t,
  'w3c-extended',
  ['#Software: SGOS 7.3', '#Version: 1.0', '#Date: 2026-11-20 08:15:02', '#Remark: claude.ai', BLUE_COAT].map(
    (line) => ({
      name: line.slice(0, 20),
      line,
      verdict: 'skip',
    }),
  ),
)

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
  const cells = fc.constantFrom(...rows.flatMap(({ line }) => line.split(' ')), '"', '""', ',', '\t', '-', '')
  fc.assert(
    fc.property(fc.array(names, { maxLength: 300 }), fc.array(cells, { maxLength: 40 }), (columns, row) => {
      const line = row.join(' ')
      const read = readAfter([`#Fields: ${columns.join(' ')}`], line)
      return read.verdict !== 'event' || line.toLowerCase().includes(read.host)
    }),
    { numRuns: 2000 },
  )
})
