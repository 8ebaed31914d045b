import t from 'tap'
import { SyslogMessage } from '../../../../engine/ingest/syslog/message.ts'
import { readSyslog } from '../../../../engine/ingest/syslog/read-message.ts'
import * as fc from '../../../support/property.ts'

const RECEIVED_MS = Date.parse('2026-11-20T12:00:00Z')

function read(text: string | Uint8Array) {
  const bytes = Buffer.concat([Buffer.from('zz'), Buffer.from(text as string), Buffer.from('zz')])
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const message = new SyslogMessage()
  readSyslog(view, 2, bytes.length - 2, message, RECEIVED_MS)
  const part = (start: number, end: number) => bytes.toString('utf8', start, end)
  return {
    pri: message.pri,
    time: part(message.timeStart, message.timeEnd),
    host: part(message.hostStart, message.hostEnd),
    app: part(message.appStart, message.appEnd),
    token: part(message.tokenStart, message.tokenEnd),
    msg: part(message.msgStart, message.msgEnd),
  }
}

interface Row {
  readonly text: string
  readonly pri?: number
  readonly time?: string
  readonly host?: string
  readonly app?: string
  readonly token?: string
  readonly msg: string
}

const T = '2026-11-20T09:15:02Z'
const rfc5424: readonly Row[] = [
  { text: `<134>1 ${T} fw app 7 ID - hello`, pri: 134, time: T, host: 'fw', app: 'app', msg: 'hello' },
  { text: '<0>1 - - - - - -', pri: 0, time: '', host: '', app: '', msg: '' },
  { text: '<13>1 - - - - - - ', msg: '' },
  { text: '<13>1 - - - - -', msg: '' },
  { text: `<13>1 ${T} h a - - [x@1 a="b"] m`, msg: 'm' },
  { text: `<13>1 ${T} h a - - [svc@00000 key="T"] m`, token: 'T', msg: 'm' },
  {
    text: `<13>1 ${T} h a - - [a@1 key="no"][svc@00000 x="1" key="T" key="U"][svc@00000 key="V"] m`,
    token: 'T',
    msg: 'm',
  },
  { text: `<13>1 ${T} h a - - [svc@00000 key="a\\"b\\]c\\\\"] m`, token: 'a\\"b\\]c\\\\', msg: 'm' },
  { text: `<13>1 ${T} h a - - [svc@000001 key="T"] m`, token: '', msg: 'm' },
  { text: `<13>1 ${T} h a - - [svc@00000 Key="T"] m`, token: '', msg: 'm' },
  { text: `<13>1 ${T} h a - - [svc@00000] m`, token: '', msg: 'm' },
  { text: `<13>1 ${T} h a - - [svc@00000 key=""] m`, token: '', msg: 'm' },
  { text: `<13>1 ${T} h a - - [a b="]\n"] m`, msg: 'm' },
  { text: `<13>1 ${T} h a - - [a b="\\]\n"] m`, msg: 'm' },
  { text: `<13>1 ${T} h a - - [svc@00000 key="T"]`, token: 'T', msg: '' },
  { text: `<13>1 ${T} h a - - [svc@00000 key="T"`, token: 'T', msg: '[svc@00000 key="T"' },
  { text: `<13>1 ${T} h a - - - \ufeffmäh`, msg: 'mäh' },
  { text: `<13>1 ${T} h filterlog 1 - - 7,,,100`, app: 'filterlog', msg: '7,,,100' },
  { text: `<13>1 ${T} h filterlog 1 - [meta sequenceId="7"] 7,,,100`, msg: '7,,,100' },
  { text: `<14>1 ${T} h logforwarder - panwlogs - CEF:0|PAN|x`, msg: 'CEF:0|PAN|x' },
  { text: `<134>1 ${T} gw CheckPoint 7 - [action:"Drop"; ifname:"eth2"]`, msg: '[action:"Drop"; ifname:"eth2"]' },
  { text: `<134>1 ${T} h a p id message without SD`, msg: 'message without SD' },
  { text: '<134>1 2026-11-20 09:15:02 h a p id - m', time: '2026-11-20 09:15:02', host: 'h', msg: 'm' },
  { text: `1 ${T} h a - - [svc@00000 key="T"] m`, pri: 13, token: 'T', msg: 'm' },
  {
    text: `<13>1 ${T} 1795767302.100 - - - [svc@00000 key="T"] 1795767302.100     83 10.5.0.1 TCP_TUNNEL/200`,
    host: '',
    msg: '1795767302.100     83 10.5.0.1 TCP_TUNNEL/200',
  },
  {
    text: `<13>1 ${T} relay r - - [svc@00000 key="T"] <30>Nov 20 09:15:02 ns1 named[1]: client x`,
    token: 'T',
    time: 'Nov 20 09:15:02',
    host: 'ns1',
    app: 'named',
    msg: 'client x',
  },
  {
    text: `<13>1 ${T} relay r - - [svc@00000 key="T"] <30>1 2026-11-20T09:15:01Z ns1 named 7 - - client x`,
    pri: 13,
    token: 'T',
    time: '2026-11-20T09:15:01Z',
    host: 'ns1',
    app: 'named',
    msg: 'client x',
  },
  {
    text: `<13>1 ${T} far r - - - <13>1 ${T} near r - - - <30>Nov 20 09:15:02 ns1 named[1]: client x`,
    host: 'ns1',
    app: 'named',
    msg: 'client x',
  },
]
const rfc3164: readonly Row[] = [
  { text: '<34>Nov 20 09:15:02 h app[1]: m', pri: 34, time: 'Nov 20 09:15:02', host: 'h', app: 'app', msg: 'm' },
  { text: '<34>Nov  5 09:15:02 h app: m', time: 'Nov  5 09:15:02', host: 'h', app: 'app', msg: 'm' },
  { text: '<13>Nov 20 09:15:02 h 1,2026/11/20 09:15:02,x', host: 'h', msg: '1,2026/11/20 09:15:02,x' },
  { text: '<134>Nov 20 09:15:02 filterlog[40112]: 77,,', host: '', app: 'filterlog', msg: '77,,' },
  {
    text: '<134>2026-11-20T09:15:02+01:00 fw filterlog[40112] 77,,',
    time: '2026-11-20T09:15:02+01:00',
    host: 'fw',
    msg: '77,,',
  },
  {
    text: '<189>date=2026-11-20 time=09:15:02 devname="F"',
    pri: 189,
    msg: 'date=2026-11-20 time=09:15:02 devname="F"',
  },
  { text: '<134> id=firewall sn=1', msg: 'id=firewall sn=1' },
  {
    text: '<13>Nov 20 09:15:02 1795767302.100     83 10.5.0.1 TCP_TUNNEL/200',
    host: '',
    msg: '1795767302.100     83 10.5.0.1 TCP_TUNNEL/200',
  },
  { text: '<134>Nov 20 09:15:02 h 192.0.2.1  id=firewall sn=1', host: 'h', msg: 'id=firewall sn=1' },
  { text: '<30>Nov 20 09:15:02 h 192.0.2.1 named[1]: client x', host: 'h', app: 'named', msg: 'client x' },
  { text: '<134>192.0.2.1 id=firewall sn=1', host: '192.0.2.1', msg: 'id=firewall sn=1' },
  { text: '<13>Nov 20 2026 09:15:02 h app: m', time: 'Nov 20 2026 09:15:02', host: 'h', msg: 'm' },
  { text: '<13>Nov 20 09:15:02 2026 h app: m', time: 'Nov 20 09:15:02 2026', host: 'h', msg: 'm' },
  { text: '<13>*Nov 20 09:15:02.123: h app: m', host: 'h', msg: 'm' },
  { text: '<13>Nov 20 09:15:02 CET: h app: m', host: 'h', app: 'app', msg: 'm' },
  { text: '<013>Nov 20 09:15:02 h app: m', pri: 13, host: 'h', msg: 'm' },
  { text: '< 13>Nov 20 09:15:02 h app: m', pri: 13, host: 'h', msg: 'm' },
  { text: '<999>Nov 20 09:15:02 h app: m', pri: 13, host: 'h', msg: 'm' },
  { text: '<13>host app[7]: m', host: 'host', app: 'app', msg: 'm' },
  { text: '<166>Nov 20 09:15:02 proxy (squid-1)[7711]: 1795162503.001 0', host: 'proxy', msg: '1795162503.001 0' },
  { text: 'Nov 20 09:15:02 dnsmasq[310]: query[A] x from y', app: 'dnsmasq', msg: 'query[A] x from y' },
  { text: '<13>Nov 20 09:15:02 h CEF:0|a|b', host: 'h', msg: 'CEF:0|a|b' },
  { text: '<13>CEF:0|a|b', msg: 'CEF:0|a|b' },
  { text: '<13>LEEF:1.0|a|b', msg: 'LEEF:1.0|a|b' },
  { text: '<13>Nov 20 09:15:02 CEF:0|a|b', msg: 'CEF:0|a|b' },
  { text: '<13>{"a":1}', msg: '{"a":1}' },
  { text: '<13>Nov 20 09:15:02 h {"a":1}', host: 'h', msg: '{"a":1}' },
  { text: '<13>Nov 20 09:15:02 relay <30>Nov 20 09:15:01 ns1 named[9]: client x', host: 'ns1', msg: 'client x' },
  { text: '<13>Nov 20 09:15:02 relay relayd: Nov 20 09:15:01 ns1 named[9]: client x', host: 'ns1', msg: 'client x' },
  { text: '<13>Nov 20 09:15:02 h app: [svc@00000 key="T"] m', token: 'T', msg: 'm' },
  { text: '<13>[svc@00000 key="T"] m', token: 'T', msg: 'm' },
  { text: '11/20/2026 9:15:02 AM 0A14 PACKET  x', msg: '11/20/2026 9:15:02 AM 0A14 PACKET  x' },
  { text: '20-Nov-2026 09:15:02.123 queries: info: client x', msg: '20-Nov-2026 09:15:02.123 queries: info: client x' },
  { text: '1795162502.119    318 192.0.2.45 TCP', msg: '1795162502.119    318 192.0.2.45 TCP' },
  { text: '2026-11-20T08:15:02Z,192.0.2.45,perplexity.ai', msg: '2026-11-20T08:15:02Z,192.0.2.45,perplexity.ai' },
  {
    text: '192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET / HTTP/1.1" 200 1',
    msg: '192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "GET / HTTP/1.1" 200 1',
  },
  {
    text: 'Nov 20 09:15:02 proxy 192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "x"',
    host: 'proxy',
    msg: '192.0.2.45 - - [20/Nov/2026:09:15:02 +0100] "x"',
  },
  {
    text: 'client 192.0.2.45#2048: query: gemini.google.com IN A +',
    msg: 'client 192.0.2.45#2048: query: gemini.google.com IN A +',
  },
  { text: `${T} stdout F client x`, time: T, msg: 'client x' },
  { text: `${T} stderr P <30>Nov 20 09:15:02 ns1 named[1]: m`, time: 'Nov 20 09:15:02', app: 'named', msg: 'm' },
  { text: `${T}\tkube.var.log\t{"log":"m"}`, time: T, msg: '{"log":"m"}' },
  { text: 'hello', msg: 'hello' },
  { text: '<', msg: '<' },
  { text: '<13>', msg: '' },
  { text: '<13', msg: '<13' },
  { text: '1 ', msg: '1 ' },
]

for (const [kind, rows] of Object.entries({ rfc5424, rfc3164 })) {
  t.test(kind, async (t) => {
    for (const { text, ...expected } of rows) t.match(read(text), expected, JSON.stringify(text))
  })
}

t.test('any part of a message, and any bytes, are read without an exception and within the bytes', async () => {
  const pieces = [...rfc5424, ...rfc3164].flatMap(({ text }) => text.split(/(?<=[ \][<>:"])/))
  const made = fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ maxLength: 5 })), {
    minLength: 1,
    maxLength: 20,
  })
  fc.assert(
    fc.property(
      fc.oneof(
        made.map((parts) => Buffer.from(parts.join(''))),
        fc.uint8Array({ minLength: 1 }),
      ),
      (bytes) => {
        if (bytes.length === 0) return true
        const text = Buffer.from(bytes).toString('utf8')
        return text.endsWith(read(bytes).msg) || read(bytes).msg === ''
      },
    ),
    { numRuns: 5000 },
  )
})
