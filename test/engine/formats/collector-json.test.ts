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

checkRows(t, 'collector-json', {
  'an event as the collector writes it': [good, 'event claude.ai from 192.0.2.45 at 2026-11-20T09:15:09.001Z, unknown'],
  'members in another order, with blanks and a line end': [
    `{ "last_seen" : "2026-11-20T10:15:09+01:00", "count": 1, "extra": {"id": [1, {"a": "}"}]}, "client": "2001:db8::45",\r\n "name": "a.b.c", "method":"dns", "first_seen":"2026-11-20T09:15:09Z", "id":"${ID}" }\r\n`,
    'event a.b.c from 2001:db8::45 at 2026-11-20T09:15:09Z',
  ],
  'without last_seen and count': [
    changed({ last_seen: undefined, count: undefined }),
    'event claude.ai at 2026-11-20T09:15:02.123Z',
  ],
  'all of it was blocked': [changed({ blocked: 3 }), 'event claude.ai, blocked'],
  'a part was blocked': [changed({ blocked: 2 }), 'event claude.ai, unknown'],
  'the first of two members with the same key wins': [
    `{"id":"${ID}","name":"claude.ai","name":"example.com"${good.slice(good.indexOf(',"client"'))}`,
    'event claude.ai',
  ],
  'an id in upper case': [changed({ id: ID.replace('00', 'AB') }), 'reject', { reason: /^id: .*lower/ }],
  'an id that is too short': [changed({ id: ID.slice(1) }), 'reject: id'],
  'a number as id': [changed({ id: 7 }), 'reject: id'],
  'sequence 0': [changed({ id: '0'.repeat(32) }), 'reject', { reason: /^id: .*sequence/ }],
  'a sequence above 2^53-1': [
    changed({ id: '00112233445566770020000000000000' }),
    'reject',
    { reason: /^id: .*sequence/ },
  ],
  'no name': [changed({ name: '' }), 'reject: name'],
  'a name of 254': [changed({ name: 'a'.repeat(254) }), 'reject: name'],
  'a name that is null': [changed({ name: null }), 'reject: name'],
  'a client by name': [changed({ client: 'pc-7.example.com' }), 'reject: client'],
  'no client': [changed({ client: undefined }), 'reject: client'],
  'an unknown method': [changed({ method: 'http' }), 'reject: method'],
  'no method': [changed({ method: undefined }), 'reject: method'],
  'a time without zone': [changed({ first_seen: '2026-11-20T09:15:02' }), 'reject: first_seen'],
  'a time as a number': [changed({ first_seen: 1795162502 }), 'reject: first_seen'],
  '31 February': [changed({ last_seen: '2026-02-31T09:15:02Z' }), 'reject: last_seen'],
  'before 1970': [changed({ first_seen: '1969-12-31T23:59:59Z' }), 'reject: first_seen'],
  'seen last before it was seen first': [
    changed({ last_seen: '2026-11-20T09:15:02.122Z' }),
    'reject',
    { reason: 'last_seen: expected a time not before first_seen' },
  ],
  'count 0': [changed({ count: 0 }), 'reject: count'],
  'half a match': [changed({ count: 1.5 }), 'reject: count'],
  'a count as text': [changed({ count: '3' }), 'reject: count'],
  'too many': [changed({ count: EVENT_COUNT_MAX + 1 }), 'reject: count'],
  'a negative blocked count': [changed({ blocked: -1 }), 'reject: blocked'],
  'more blocked than counted': [changed({ blocked: 4 }), 'reject: blocked'],
  'text after the object': [`${good} and more`, 'reject claude.ai: JSON'],
  'a trailing comma': [`${good.slice(0, -1)},}`, 'reject: JSON'],
})

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
