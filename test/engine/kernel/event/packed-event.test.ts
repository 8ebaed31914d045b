import t from 'tap'
import { type Event, packEvent } from '../../../../engine/kernel/event/event.ts'
import { PackedEvent } from '../../../../engine/kernel/event/packed-event.ts'
import { NOON, Sender } from '../../../support/store.ts'

const reader = new PackedEvent()

/** The columns of an event in a longer buffer, and the offset that read returned. */
function columnsOf(event: Event, bytesLess = 0) {
  const before = 5
  const packed = packEvent(event)
  const bytes = Buffer.concat([Buffer.alloc(before, 0xee), packed, Buffer.alloc(9, 0xee)])
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = before + packed.length - bytesLess
  const next = reader.read(view, before, end)
  const { nameAt, nameEnd, clientAt, clientEnd, userAt, userEnd } = reader
  return {
    array: packed[0],
    isWhole: next === end,
    next,
    id: bytes.toString('hex', reader.idAt, reader.idAt + 16),
    name: bytes.toString('utf8', nameAt, nameEnd),
    client: bytes.toString('utf8', clientAt, clientEnd),
    firstSeenMs: reader.firstSeenMs,
    lastSeenMs: reader.firstSeenMs + reader.spanMs,
    count: reader.count,
    blocked: reader.blocked,
    user: bytes.toString('utf8', userAt, userEnd),
    bytesSent: reader.bytesSent,
    bytesReceived: reader.bytesReceived,
  }
}

const none = { blocked: 0, user: '', bytesSent: 0, bytesReceived: 0 }
const rows: { name: string; more: Partial<Event>; array: number }[] = [
  { name: 'none', more: {}, array: 0x97 },
  { name: 'only blocked matches', more: { count: 300, blocked: 300 }, array: 0x98 },
  { name: 'only a user', more: { user: 'CORP\\jdoe' }, array: 0x9b },
  { name: 'the longest user', more: { user: 'ü'.repeat(64), blocked: 1 }, array: 0x9b },
  { name: 'only bytes sent', more: { bytesSent: 127 }, array: 0x9b },
  { name: 'only bytes received', more: { bytesReceived: 10 ** 15 - 1 }, array: 0x9b },
  {
    name: 'all',
    more: { user: 'jdoe@example.com', count: 9, blocked: 3, bytesSent: 70_000, bytesReceived: 2 ** 33 },
    array: 0x9b,
  },
]
for (const { name, more, array } of rows) {
  t.test(`columns of an event: ${name}`, async (t) => {
    const { method: _method, ...event } = new Sender().event('claude.ai', NOON, more)
    t.match(columnsOf({ ...event, method: 'dns' }), { array, isWhole: true, ...none, ...event })
  })
}

t.test('columns of the previous event are forgotten, and truncated ones are not found', async (t) => {
  const full = new Sender().event('claude.ai', NOON, { user: 'jdoe', bytesSent: 70_000, bytesReceived: 5 })
  columnsOf(full)
  t.match(columnsOf(new Sender().event('claude.ai', NOON, { blocked: 1 })), { ...none, blocked: 1 })
  for (let less = 1; less < packEvent(full).length; less++)
    t.match(columnsOf(full, less), { next: -1 }, `${less} bytes less`)
})
