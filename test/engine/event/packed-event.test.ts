import t from 'tap'
import { type Event, packEvent } from '../../../engine/event/event.ts'
import {
  EVENT_ARRAY,
  EVENT_ARRAY_BLOCKED,
  EVENT_ARRAY_FULL,
  ID_BYTES,
  ID_OFFSET,
  numberEnd,
  OptionalColumns,
  stringBytes,
  stringStart,
  wholeNumber,
} from '../../../engine/event/packed-event.ts'
import { NOON, Sender } from '../../support/store.ts'

const optional = new OptionalColumns()

/** The optional columns of an event in a longer buffer, and the offset that find returned. */
function optionalOf(event: Event, bytesLess = 0) {
  const before = 5
  const packed = packEvent(event)
  const bytes = Buffer.concat([Buffer.alloc(before, 0xee), packed, Buffer.alloc(9, 0xee)])
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = before + packed.length - bytesLess
  let at = before + ID_OFFSET + ID_BYTES
  for (let text = 0; text < 2; text++) at = stringStart(view, at) + stringBytes(view, at)
  at++
  for (let number = 0; number < 3; number++) at = numberEnd(view, at, end)
  if (packed[0] === EVENT_ARRAY) return { array: EVENT_ARRAY, isWhole: at === end }
  const next = optional.find(view, packed[0] ?? 0, at, end)
  return {
    array: packed[0],
    isWhole: next === end,
    next,
    blocked: wholeNumber(view, optional.blockedAt),
    user: bytes.toString('utf8', optional.userStart, optional.userEnd),
    bytesSent: optional.bytesSent(view),
    bytesReceived: optional.bytesReceived(view),
  }
}

const none = { blocked: 0, user: '', bytesSent: 0, bytesReceived: 0 }
const rows: { name: string; more: Partial<Event>; array: number }[] = [
  { name: 'none', more: {}, array: EVENT_ARRAY },
  { name: 'only blocked matches', more: { count: 300, blocked: 300 }, array: EVENT_ARRAY_BLOCKED },
  { name: 'only a user', more: { user: 'CORP\\jdoe' }, array: EVENT_ARRAY_FULL },
  { name: 'the longest user', more: { user: 'ü'.repeat(64), blocked: 1 }, array: EVENT_ARRAY_FULL },
  { name: 'only bytes sent', more: { bytesSent: 127 }, array: EVENT_ARRAY_FULL },
  { name: 'only bytes received', more: { bytesReceived: 10 ** 15 - 1 }, array: EVENT_ARRAY_FULL },
  {
    name: 'all',
    more: { user: 'jdoe@example.com', count: 9, blocked: 3, bytesSent: 70_000, bytesReceived: 2 ** 33 },
    array: EVENT_ARRAY_FULL,
  },
]
for (const { name, more, array } of rows) {
  t.test(`optional columns: ${name}`, async (t) => {
    const event = new Sender().event('claude.ai', NOON, more)
    const { count: _count, ...columns } = more
    t.match(optionalOf(event), { array, isWhole: true, ...(array === EVENT_ARRAY ? {} : { ...none, ...columns }) })
  })
}

t.test('columns of the previous event are forgotten, and truncated ones are not found', async (t) => {
  const full = new Sender().event('claude.ai', NOON, { user: 'jdoe', bytesSent: 70_000, bytesReceived: 5 })
  optionalOf(full)
  t.match(optionalOf(new Sender().event('claude.ai', NOON, { blocked: 1 })), { ...none, blocked: 1 })
  // Blocked, header and text of the user, two numbers.
  for (let less = 1; less <= 1 + 5 + 5 + 1; less++) t.match(optionalOf(full, less), { next: -1 }, `${less} bytes less`)
})
