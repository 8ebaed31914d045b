import t from 'tap'
import { checkFormat } from '../../support/log-mutations.ts'
import { type LogRows, MessageReader, type NamedRow } from '../../support/log-rows.ts'
import { cpuMsOf } from '../../support/wait.ts'

const rows: LogRows = {
  'one time, one address, one host': [
    '2026-11-20T08:15:02Z,192.0.2.45,perplexity.ai',
    'event perplexity.ai from 192.0.2.45 at 2026-11-20T08:15:02Z, unknown',
  ],
  'semicolons, day first, an action': [
    '20.11.2026 09:15:02;192.0.2.45;api.openai.com;allowed',
    'event api.openai.com from 192.0.2.45 at 2026-11-20T09:15:02, allowed',
  ],
  'TABs and a host with its port': [
    '1795162502\t2001:db8::45\tCONNECT\tClaude.AI:443\tdenied\r\n',
    'event claude.ai from 2001:db8::45 at 2026-11-20T08:15:02Z, blocked',
  ],
  'bars and a URL': [
    '2026-11-20 09:15:02|192.0.2.45|GET|https://claude.ai/a,b|200|Mozilla/5.0 (bot.example.com)',
    'event claude.ai from 192.0.2.45',
  ],
  'quoted, with doubled quotes and blanks': [
    '"2026-11-20 09:15:02", "192.0.2.45", "say ""x"", y", "claude.ai."',
    'event claude.ai from 192.0.2.45',
  ],
  'day and time of day apart': ['2026-11-20,09:15:02,192.0.2.45,claude.ai', 'event claude.ai at 2026-11-20T09:15:02'],
  'day and time of day apart, in the format of the United States': [
    '11/20/2026;9:15:02 PM;192.0.2.45;claude.ai',
    'event claude.ai at 2026-11-20T21:15:02',
  ],
  'two addresses, of which either may be the client': [
    '2026-11-20T08:15:02Z,192.0.2.45,198.51.100.20,claude.ai',
    'ambiguous from -: client',
  ],
  'two addresses, the private one of which may be a proxy of the organization': [
    '2026-11-20T08:15:02Z,198.51.100.20,10.1.2.3,claude.ai',
    'ambiguous from -',
  ],
  'the same host by name and in a URL': [
    '2026-11-20T08:15:02Z,192.0.2.45,claude.ai,https://CLAUDE.ai/new',
    'event claude.ai',
  ],
  'a byte order mark': ['\ufeff2026-11-20T08:15:02Z,192.0.2.45,claude.ai', 'event claude.ai'],
  ...Object.fromEntries(
    (
      [
        ['"Sep 20, 2026 @ 09:15:02.123"', '2026-09-20T09:15:02.123'],
        ['"Nov 20, 2026 9:15:02 PM"', '2026-11-20T21:15:02'],
        ['20/11/2026 9:15:02 p. m.', '2026-11-20T21:15:02'],
        ['2026-11-20 下午 03:15:02', '2026-11-20T15:15:02'],
      ] as const
    ).map(
      ([time, is]): NamedRow => [
        `a time as ${time}`,
        [`${time},192.0.2.45,claude.ai`, `event claude.ai from 192.0.2.45 at ${is}`],
      ],
    ),
  ),
  'the separator that Excel asks for': ['sep=;', 'skip'],
  'a header': ['Timestamp;Client;Requested Domain;Action', 'skip'],
  'a header of a report': [
    '"Event Time","User","URL","Policy Action","Client IP","Server IP","Cloud Application"',
    'skip',
  ],
  'two hosts': [
    '2026-11-20T08:15:02Z,192.0.2.45,https://ref.example.net/,https://claude.ai/',
    'unknown ref.example.net',
  ],
  'no address': ['2026-11-20T08:15:02Z,pc-7,claude.ai', 'unknown'],
  'no time': ['x,192.0.2.45,claude.ai', 'unknown'],
  'two times': ['2026-11-20T08:15:02Z,2026-11-20T08:15:09Z,192.0.2.45,claude.ai', 'unknown'],
  'three addresses': ['2026-11-20T08:15:02Z,192.0.2.45,198.51.100.20,203.0.113.7,claude.ai', 'ambiguous'],
  'ten digits that are not a current time': ['4123456789,192.0.2.45,claude.ai', 'unknown'],
  'a referer after the path of a web server': [
    '2026-11-20T08:15:02Z,192.0.2.45,GET,/index.html,200,https://chatgpt.com/',
    'unknown',
  ],
  'a mail address': ['2026-11-20T08:15:02Z,192.0.2.45,jdoe@example.com', 'unknown'],
  'an issuer, an agent, an account': [
    '2026-11-20T08:15:02Z,192.0.2.45,"CN=ca.example.com, O=x",curl/8.5.0 (x.example.com),corp\\j.doe',
    'unknown',
  ],
  'interfaces, versions and applications': [
    '2026-11-20T08:15:02Z,192.0.2.45,igb0.40,ae3.210,ethernet1/2.30,12.9.1.B700001,ms-office365',
    'unknown',
  ],
  'a sentence with commas': ['On 2026-11-20, 192.0.2.45, claude.ai was down', 'unknown'],
  'a nonexistent day': ['2026-02-30T08:15:02Z,192.0.2.45,claude.ai', 'reject: time'],
  'hour 25': ['2026-11-20 25:15:02,192.0.2.45,claude.ai', 'reject: time'],
  'two cells': ['192.0.2.45,claude.ai', 'unknown'],
  'key=value': ['time=2026-11-20T08:15:02Z,src=192.0.2.45,host=claude.ai', 'ambiguous', { format: 'any-kv' }],
  nothing: ['', 'unknown'],
}
checkFormat(t, 'any-csv', rows)

t.test('a name with the suffix of a file or machine is not a host (truncation may change the suffix)', async (t) => {
  for (const name of ['setup.zip', 'x.mov', 'REPORT.PDF', 'a.exe', 'pc-7.corp.local', 'setup.zip/x', 'a.tar.gz']) {
    t.equal(new MessageReader().read(`2026-11-20T08:15:02Z,192.0.2.45,${name}`).verdict, 'unknown', name)
  }
  for (const name of ['example.zip:443', 'https://example.mov/', 'notion.so', 'docs.rs']) {
    t.equal(new MessageReader().read(`2026-11-20T08:15:02Z,192.0.2.45,${name}`).verdict, 'event', name)
  }
})

t.test('a header is remembered and used for later lines', async (t) => {
  const reader = new MessageReader()
  const header = 'Domain,Receive Time,Source address,Destination address,Source User,Action,URL/Filename,Referer'
  t.equal(reader.read(header).verdict, 'skip')
  const read = reader.read(
    '1,2026/11/20 09:15:02,192.0.2.45,198.51.100.20,jdoe@example.com,block-url,claude.ai/new,https://x.example.net/',
  )
  t.match(read, {
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    action: 'blocked',
    time: '2026-11-20T09:15:02.000',
  })
  t.equal(
    reader.read('1,2026/11/20 09:15:03,192.0.2.45,198.51.100.20,,allow,,https://x.example.net/').verdict,
    'noDomain',
  )
  t.equal(reader.read('1,2026/11/31 09:15:03,192.0.2.45,198.51.100.20,,allow,claude.ai/,').verdict, 'reject')
  t.equal(reader.read(header).verdict, 'skip', 'again')
  t.equal(reader.read('Total,2').verdict, 'skip')
  t.equal(reader.read('1,2026/11/20 09:15:03,192.0.2.45,198.51.100.20').verdict, 'unknown', 'truncated')
  t.equal(
    reader.read('2026-11-20T08:15:02Z,192.0.2.45,pc-7.example.org,x,y,z').verdict,
    'unknown',
    'no row of this table',
  )
  t.equal(reader.read('Timestamp;Client;Requested Domain;Action').verdict, 'skip', 'another header')
  t.match(reader.read('20.11.2026 09:15:02;192.0.2.45;api.openai.com;allowed'), {
    host: 'api.openai.com',
    action: 'allowed',
  })
})

t.test('headers define the columns', async (t) => {
  for (const [header, row, host, client, time] of [
    [
      'date,time,c-ip,cs-host',
      '2026-11-20,09:15:02,192.0.2.45,claude.ai',
      'claude.ai',
      '192.0.2.45',
      '2026-11-20T09:15:02.000',
    ],
    [
      'Time\tInternal IP\tExternal IP\tDomain',
      '2026-11-20 09:15:02\t\t203.0.113.7\tclaude.ai.',
      'claude.ai',
      '203.0.113.7',
      '2026-11-20T09:15:02.000',
    ],
    [
      'ts,client,host,url',
      '1795162502,192.0.2.45,proxy.example.org,claude.ai:443',
      'claude.ai',
      '192.0.2.45',
      '2026-11-20T08:15:02.000Z',
    ],
    ['ts,client,name', '1795162502,192.0.2.45,setup.zip', '', '192.0.2.45', '2026-11-20T08:15:02.000Z'],
    ['ts,client,domain', 'a while ago,192.0.2.45,claude.ai', 'claude.ai', '192.0.2.45', ''],
    ['# ts,client,domain', '1795162502,192.0.2.45,claude.ai', 'claude.ai', '192.0.2.45', '2026-11-20T08:15:02.000Z'],
    ['user,client,domain', 'jdoe,192.0.2.45,jdoe@example.com', '', '192.0.2.45', ''],
  ] as const) {
    const reader = new MessageReader()
    t.equal(reader.read(header).verdict, 'skip', header)
    t.match(reader.read(row), { host, client, time, verdict: host === '' ? 'noDomain' : 'event' }, row)
  }
})

const NAMES = ['claude.ai', 'api.openai.com', 'huggingface.co', 'www.example.org', 'perplexity.ai']
const name = (index: number): string => NAMES[index % NAMES.length] ?? ''
const time = (index: number): string => `2026-11-20T08:15:${String(index % 60).padStart(2, '0')}Z`

/** Reads lines of one layout, then one more. Returns the last result. */
function learned(layout: (index: number) => string, lines = 20): ReturnType<MessageReader['read']> {
  const reader = new MessageReader()
  for (let index = 0; index < lines; index++) reader.read(layout(index))
  return reader.read(layout(lines + 1))
}

t.test('twenty lines reveal what one line cannot', async (t) => {
  const referer = (index: number): string =>
    `${time(index)},192.0.2.${index + 1},GET,https://${name(index)}/x,200,${index % 3 === 0 ? 'https://ref.example.net/y' : '-'}`
  t.match(learned(referer, 2), { verdict: 'unknown' }, 'not yet')
  t.match(learned(referer), { verdict: 'event', host: 'api.openai.com', client: '192.0.2.22' }, 'not the referer')
  const apart = (index: number): string =>
    `2026-11-20;09:15:0${index % 10};10.0.0.${index + 1};${name(index)};fw.example.org`
  t.match(
    learned(apart),
    { verdict: 'event', host: 'api.openai.com', client: '10.0.0.22', time: '2026-11-20T09:15:01.000' },
    'not the machine, whose name never changes',
  )
  const two = (index: number): string => `${time(index)},192.0.2.1,${name(index)},${name(index + 1)},x`
  t.match(learned(two), { verdict: 'unknown' }, 'two columns of hosts, and no evidence which')
  const server = (index: number): string => `${time(index)},192.0.2.${index + 1},/x${index},200,https://${name(index)}/`
  t.match(learned(server), { verdict: 'unknown' }, "a web server's own log with referers")
})

t.test('with two columns of addresses, no number of lines determines the client', async (t) => {
  for (const [title, layout] of [
    ['server first', (index: number) => `${time(index)},198.51.100.${index + 1},192.0.2.45,${name(index)}`],
    ['server last', (index: number) => `${time(index)},192.0.2.45,198.51.100.${index + 1},${name(index)}`],
    ['a constant device first', (index: number) => `${time(index)},203.0.113.1,10.0.0.${index + 1},${name(index)}`],
    ['both private', (index: number) => `${time(index)},10.0.0.53,10.1.0.${index + 1},${name(index)}`],
    ['a machine', (index: number) => `${time(index)},10.0.0.53,10.1.0.${index + 1},pc-${index}.example.org`],
  ] as const) {
    const reader = new MessageReader()
    for (let index = 0; index < 70; index++) t.equal(reader.read(layout(index)).verdict, 'ambiguous', title)
    const absent = layout(71).replace(/,(192\.0\.2|10\.1\.0|10\.0\.0)\.\d+,/, ',-,')
    t.equal(reader.read(absent).verdict, 'ambiguous', `${title}, one address absent: ${absent}`)
  }
})

t.test('each line checks the learned layout, which is dropped when the source changes', async (t) => {
  const reader = new MessageReader()
  const row = (index: number): string => `${time(index)},fw-1,10.0.0.${index + 1},7,${name(index)}`
  for (let index = 0; index < 30; index++) reader.read(row(index))
  t.equal(reader.read(row(1)).host, 'api.openai.com')
  t.equal(reader.read(`${time(1)},fw-1,10.0.0.1,7,-`).verdict, 'noDomain')
  t.equal(reader.read(`${time(1)},fw-1,10.0.0.1,7,198.51.100.7`).verdict, 'noDomain')
  t.equal(reader.read(`${time(1)},fw-1,10.0.0.1,7,setup.zip`).verdict, 'unknown')
  t.equal(reader.read(`${time(1)},fw-1,10.0.0.1,7,jdoe@example.com`).verdict, 'unknown')
  const other = (index: number): string => `${name(index)};${time(index)};10.0.0.${index + 1};fw.example.org`
  for (let index = 0; index < 30; index++) reader.read(other(index))
  t.equal(reader.read(other(1)).host, 'api.openai.com', 'the new layout was learned')
})

t.test('a table that was valid for long is dropped as soon as a new one', async (t) => {
  const reader = new MessageReader()
  reader.read('ts,client,domain')
  for (let index = 0; index < 5000; index++) reader.read(`1795162502,192.0.2.45,${name(index)}`)
  const other = (index: number): string => `${name(index)};${time(index)};10.0.0.${index + 1}`
  for (let index = 0; index < 100; index++) reader.read(other(index))
  t.equal(reader.read(other(1)).host, 'api.openai.com')
})

t.test('a column can have URLs or files', async (t) => {
  const reader = new MessageReader()
  reader.read('Receive Time,Source address,URL/Filename')
  for (const [cell, host] of [
    ['claude.ai/', 'claude.ai'],
    ['https://claude.ai:443/a.zip', 'claude.ai'],
    ['api.openai.com:443/x', 'api.openai.com'],
    ['invoice.zip', ''],
    ['Setup.EXE', ''],
    ['invoice', ''],
  ] as const) {
    t.equal(reader.read(`2026/11/20 09:15:02,192.0.2.45,${cell}`).host, host, cell)
  }
})

t.test('a line of many commas, quotes or blanks takes linear time', async (t) => {
  const reader = new MessageReader()
  const cpuMs = cpuMsOf(() => {
    for (const byte of [',', '"', ' ', ';', ',"', '", ', 'a,', '1,']) {
      t.equal(reader.read(byte.repeat(Math.floor(250_000 / byte.length))).verdict, 'unknown', JSON.stringify(byte))
    }
    t.equal(reader.read(`${time(1)},192.0.2.45,https://claude.ai/${'x'.repeat(65_536)}`).host, 'claude.ai')
  })
  t.ok(cpuMs < 2000, `${cpuMs} ms`)
})

t.test('a referer is not read as the requested host', async (t) => {
  const referer = 'https://chatgpt.com/'
  for (const [line, verdict] of [
    [`2026-11-20 09:15:02,10.0.0.5,http://192.0.2.80/index.html,${referer}`, 'noDomain'],
    [`2026-11-20 09:15:02,10.0.0.5,http://intranet/index.html,${referer}`, 'noDomain'],
    ['2026-11-20 09:15:02,10.0.0.5,http://intranet/index.html,-', 'noDomain'],
    [`2026-11-20 09:15:02,10.0.0.5,-,${referer}`, 'unknown'],
    [`2026-11-20 09:15:02,10.0.0.5,,200,${referer}`, 'unknown'],
    [`2026-11-20 09:15:02,10.0.0.5,${referer},http://intranet/`, 'event'],
    [`2026-11-20 09:15:02,10.0.0.5,-,chatgpt.com,${referer}`, 'event'],
    ['2026-11-20 09:15:02,10.0.0.5,-,chatgpt.com', 'event'],
  ] as const) {
    t.equal(new MessageReader().read(line).verdict, verdict, line)
  }
  const after = (first: string) => (index: number) =>
    `${time(index)},10.0.0.${index},${first},https://ref${index}.example.org/`
  t.equal(learned(after('-'), 24).verdict, 'unknown', 'and repetition is no evidence')
  t.equal(learned(after('http://intranet/x'), 24).verdict, 'noDomain')
  t.equal(learned(after('http://192.0.2.80/x'), 24).verdict, 'noDomain')
  const user = (index: number): string =>
    `${time(index)},10.0.0.${index},${index % 3 === 0 ? '-' : `user${index}`},https://${name(index)}/`
  t.match(learned(user), { verdict: 'event', host: 'api.openai.com' }, 'after a user column with absent cells')
  const reader = new MessageReader()
  reader.read('time,client,user,url')
  t.equal(
    reader.read(`2026-11-20 09:15:02,10.0.0.5,-,${referer}`).host,
    'chatgpt.com',
    'with a header, the column is evidence',
  )
})

t.test('a header can lack specific names for both roles', async (t) => {
  for (const [header, row, verdict] of [
    ['ts,client,host,url', '1795162502,192.0.2.45,claude.ai,/new', 'ambiguous'],
    ['Time,IP Address,Hostname,MAC', '2026-11-20 09:15:02,192.0.2.45,pc-7.example.org,00:53:00:00:00:2a', 'ambiguous'],
    ['Time,User,URL', '2026-11-20 09:15:02,jdoe,https://claude.ai/', 'ambiguous'],
    ['Time,Host,Client IP,User,Result', '2026-11-20 09:15:02,vpn.example.org,192.0.2.45,jdoe,ok', 'ambiguous'],
    ['Time,Client IP,User,Domain', '2026-11-20 09:15:02,192.0.2.45,jdoe,corp.example.org', 'ambiguous'],
    ['Time,Client IP,User,Domain,Action', '2026-11-20 09:15:02,192.0.2.45,jdoe,claude.ai,allowed', 'event'],
    ['Time,Client IP,Sender,Recipient,Domain', '2026-11-20 09:15:02,192.0.2.45,a@openai.com,b,openai.com', 'noDomain'],
    ['Time,Event Type,Client IP,Domain', '2026-11-20 09:15:02,UserLoggedIn,192.0.2.45,openai.com', 'noDomain'],
    ['Time,Event Type,Client IP,Domain', '2026-11-20 09:15:02,dns-query,192.0.2.45,openai.com', 'event'],
    ['Time,IP,Domain', '2026-11-20 09:15:02,192.0.2.45,claude.ai', 'event'],
  ] as const) {
    const reader = new MessageReader()
    t.equal(reader.read(header).verdict, 'skip', header)
    t.equal(reader.read(row).verdict, verdict, `${header}: ${row}`)
  }
})

t.test('lines that are neither a header nor a row are recognized', async (t) => {
  for (const line of ['Domain,Action,Count', '2026 x,system,start,query', 'time,client,action']) {
    t.equal(new MessageReader().read(line).verdict, 'unknown', line)
  }
  for (const [header, row] of [
    ['Domain,Action,Count', 'api.openai.com failed to resolve'],
    ['Domain,Action,Count', 'api.openai.com,failed,3'],
    ['Domain,Time,Action', 'api.openai.com failed to resolve'],
    ['Domain,Time,Action', 'api.openai.com,failed,3'],
    ['Domain,Client,Action', 'api.openai.com,failed,3'],
    ['Time,Client,Domain', '2026-11-20 09:15:02,10.0.0.5,claude.ai,x'],
    ['Time,Client,Domain,Action', '2026-11-20 09:15:02,10.0.0.5,claude.ai'],
    ['Time,Client,Domain', '2026-11-20 09:15:02;10.0.0.5;claude.ai;x;https://chatgpt.com/'],
  ] as const) {
    const reader = new MessageReader()
    reader.read(header)
    t.equal(reader.read(row).verdict, 'unknown', `${header}: ${row}`)
  }
  const reader = new MessageReader()
  reader.read('Time,Client,Domain')
  t.equal(reader.read('2026-11-20 09:15:02,10.0.0.5,claude.ai,').verdict, 'event', 'a comma after the row')
})

t.test('headers may have unknown names, or name the own machine as well', async (t) => {
  for (const [header, row, client = '10.0.0.5'] of [
    [
      'Date,Time,Policy Identity,Destination,Internal IP,External IP,Action,Categories',
      '2026-11-20,09:15:02,pc-7,claude.ai,10.0.0.5,203.0.113.7,Allowed,AI',
    ],
    ['Zeit;Client-IP;Domain;Aktion', '20.11.2026 09:15:02;10.0.0.5;claude.ai;erlaubt'],
    ['Datum;Uhrzeit;Client-IP;Domain', '20.11.2026;09:15:02;10.0.0.5;claude.ai'],
    ['Time,Source,Destination', '2026-11-20 09:15:02,10.0.0.5,claude.ai'],
    ['Time,Source,Domain', '2026-11-20 09:15:02,pc7.corp.example.com,claude.ai', ''],
    ['Time,Source,Destination,URL', '2026-11-20 09:15:02,10.0.0.5,198.51.100.9,https://claude.ai/'],
    ['Timestamp,Hostname,Client IP,Destination Host', '2026-11-20 09:15:02,pc7.corp.example.com,10.0.0.5,claude.ai'],
    ['Timestamp,Host,Client IP,Query', '2026-11-20 09:15:02,dns1.corp.example.com,10.0.0.5,claude.ai'],
    ['Timestamp,Computer,Site,Client IP,SNI', '2026-11-20 09:15:02,pc7.example.com,hq.example.com,10.0.0.5,claude.ai'],
    ['Timestamp,Client IP,Host', '2026-11-20 09:15:02,10.0.0.5,claude.ai'],
  ] as const) {
    const reader = new MessageReader()
    t.equal(reader.read(header).verdict, 'skip', header)
    t.match(reader.read(row), { verdict: 'event', host: 'claude.ai', client, time: '2026-11-20T09:15:02.000' }, row)
  }
})

t.test('actions may have several words', async (t) => {
  for (const [text, action] of [
    ['BLOCKED (policy)', 'blocked'],
    ['Blocked by policy', 'blocked'],
    ['Access Denied', 'blocked'],
    ['REQ_BLOCK', 'blocked'],
    ['Allowed: rule 7', 'allowed'],
    ['not blocked', 'unknown'],
    ['Access', 'unknown'],
    ['Blocking-list', 'unknown'],
    ['Block lists are of no use to those who read them', 'unknown'],
  ] as const) {
    t.equal(new MessageReader().read(`2026-11-20 09:15:02,10.0.0.5,claude.ai,${text}`).action, action, text)
  }
})
