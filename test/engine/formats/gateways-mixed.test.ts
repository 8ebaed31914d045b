import t from 'tap'
import { MessageReader } from '../../support/log-rows.ts'

/** One line of each format, as a relay for many devices sends them. */
const LINES: readonly (readonly [format: string, line: string, host: string])[] = [
  [
    'collector-json',
    '{"id":"00112233445566770000000000000001","name":"claude.ai","client":"192.0.2.45","method":"tls","first_seen":"2026-11-20T09:15:02.123Z"}',
    'claude.ai',
  ],
  [
    'json-logs',
    '{"timestamp":1795162502,"domain":"api.openai.com","userip":"192.0.2.45","type":"page"}',
    'api.openai.com',
  ],
  ['cef', 'CEF:0|Zscaler|NSSWeblog|5.0|Allowed|x|3|src=192.0.2.45 dhost=huggingface.co', 'huggingface.co'],
  ['leef', 'LEEF:1.0|WatchGuard|XTM|12.10.1|1AFF0024|src=192.0.2.45\tdstname=perplexity.ai', 'perplexity.ai'],
  ['zscaler', '2026-11-20 09:15:02\treason=Allowed\tClientIP=192.0.2.45\thostname=chatgpt.com', 'chatgpt.com'],
  [
    'umbrella',
    '"2026-11-20 08:15:02","PC-7","PC-7","192.0.2.45","203.0.113.7","Allowed","1 (A)","NOERROR","api.groq.com.",""',
    'api.groq.com',
  ],
  [
    'netskope',
    `2026-11-20,08:15:02,41,1,2,3,192.0.2.45,198.51.100.20,jdoe,GET,https,-,-,-,200,-,-,api.cohere.com,/x`,
    'api.cohere.com',
  ],
  ['any-csv', '2026-11-20T08:15:02Z,192.0.2.45,gemini.google.com', 'gemini.google.com'],
]

t.test('formats of one source are recognized in any order', async (t) => {
  const reader = new MessageReader()
  for (const [before] of LINES.entries()) {
    for (const [format, line, host] of LINES) {
      reader.read(LINES[before]?.[1] ?? '')
      const read = reader.read(line)
      t.equal(read.format, format)
      t.equal(read.host, host, `${format} after ${LINES[before]?.[0]}`)
      t.equal(read.client, '192.0.2.45')
    }
  }
})

t.test('line ends, a NUL, blanks and a byte order mark are not part of a message', async (t) => {
  for (const [format, line, host] of LINES) {
    for (const end of ['\r\n', '\n', '\0', '\n\0']) {
      t.equal(new MessageReader().read(line + end).host, host, `${format} ${JSON.stringify(end)}`)
    }
    for (const start of ['\ufeff', '  ', '\ufeff ']) {
      t.equal(new MessageReader().read(start + line).host, host, `${JSON.stringify(start)} ${format}`)
    }
  }
})

t.test('a login that a gateway saw, and the resource of a firewall, are requests', async (t) => {
  const request = { verdict: 'event', host: 'claude.ai', client: '10.20.30.45' }
  for (const lines of [
    [
      'timestamp,user,srcip,dstip,url,app,activity,action',
      '2026-11-20 09:15:02,jdoe,10.20.30.45,198.51.100.20,claude.ai/login,Claude,Login Successful,allow',
    ],
    ['timestamp,user,userip,url,app,activity', '2026-11-20 09:15:02,jdoe,10.20.30.45,claude.ai/login,Claude,Login'],
    [
      '{"timestamp":1795162502,"type":"nspolicy","activity":"Login Attempt","app":"Claude","url":"claude.ai/login","userip":"10.20.30.45"}',
    ],
    [
      '{"time":"2026-11-20T09:15:02Z","activity":"Login","url":"https://claude.ai/login","client_ip":"10.20.30.45","action":"allow"}',
    ],
    [
      '"Time","Blade","Action","Origin","Source","Destination","Service","Resource"',
      '"2026-11-20T09:15:02Z","URL Filtering","Accept","gw-1","10.20.30.45","198.51.100.20","https","https://claude.ai/"',
    ],
  ]) {
    const reader = new MessageReader()
    t.match(lines.map((line) => reader.read(line)).at(-1), request, lines[0] ?? '')
  }
  for (const lines of [
    ['Time,Activity,User,IP,Domain', '2026-11-20 09:15:02,Login,jdoe,10.20.30.45,claude.ai'],
    ['{"time":"2026-11-20T09:15:02Z","activity":"Login","domain":"claude.ai","client_ip":"10.20.30.45","user":"jdoe"}'],
    ['Time,Source,Destination,Action,Resource', '2026-11-20 09:15:02,10.20.30.45,198.51.100.20,Accept,report.pdf'],
  ]) {
    const reader = new MessageReader()
    t.match(lines.map((line) => reader.read(line)).at(-1), { verdict: 'noDomain' }, lines[0] ?? '')
  }
})
