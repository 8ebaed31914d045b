import t from 'tap'
import { BatchReader } from '../../../engine/ingest/batch-reader.ts'
import { EventIds, PendingEvents } from '../../../engine/ingest/pending-events.ts'
import { type Source, SourceTable } from '../../../engine/ingest/sources.ts'
import {
  type Event,
  METHODS,
  TRANSFERRED_BYTES_MAX,
  USER_BYTES_MAX,
  unpackBatch,
} from '../../../engine/kernel/event/event.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { sourceOfInstance } from '../../../engine/store/event-source.ts'
import { PROBES_MAX } from '../../../registry/keyed-hash.ts'
import { collidingTexts, countingView } from '../../support/colliding-texts.ts'
import * as fc from '../../support/property.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')
const MIDNIGHT = Date.parse('2026-11-21T00:00:00Z')
const owner = { organizationId: 'o', tokenId: 't', label: 'l' }
const source: Source = new SourceTable().get(owner, 'tcp', '192.0.2.1', '')

/** Of one name, client and time, if it does not say otherwise. */
interface Message {
  readonly name?: string
  readonly client?: string
  readonly lastMs?: number
  readonly firstMs?: number
  readonly count?: number
  readonly blocked?: number
  readonly user?: string
  readonly sent?: number
  readonly received?: number
  readonly id?: string
  readonly from?: Source
}

function add(pending: PendingEvents, message: Message): void {
  const { name = 'a.b', client = '192.0.2.1', lastMs = NOON, firstMs = lastMs, from = source } = message
  const { count = 1, blocked = 0, id = '' } = message
  const { user = '', sent: bytesSent = 0, received: bytesReceived = 0 } = message
  // The name is inside the buffer, followed by the ID and the user.
  const bytes = Buffer.from(`xyz${name}|${id}${user}`)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const nameEnd = 3 + name.length
  const method = METHODS.indexOf(id === '' ? 'log' : 'dns')
  const userStart = nameEnd + 1 + id.length
  const optional = { blocked, isQuestion: false, userStart, userEnd: bytes.length, bytesSent, bytesReceived }
  const event = { nameStart: 3, nameEnd, client, method, firstMs, lastMs, count, ...optional }
  pending.add(view, event, id === '' ? -1 : nameEnd + 1, from)
}

function eventsOf(pending: PendingEvents): Event[] {
  const { bytes, events } = pending.take()
  const unpacked = unpackBatch(bytes, 100_000)
  if (typeof unpacked === 'string') throw new Error(unpacked)
  const good = unpacked.events.map((event) => {
    if (typeof event === 'string') throw new Error(event)
    return event
  })
  if (good.length !== events) throw new Error(`${events} were announced, ${good.length} are there`)
  return good
}

const rows: Readonly<Record<string, readonly [messages: readonly Message[], events: readonly Partial<Event>[]]>> = {
  one: [
    [{ name: 'Claude.AI', client: '192.0.2.1', lastMs: NOON }],
    [{ name: 'claude.ai', client: '192.0.2.1', method: 'log', firstSeenMs: NOON, lastSeenMs: NOON, count: 1 }],
  ],
  'the same name and client are one event, regardless of case and order': [
    [
      { name: 'claude.ai', client: '192.0.2.1', lastMs: NOON },
      { name: 'CLAUDE.ai', client: '192.0.2.1', lastMs: NOON - MINUTE_MS },
      { name: 'claude.ai', client: '192.0.2.1', lastMs: NOON + MINUTE_MS, count: 3 },
    ],
    [{ firstSeenMs: NOON - MINUTE_MS, lastSeenMs: NOON + MINUTE_MS, count: 5 }],
  ],
  'another client, another name or a longer name is another event': [
    [
      { name: 'claude.ai', client: '192.0.2.1', lastMs: NOON },
      { name: 'claude.ai', client: '192.0.2.11', lastMs: NOON },
      { name: 'claude.ai.', client: '192.0.2.1', lastMs: NOON },
      { name: 'laude.ai', client: '192.0.2.1', lastMs: NOON },
    ],
    [{ count: 1 }, { count: 1 }, { count: 1 }, { count: 1 }],
  ],
  'blocked matches are separate events': [
    [{ blocked: 1 }, {}, { blocked: 1 }],
    [{ count: 2, blocked: 2 }, { count: 1 }],
  ],
  'more than an hour apart': [
    [{}, { lastMs: NOON + HOUR_MS }, { lastMs: NOON - 1 }],
    [{ count: 2 }, { count: 1 }],
  ],
  'of two days': [
    [{ lastMs: MIDNIGHT - 1 }, { lastMs: MIDNIGHT }],
    [{ count: 1 }, { count: 1 }],
  ],
  'events with their own ID are never merged': [
    [{ id: '00112233445566778899AABBCCDDEEFF'.replace('8899', '0000') }, { id: `${'a'.repeat(16)}${'0'.repeat(15)}2` }],
    [{ id: '00112233445566770000aabbccddeeff', method: 'dns' }, { id: `${'a'.repeat(16)}${'0'.repeat(15)}2` }],
  ],
  'counts that would exceed the limit': [
    [{ count: 0xffff_ffff }, {}],
    [{ count: 0xffff_ffff }, { count: 1 }],
  ],
  'a span of years loses its beginning, not its end': [
    [{ firstMs: 0, id: `${'a'.repeat(16)}${'0'.repeat(15)}1` }],
    [{ firstSeenMs: NOON - 0xffff_ffff, lastSeenMs: NOON }],
  ],
  'the longest name, address and user': [
    [
      {
        name: `${'a.'.repeat(125)}com`,
        client: '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff',
        lastMs: NOON,
        user: 'u'.repeat(USER_BYTES_MAX),
      },
    ],
    [{ name: `${'a.'.repeat(125)}com`, user: 'u'.repeat(USER_BYTES_MAX) }],
  ],
  'two users of one client are not mixed': [
    [{ user: 'jdoe' }, { user: 'jdo' }, { user: 'JDOE' }, {}, { user: 'jdoe' }],
    [{ user: 'jdoe', count: 2 }, { user: 'jdo', count: 1 }, { user: 'JDOE', count: 1 }, { count: 1 }],
  ],
  'bytes are added, with and without a user': [
    [
      { user: 'jdoe', sent: 5, received: 2 ** 33 },
      { sent: 7 },
      { user: 'jdoe', sent: 6, received: 1 },
      { received: 8 },
    ],
    [
      { user: 'jdoe', bytesSent: 11, bytesReceived: 2 ** 33 + 1 },
      { bytesSent: 7, bytesReceived: 8 },
    ],
  ],
  'blocked and other matches with bytes are one event': [
    [
      { user: 'jdoe', blocked: 1 },
      { user: 'jdoe', count: 4 },
      { user: 'jdoe', blocked: 1, sent: 3 },
    ],
    [{ user: 'jdoe', count: 6, blocked: 2, bytesSent: 3 }],
  ],
  'bytes that would exceed the limit': [
    [
      { sent: TRANSFERRED_BYTES_MAX, received: 1 },
      { sent: 1, received: 1 },
    ],
    [
      { count: 1, bytesSent: TRANSFERRED_BYTES_MAX, bytesReceived: 1 },
      { count: 1, bytesSent: 1, bytesReceived: 1 },
    ],
  ],
  'an event with its own ID keeps its user and bytes': [
    [{ id: `${'a'.repeat(16)}${'0'.repeat(15)}1`, user: 'jdoe', sent: 5, received: 6 }],
    [{ id: `${'a'.repeat(16)}${'0'.repeat(15)}1`, user: 'jdoe', bytesSent: 5, bytesReceived: 6 }],
  ],
}

for (const [name, [messages, events]] of Object.entries(rows)) {
  t.test(name, async (t) => {
    const pending = new PendingEvents(100, new EventIds())
    for (const message of messages) add(pending, message)
    const found = eventsOf(pending)
    t.equal(found.length, events.length)
    t.match(found, events)
  })
}

t.test('IDs belong to one instance and ascend across batches', async (t) => {
  const ids = new EventIds()
  const pending = [new PendingEvents(10, ids), new PendingEvents(10, ids)]
  const found: string[] = []
  for (let index = 0; index < 12; index++) {
    for (const one of pending) add(one, { name: `n${index}.ai`, client: '192.0.2.1', lastMs: NOON })
    if (index % 4 === 3) found.push(...pending.flatMap((one) => eventsOf(one).map(({ id }) => id)))
  }
  t.equal(new Set(found).size, 24)
  t.equal(new Set(found.map((id) => id.slice(0, 16))).size, 1)
  t.same(
    found.map((id) => Number.parseInt(id.slice(16), 16)).sort((a, b) => a - b),
    Array.from({ length: 24 }, (_, index) => index + 1),
  )
})

t.test('messages of different tokens are different events, whose ids name the token', async (t) => {
  const table = new SourceTable()
  const tokens = ['1a2b3c4d-1111-4111-8111-111111111111', 'ffffffff-1111-4111-8111-111111111111']
  const sources = tokens.map((tokenId) => table.get({ ...owner, tokenId }, 'tcp', '192.0.2.1', ''))
  const pending = new PendingEvents(10, new EventIds())
  for (let turn = 0; turn < 3; turn++) {
    for (const from of sources) add(pending, { name: 'claude.ai', client: '192.0.2.1', lastMs: NOON, from })
  }
  const found = eventsOf(pending)
  t.match(found, [
    { id: /^1a2b3c4d/, count: 3 },
    { id: /^ffffffff/, count: 3 },
  ])
  t.same(
    found.map(({ id }) => sourceOfInstance(id.slice(0, 16), tokens)),
    ['1a2b3c4d', 'ffffffff'],
  )
  for (const from of sources) add(pending, { name: 'chatgpt.com', client: '192.0.2.1', lastMs: NOON, from })
  t.same(
    [...found, ...eventsOf(pending)].map(({ id }) => Number.parseInt(id.slice(16), 16)),
    [1, 1, 2, 2],
    'each token has a sequence without gaps',
  )
  t.equal(sourceOfInstance('1a2b3c4e00000000', tokens), '1a2b3c4e00000000', 'an instance of a sensor')
})

t.test('the writer reads a batch in place, without repacking events', async (t) => {
  const pending = new PendingEvents(100, new EventIds())
  add(pending, { name: 'Claude.ai', client: '192.0.2.1', lastMs: NOON })
  add(pending, { name: 'claude.ai', client: '192.0.2.1', lastMs: NOON, blocked: 1 })
  add(pending, { name: 'claude.ai', client: '192.0.2.1', lastMs: NOON, user: 'CORP\\jdoe', sent: 5 })
  add(pending, { name: 'chatgpt.com', client: '2001:db8::1', lastMs: NOON, firstMs: NOON - HOUR_MS, count: 300 })
  add(pending, {
    name: 'claude.ai',
    client: '192.0.2.1',
    lastMs: NOON,
    count: 2,
    id: '00112233445566770000000000000001',
  })
  const { bytes } = pending.take()
  const batch = new BatchReader().read(bytes, 100, NOON)
  if (typeof batch === 'string') throw new Error(batch)
  t.same(batch.rejected, [])
  t.equal(batch.events.count, 5)
  t.equal(batch.events.bytes, bytes)
})

const message = fc.record({
  name: fc.constantFrom('claude.ai', 'Claude.ai', 'chatgpt.com', 'a.b'),
  client: fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1'),
  lastMs: fc.integer({ min: NOON - 2 * DAY_MS, max: NOON + 2 * DAY_MS }),
  span: fc.oneof(fc.constant(0), fc.nat(2 * HOUR_MS)),
  count: fc.integer({ min: 1, max: 5 }),
  blocked: fc.boolean(),
  user: fc.constantFrom('', '', 'jdoe', 'Jürgen'),
  sent: fc.constantFrom(0, 0, 5, 2 ** 40),
  own: fc.boolean(),
  from: fc.nat(2),
})

t.test('counts, blocked counts, bytes, users, days, time spans and sources are preserved', async () => {
  const table = new SourceTable()
  const sources = [0, 1, 2].map((index) => table.get(owner, 'tcp', `192.0.2.${index}`, ''))
  fc.assert(
    fc.property(fc.array(message, { maxLength: 80 }), fc.integer({ min: 1, max: 40 }), (messages, countMax) => {
      const pending = new PendingEvents(countMax, new EventIds())
      const sums = { in: new Map<string, number>(), out: new Map<string, number>() }
      const note = (into: Map<string, number>, key: string, count: number): void => {
        into.set(key, (into.get(key) ?? 0) + count)
      }
      const senders = new Map<Source, number>()
      const expectedSenders = new Map<Source, number>()
      const ends = new Map<string, [first: number, last: number]>()
      const take = (): void => {
        const { bytes, events, messages: by } = pending.take()
        const unpacked = unpackBatch(bytes, 100_000)
        if (typeof unpacked === 'string' || unpacked.events.length !== events || events > countMax)
          throw new Error('batch')
        for (const [from, count] of by) senders.set(from, (senders.get(from) ?? 0) + count)
        for (const event of unpacked.events) {
          if (typeof event === 'string') throw new Error(event)
          const { name, client, lastSeenMs, firstSeenMs, count, blocked = 0, user = '', bytesSent = 0 } = event
          const day = Math.floor(lastSeenMs / DAY_MS)
          const key = `${name} ${client} ${user} ${day}`
          note(sums.out, key, count)
          note(sums.out, `${key} blocked`, blocked)
          note(sums.out, `${key} sent`, bytesSent)
          const [first, last] = ends.get(key) ?? [0, 0]
          if (firstSeenMs < first || lastSeenMs > last) throw new Error('an event outside the times of its messages')
        }
      }
      for (const [index, message] of messages.entries()) {
        const { name, client, lastMs, span, count, blocked, user, sent, own, from } = message
        const day = Math.floor(lastMs / DAY_MS)
        const key = `${name.toLowerCase()} ${client} ${user} ${day}`
        const [first, last] = ends.get(key) ?? [Number.POSITIVE_INFINITY, 0]
        // Events of the previous day may be merged into this one, which then starts when they did.
        ends.set(key, [Math.min(first, lastMs - span), Math.max(last, lastMs)])
        const sender = sources[from] as Source
        expectedSenders.set(sender, (expectedSenders.get(sender) ?? 0) + 1)
        const id = own ? `${'ab'.repeat(8)}${(index + 1).toString(16).padStart(16, '0')}` : ''
        const isBlocked = blocked ? count : 0
        note(sums.in, key, count)
        note(sums.in, `${key} blocked`, isBlocked)
        note(sums.in, `${key} sent`, sent)
        const times = { lastMs, firstMs: lastMs - span }
        add(pending, { name, client, ...times, count, blocked: isBlocked, user, sent, id, from: sender })
        if (pending.full) take()
      }
      take()
      const same = (a: ReadonlyMap<unknown, number>, b: ReadonlyMap<unknown, number>): boolean =>
        [...a].every(([key, count]) => (b.get(key) ?? 0) === count)
      return (
        same(sums.in, sums.out) &&
        same(sums.out, sums.in) &&
        same(senders, expectedSenders) &&
        same(expectedSenders, senders)
      )
    }),
    { numRuns: 1000 },
  )
})

type Flood = readonly Required<Pick<Message, 'name' | 'client' | 'lastMs'>>[]
const floods: Readonly<Record<string, () => Flood>> = {
  'names with the same FNV-1a hash': () => {
    const method = METHODS.indexOf('log')
    const state = Math.imul(0x811c9dc5 ^ method ^ 0x97, 0x01000193)
    return collidingTexts(12, state).map((name) => ({ name, client: '192.0.2.1', lastMs: NOON }))
  },
  'messages of one name that are too far apart to be merged': () =>
    Array.from({ length: 4096 }, (_, hour) => {
      return { name: 'chatgpt.com', client: '192.0.2.1', lastMs: NOON - hour * 2 * HOUR_MS }
    }),
}
for (const [name, messages] of Object.entries(floods)) {
  t.test(`a batch compares a message with few others: ${name}`, async (t) => {
    const pending = new PendingEvents(4096, new EventIds())
    let reads = 0
    let bytes = 0
    for (const message of messages()) {
      const text = Buffer.from(message.name)
      const view = countingView(text)
      const nameEnd = text.length
      const optional = {
        blocked: 0,
        isQuestion: false,
        userStart: nameEnd,
        userEnd: nameEnd,
        bytesSent: 0,
        bytesReceived: 0,
      }
      const { client, lastMs } = message
      const method = METHODS.indexOf('log')
      const event = { nameStart: 0, nameEnd, client, method, firstMs: lastMs, lastMs, count: 1, ...optional }
      pending.add(view, event, -1, source)
      reads += view.reads
      bytes += text.length
    }
    t.equal(pending.count, 4096)
    t.ok(reads < (PROBES_MAX + 4) * bytes, `${reads} reads of ${bytes} bytes`)
  })
}

t.test('messages are merged into the latest of many events of the same name', async (t) => {
  const pending = new PendingEvents(4096, new EventIds())
  for (let hour = 0; hour < 1000; hour++) {
    for (const minute of [0, 1]) {
      add(pending, { name: 'chatgpt.com', client: '192.0.2.1', lastMs: NOON + hour * 2 * HOUR_MS + minute * MINUTE_MS })
    }
  }
  t.equal(pending.count, 1000)
})
