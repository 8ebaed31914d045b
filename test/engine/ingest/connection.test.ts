import t, { type Test } from 'tap'
import { type CloseReason, Connection, type Peer, WORK_BYTES } from '../../../engine/ingest/connection.ts'
import { MessagePipeline } from '../../../engine/ingest/message-pipeline.ts'
import { Origin } from '../../../engine/ingest/origin.ts'
import { ReadBudget } from '../../../engine/ingest/read-budget.ts'
import { MESSAGE_BYTES_MAX, SYSLOG_UNAUTHENTICATED_BYTES_MAX } from '../../../engine/limits.ts'
import { known, openPipeline } from '../../support/pipeline.ts'

const BYTES_MAX = 1024 * 1024

/**
 * Connections of two organizations. The socket records its calls. An organization may have no
 * space.
 */
function lane(t: Test, bytesMax = BYTES_MAX) {
  const opened = openPipeline(t)
  const full = new Set<string>()
  const taken: string[] = []
  const pipeline = new MessagePipeline(new Uint8Array(WORK_BYTES), known, opened.authenticator, {
    tokenRate: undefined,
    noteUnauthorized: () => {},
  })
  // The first letter of a message is its organization. `?` has none.
  pipeline.take = (start, end, origin) => {
    const text = pipeline.line.text(start, end)
    const who = text.charAt(0)
    if (who !== '?') {
      const owner = { organizationId: who, tokenId: who, label: who }
      origin.source = pipeline.sources.get(owner, 'tcp', origin.address, '')
    }
    if (full.has(who)) return 'full'
    taken.push(text)
    return who === '?' ? 'unauthorized' : 'unmatched'
  }
  const connections = new Set<Connection>()
  const budget = new ReadBudget(connections, bytesMax)
  const open = () => {
    const state: { reads: boolean; closed: CloseReason | '' } = { reads: true, closed: '' }
    const peer: Peer = {
      pause: () => {
        state.reads = false
      },
      resume: () => {
        state.reads = true
      },
      close: (why) => {
        state.closed = why
      },
      noteToken: () => {},
    }
    const connection = new Connection(peer, new Origin('tcp', '192.0.2.1', 514), pipeline, budget, () => {})
    connections.add(connection)
    connection.ended.then(() => connections.delete(connection))
    const send = (text: string): void => connection.data(Buffer.from(text))
    return { connection, state, send }
  }
  const resume = (): void => {
    for (const connection of connections) if (connection.stalled) connection.resume()
    budget.releaseHold()
  }
  return { open, budget, full, taken, resume, opened }
}

t.test('a long message releases its space', async (t) => {
  const { open, budget, taken } = lane(t)
  const { connection, send } = open()
  for (let round = 0; round < 3; round++) {
    send(`a${'x'.repeat(60_000)}`)
    t.ok(budget.waitingBytes >= 60_000)
    send('y\na')
    t.ok(budget.waitingBytes <= 4096, `${budget.waitingBytes} bytes are kept`)
    send('\n')
  }
  t.equal(taken.length, 6)
  connection.close()
  t.equal(budget.waitingBytes, 0)
  t.equal(budget.unauthenticatedBytes, 0)
})

t.test('unauthenticated senders in the middle of a message do not close authenticated connections', async (t) => {
  const { open, budget, taken } = lane(t)
  const good = open()
  good.send('a\na')
  const unauthenticated = Array.from({ length: 100 }, () => open())
  for (const sender of unauthenticated) sender.send(`?\n?${'x'.repeat(60_000)}`)
  const left = unauthenticated.filter(({ state }) => state.closed === '')
  t.ok(left.length < 10, `${left.length} of them are left`)
  t.ok(budget.waitingBytes <= BYTES_MAX / 2)
  const small = open()
  small.send(`a${'x'.repeat(SYSLOG_UNAUTHENTICATED_BYTES_MAX - 100)}`)
  t.equal(small.state.closed, '', 'a connection with few bytes is accepted meanwhile')
  small.send('\n')
  small.send(`a${'x'.repeat(60_000)}\n`)
  good.send(`${'x'.repeat(60_000)}\n`)
  t.match([small.state.closed, good.state.closed], ['', ''])
  t.equal(taken.filter((text) => text.startsWith('a')).length, 4)
})

t.test('while an organization has no space, its connections wait in bounded memory, and none is closed', async (t) => {
  const { open, budget, full, taken, resume } = lane(t)
  const others = [open(), open()]
  for (const { send } of others) send('b\n')
  const senders = Array.from({ length: 100 }, () => open())
  for (const { send } of senders) send('a\n')
  full.add('a')
  const CHUNK = `a${'x'.repeat(30_000)}\n`.repeat(2)
  let most = 0
  let sent = 0
  for (let round = 0; round < 100; round++) {
    for (const { state, send } of senders) {
      if (!state.reads) continue
      send(CHUNK)
      sent += 2
      most = Math.max(most, budget.waitingBytes)
    }
  }
  t.ok(most <= BYTES_MAX, `${most} bytes wait`)
  t.ok(sent < 40, `${sent} messages were read`)
  t.ok(senders.every(({ state }) => !state.reads))
  t.ok(
    others.every(({ state }) => state.reads),
    'others are read',
  )
  const late = open()
  late.send('a')
  late.send('\n')
  t.equal(late.state.reads, false, 'a new connection waits, too')
  for (const { connection } of senders) t.equal(connection.overdue(Date.now() + 1e6, 1, 1, 1), undefined)
  full.clear()
  resume()
  t.ok(senders.every(({ state }) => state.reads && state.closed === ''))
  t.equal(taken.filter((text) => text.length > 1).length, sent, 'none is lost')
  for (const { connection } of senders) connection.close()
  t.ok(budget.waitingBytes <= 4096)
})

t.test('messages after one without space are read in order, in any chunks', async (t) => {
  const { open, budget, full, taken, resume } = lane(t)
  const { connection, send } = open()
  full.add('a')
  const messages = Array.from({ length: 200 }, (_, index) => `a${index}${'x'.repeat((index * 37) % 2000)}`)
  const bytes = `${messages.join('\n')}\n`
  for (let at = 0; at < bytes.length; at += 777) send(bytes.slice(at, at + 777))
  t.same(taken, [])
  t.ok(budget.waitingBytes >= bytes.length, 'every message is counted')
  resume()
  t.same(taken, [])
  full.clear()
  resume()
  t.same(taken, messages)
  connection.close()
  t.equal(budget.waitingBytes, 0)
})

t.test('when all memory is full, the connection that holds the most is closed', async (t) => {
  const { open, budget } = lane(t)
  const small = open()
  small.send(`a\na${'x'.repeat(1000)}`)
  const large = Array.from({ length: 30 }, () => open())
  for (const { send } of large) send(`a\na${'x'.repeat(MESSAGE_BYTES_MAX - 100)}`)
  t.ok(budget.waitingBytes <= BYTES_MAX)
  t.equal(small.state.closed, '')
  t.ok(large.filter(({ state }) => state.closed === 'limit').length >= 14)
})

type Lifecycle = readonly [
  /** The steps in order: bytes sent, or an event. */
  happens: readonly (`send ${string}` | 'end' | 'close' | 'full' | 'room' | 'destroy')[],
  taken: readonly string[],
  closed: CloseReason | '',
  /** Whether all state of the connection has been released. */
  isOver: boolean,
]

const LIFECYCLES: Readonly<Record<string, Lifecycle>> = {
  open: [['send a1\na2'], ['a1'], '', false],
  'the last message lacks its delimiter': [['send a1\na2', 'end'], ['a1', 'a2'], '', false],
  'ended and closed': [['send a1\na2', 'end', 'close'], ['a1', 'a2'], '', true],
  'closed without an end': [['send a1\na2', 'close'], ['a1'], '', true],
  'ended while there is no space': [['full', 'send a1\na2', 'end', 'close', 'room'], ['a1', 'a2'], '', true],
  'ended, and still no space': [['full', 'send a1\na2', 'end', 'close'], [], '', false],
  'no space for the last message only': [['send a1\na2', 'full', 'end', 'close', 'room'], ['a1', 'a2'], '', true],
  'closed without an end while there is no space': [['full', 'send a1\na2', 'close', 'room'], ['a1'], '', true],
  'destroyed while there is no space': [['full', 'send a1\n', 'destroy', 'room', 'send a2\n'], [], 'idle', false],
  'destroyed, then closed': [['destroy', 'send a1\n', 'end', 'close'], [], 'idle', true],
  'closed while there is no space, then destroyed': [
    ['full', 'send a1\n', 'end', 'close', 'destroy'],
    [],
    'idle',
    true,
  ],
  'a wrong count in data that waited after the close': [
    ['full', 'send 5 <1>b15 <1>b2x', 'end', 'close', 'room'],
    ['<1>b1'],
    '',
    true,
  ],
}

for (const [name, [happens, taken, closed, isOver]] of Object.entries(LIFECYCLES)) {
  t.test(`connection lifecycle: ${name}`, async (t) => {
    const site = lane(t)
    const { connection, state, send } = site.open()
    let ended = false
    void connection.ended.then(() => {
      ended = true
    })
    for (const event of happens) {
      if (event === 'end') connection.end()
      else if (event === 'close') connection.close()
      else if (event === 'destroy') connection.destroy('idle')
      else if (event === 'full') for (const who of 'a<') site.full.add(who)
      else if (event === 'room') {
        site.full.clear()
        site.resume()
      } else send(event.slice('send '.length))
    }
    await Promise.resolve()
    t.same(site.taken, taken)
    t.equal(state.closed, closed)
    t.equal(ended, isOver)
    if (isOver) t.equal(site.budget.waitingBytes, 0)
  })
}
