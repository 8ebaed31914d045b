import t from 'tap'
import { FormatDetector } from '../../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES } from '../../../engine/formats/log-line.ts'
import { EVENT_COUNT_MAX, eventFromJson, METHODS } from '../../../engine/kernel/event/event.ts'
import { checkMutations } from '../../support/log-mutations.ts'
import { checkRows } from '../../support/log-rows.ts'

const ID = '00112233445566770000000000000001'
const EVENT = {
  id: ID,
  name: 'claude.ai',
  client: '192.0.2.45',
  method: 'tls',
  first_seen: '2026-11-20T09:15:02.123Z',
  last_seen: '2026-11-20T09:15:09.001Z',
  count: 3,
}
const good = JSON.stringify(EVENT)
/** The event with some members replaced or removed. */
const changed = (members: Record<string, unknown>): string => JSON.stringify({ ...EVENT, ...members })

checkRows(t, 'collector-json', [
  {
    name: 'an event as the collector writes it',
    line: good,
    verdict: 'event',
    host: 'claude.ai',
    client: '192.0.2.45',
    time: '2026-11-20T09:15:09.001Z',
    action: 'unknown',
  },
  {
    name: 'members in another order, with blanks and a line end',
    line: `{ "last_seen" : "2026-11-20T10:15:09+01:00", "count": 1, "extra": {"id": [1, {"a": "}"}]}, "client": "2001:db8::45",\r\n "name": "a.b.c", "method":"dns", "first_seen":"2026-11-20T09:15:09Z", "id":"${ID}" }\r\n`,
    verdict: 'event',
    host: 'a.b.c',
    client: '2001:db8::45',
    time: '2026-11-20T09:15:09Z',
  },
  {
    name: 'without last_seen and count',
    line: changed({ last_seen: undefined, count: undefined }),
    verdict: 'event',
    host: 'claude.ai',
    time: '2026-11-20T09:15:02.123Z',
  },
  {
    name: 'all of it was blocked',
    line: changed({ blocked: 3 }),
    verdict: 'event',
    host: 'claude.ai',
    action: 'blocked',
  },
  { name: 'a part was blocked', line: changed({ blocked: 2 }), verdict: 'event', host: 'claude.ai', action: 'unknown' },
  {
    name: 'the first of two members with the same key wins',
    line: `{"id":"${ID}","name":"claude.ai","name":"example.com"${good.slice(good.indexOf(',"client"'))}`,
    verdict: 'event',
    host: 'claude.ai',
  },
  {
    name: 'an id in upper case',
    line: changed({ id: ID.replace('00', 'AB') }),
    verdict: 'reject',
    reason: /^id: .*lower/,
  },
  { name: 'an id that is too short', line: changed({ id: ID.slice(1) }), verdict: 'reject', reason: /^id/ },
  { name: 'a number as id', line: changed({ id: 7 }), verdict: 'reject', reason: /^id/ },
  { name: 'sequence 0', line: changed({ id: '0'.repeat(32) }), verdict: 'reject', reason: /^id: .*sequence/ },
  {
    name: 'a sequence above 2^53-1',
    line: changed({ id: '00112233445566770020000000000000' }),
    verdict: 'reject',
    reason: /^id: .*sequence/,
  },
  { name: 'no name', line: changed({ name: '' }), verdict: 'reject', reason: /^name/ },
  { name: 'a name of 254', line: changed({ name: 'a'.repeat(254) }), verdict: 'reject', reason: /^name/ },
  { name: 'a name that is null', line: changed({ name: null }), verdict: 'reject', reason: /^name/ },
  { name: 'a client by name', line: changed({ client: 'pc-7.example.com' }), verdict: 'reject', reason: /^client/ },
  { name: 'no client', line: changed({ client: undefined }), verdict: 'reject', reason: /^client/ },
  { name: 'an unknown method', line: changed({ method: 'http' }), verdict: 'reject', reason: /^method/ },
  { name: 'no method', line: changed({ method: undefined }), verdict: 'reject', reason: /^method/ },
  {
    name: 'a time without zone',
    line: changed({ first_seen: '2026-11-20T09:15:02' }),
    verdict: 'reject',
    reason: /^first_seen/,
  },
  { name: 'a time as a number', line: changed({ first_seen: 1795162502 }), verdict: 'reject', reason: /^first_seen/ },
  {
    name: '31 February',
    line: changed({ last_seen: '2026-02-31T09:15:02Z' }),
    verdict: 'reject',
    reason: /^last_seen/,
  },
  {
    name: 'before 1970',
    line: changed({ first_seen: '1969-12-31T23:59:59Z' }),
    verdict: 'reject',
    reason: /^first_seen/,
  },
  {
    name: 'seen last before it was seen first',
    line: changed({ last_seen: '2026-11-20T09:15:02.122Z' }),
    verdict: 'reject',
    reason: 'last_seen: expected a time not before first_seen',
  },
  { name: 'count 0', line: changed({ count: 0 }), verdict: 'reject', reason: /^count/ },
  { name: 'half a match', line: changed({ count: 1.5 }), verdict: 'reject', reason: /^count/ },
  { name: 'a count as text', line: changed({ count: '3' }), verdict: 'reject', reason: /^count/ },
  { name: 'too many', line: changed({ count: EVENT_COUNT_MAX + 1 }), verdict: 'reject', reason: /^count/ },
  { name: 'a negative blocked count', line: changed({ blocked: -1 }), verdict: 'reject', reason: /^blocked/ },
  { name: 'more blocked than counted', line: changed({ blocked: 4 }), verdict: 'reject', reason: /^blocked/ },
  { name: 'text after the object', line: `${good} and more`, verdict: 'reject', host: 'claude.ai', reason: /^JSON/ },
  { name: 'a trailing comma', line: `${good.slice(0, -1)},}`, verdict: 'reject', reason: /^JSON/ },
])

/** The fields that only these events have. */
function readLine(message: string): LogLine {
  const bytes = Buffer.from(message)
  const line = new LogLine(new Uint8Array(bytes.length + SCRATCH_BYTES))
  line.bytes.set(bytes)
  new FormatDetector().read(line, 0, bytes.length)
  return line
}

t.test('fields that only the collector sends are read', async (t) => {
  const line = readLine(changed({ blocked: 2 }))
  t.equal(line.text(line.eventIdStart, line.eventIdStart + 32), ID)
  t.equal(METHODS[line.method], 'tls')
  t.equal(line.count, 3)
  t.equal(line.blockedCount, 2)
  t.equal(line.firstSeenMs, Date.parse(EVENT.first_seen))
  t.equal(line.timeMs, Date.parse(EVENT.last_seen))
  const short = readLine(changed({ last_seen: undefined, count: undefined }))
  t.ok(Number.isNaN(short.firstSeenMs))
  t.equal(short.count, 1)
  t.equal(short.blockedCount, 0)
})

t.test('user and byte counts of an event are read', async (t) => {
  for (const user of ['jdoe', 'CORP\\jdoe', 'Jürgen "J" 山田', 'u'.repeat(128)]) {
    for (const json of [JSON.stringify(user), escapedJson(user)]) {
      const line = readLine(`${good.slice(0, -1)},"user":${json},"bytes_sent":70000,"bytes_received":7}`)
      t.equal(line.reason, '')
      t.equal(line.text(line.userStart, line.userEnd), user, json)
      t.same([line.bytesSent, line.bytesReceived], [70_000, 7])
    }
  }
})

/** JSON in ASCII, as the collector and some relays write it. */
function escapedJson(text: string): string {
  const escaped = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(text).replace(/[^ -~]/g, escaped)
}

t.test('a name that JSON escapes is written out, in its canonical form', async (t) => {
  const line = readLine(`{"id":"${ID}","name":"\\u00fc\\u002dx.CLAUDE.ai."${good.slice(good.indexOf(',"client"'))}`)
  t.equal(line.text(line.hostStart, line.hostEnd), 'xn---x-wka.claude.ai')
})

t.test('no field carries over to the next message', async (t) => {
  const line = readLine(changed({ blocked: 2, user: 'jdoe', bytes_sent: 5, bytes_received: 6 }))
  line.reset()
  t.same([line.userEnd, line.bytesSent, line.bytesReceived], [line.userStart, 0, 0])
  t.same([line.eventIdStart, line.method, line.count, line.blockedCount], [-1, METHODS.indexOf('log'), 1, 0])
  t.ok(Number.isNaN(line.firstSeenMs))
})

t.test('the format agrees with the check of whole batches', async (t) => {
  const values: Record<string, readonly unknown[]> = {
    id: [ID, `${ID.slice(0, 31)}0`, `${ID.slice(0, 17)}01fffffffffffff`, `g${ID.slice(1)}`, 1, null],
    name: [
      'x',
      'a_b.c.',
      'A.b',
      '192.0.2.1',
      'a..b',
      '.a',
      'a..',
      'a b',
      'ü.example',
      `${'a'.repeat(64)}.b`,
      7,
      [],
      {},
    ],
    client: ['::', '0.0.0.0', '::ffff:192.0.2.1', 'fe80::1%eth0', '192.0.2.256', '192.0.2.01', '', true],
    method: [...METHODS, 'DNS', 0],
    first_seen: [
      '2026-11-20T09:15Z',
      '2026-02-29T09:15:02Z',
      '2026-02-30T09:15:02Z',
      '2024-02-29T09:15:02Z',
      '2026-11-19T23:59:60Z',
      '2026-11-20T24:00:00Z',
      '2026-11-20T09:15:02+19:00',
      '2026-11-20T09:15:02+18:00',
      '2026-11-20T09:15:02+0100',
      '2026-11-20 09:15:02Z',
      '9999-12-31T23:59:59.999Z',
      '',
    ],
    last_seen: ['2026-11-20T09:15:02.123Z', '2026-11-20T24:15:02Z', null, '2027-01-01T00:00:00-11:30'],
    count: [1, 2.0, EVENT_COUNT_MAX, -1, 1e3, null, true, []],
    user: [
      ...[
        'jdoe',
        'CORP\\jdoe',
        'Jürgen',
        'CN="Jane", O=x',
        'a\u0000',
        'a\nb',
        'a\u202eb',
        'a\ufffdb',
        '😀',
        '\ud83d',
        '',
      ],
      ...['u'.repeat(128), 'u'.repeat(129), 'ü'.repeat(64), 'ü'.repeat(65), 7, null, true, [], {}],
    ],
    bytes_sent: [0, 1, 10 ** 15 - 1, 10 ** 15, -1, 0.5, '1', null, true, []],
    bytes_received: [0, 10 ** 15 - 1, 10 ** 15, -1, '1', null],
  }
  for (const [member, all] of Object.entries(values)) {
    for (const value of all) {
      const text = changed({ [member]: value })
      const line = readLine(text)
      const expected = eventFromJson(JSON.parse(text))
      t.equal(line.reason === '', typeof expected !== 'string', `${member}: ${JSON.stringify(value)}: ${line.reason}`)
    }
  }
})

t.test('a megabyte of opening braces ends quickly', async (t) => {
  const line = readLine(`{"id":${'['.repeat(1_000_000)},"_seen"`)
  t.equal(line.eventIdStart, -1)
})

checkMutations(t, [good, changed({ blocked: 1 }), changed({ user: 'CORP\\jdoe', bytes_sent: 5 })])
