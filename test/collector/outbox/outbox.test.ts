import { spawnSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import { OutboxReader } from '../../../collector/outbox/outbox-reader.ts'
import type { NewEvent } from '../../../collector/outbox/waiting-event.ts'
import { eventId, packEvent } from '../../../engine/event.ts'
import { Environment } from '../../../engine/store/environment.ts'
import { sealRecord } from '../../../engine/store/record.ts'

function eventNumber(number: number): NewEvent {
  return {
    name: `h${number}.claude.ai`,
    client: '10.0.0.1',
    method: 'dns',
    firstSeenMs: number,
    lastSeenMs: number,
    count: 1,
  }
}

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('append' as const), count: fc.integer({ min: 0, max: 4 }) }),
    fc.record({ kind: fc.constant('acknowledge' as const), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant('give back' as const), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant('reopen' as const), count: fc.constant(0) }),
  ),
  { maxLength: 20 },
)

t.test(
  'an outbox does what a plain array does; ids are given once, also after it was empty and reopened',
  async (t) => {
    const directory = t.testdir()
    let run = 0
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const path = `${directory}/${run++}`
        let outbox = new Outbox(path)
        const model: NewEvent[] = []
        const given = new Map<string, string>()
        let made = 0
        for (const { kind, count } of all) {
          if (kind === 'append') {
            const events = Array.from({ length: count }, () => eventNumber(++made))
            outbox.write({ added: events, position: { source: 'file', framesDone: made } })
            model.push(...events)
          } else if (kind === 'acknowledge') {
            const waiting = outbox.lend(count, 1e9)
            if (waiting !== undefined) outbox.acknowledge(waiting.lastSequence)
            model.splice(0, count)
          } else if (kind === 'give back') {
            outbox.lend(count, 1e9)
            outbox.giveBack()
          } else {
            await outbox.close()
            outbox = new Outbox(path)
          }
          t.equal(outbox.waiting, model.length)
          t.equal(outbox.framesDone('file'), all.some((step) => step.kind === 'append') ? made : 0)
          const events = outbox.lend(1000, 1e9)?.events ?? []
          t.same(
            events.map(({ id, ...event }) => {
              t.equal(given.get(id) ?? event.name, event.name, 'an id is of one event')
              given.set(id, event.name)
              return event
            }),
            model,
          )
        }
        await outbox.close()
      }),
      { numRuns: 20 },
    )
  },
)

t.test('two outboxes give different ids; one keeps its instance', async (t) => {
  const idsOf = async (path: string): Promise<string> => {
    const outbox = new Outbox(path)
    outbox.write({ added: [eventNumber(1)] })
    const id = outbox.lend(1, 1)?.events[0]?.id ?? ''
    outbox.acknowledge(outbox.lend(1, 1)?.lastSequence ?? 0)
    await outbox.close()
    return id
  }
  const [a, b] = [t.testdir({ a: {}, b: {} }), 'x'].map((path, index) =>
    index === 0 ? `${path}/a` : `${t.testdirName}/b`,
  )
  const first = await idsOf(a ?? '')
  t.not((await idsOf(b ?? '')).slice(0, 16), first.slice(0, 16))
  const second = await idsOf(a ?? '')
  t.equal(second.slice(0, 16), first.slice(0, 16))
  t.equal(Number.parseInt(second.slice(16), 16), 2)
})

t.test('killed behind a transaction: events and the position of their file are there together', async (t) => {
  const directory = t.testdir()
  const child = fileURLToPath(new URL('../../support/append-to-outbox.js', import.meta.url))
  const environment = { ...process.env, POSTURE_FAULT_POINT: 'outbox:appended' }
  const { signal, stderr } = spawnSync(process.execPath, [child, directory], { env: environment, encoding: 'utf8' })
  t.equal(signal, 'SIGKILL', stderr)
  const outbox = new Outbox(directory)
  t.equal(outbox.waiting, 3)
  t.equal(outbox.framesDone('file'), 100)
  await outbox.close()
})

t.test('a batch is bounded in events and bytes', async (t) => {
  const outbox = new Outbox(t.testdir())
  outbox.write({ added: Array.from({ length: 10 }, (_, index) => eventNumber(index)) })
  t.equal(outbox.lend(4, 1e9)?.events.length, 4)
  t.equal(outbox.lend(10, 1)?.events.length, 1, 'one at least')
  outbox.acknowledge(10)
  t.equal(outbox.lend(10, 1e9), undefined)
  await outbox.close()
})

t.test('a directory that cannot be used is one line that names --outbox', async (t) => {
  t.throws(() => new Outbox('/proc/outbox'), { code: 'STORE_UNWRITABLE', message: /^--outbox \/proc\/outbox: / })
})

const NO_AGE = Number.POSITIVE_INFINITY
const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => eventNumber(from + index))

for (const where of ['disk', 'memory']) {
  t.test(`on ${where}: at the limit in bytes the oldest go first, and are counted`, async (t) => {
    const limits = { bytesMax: 256 * 1024, ageMsMax: NO_AGE }
    const directory = where === 'disk' ? t.testdir() : 'memory'
    const outbox = new Outbox(directory, limits)
    t.teardown(() => outbox.close())
    for (let round = 0; round < 200; round++) outbox.write({ added: many(round * 200, 200) })
    t.ok(outbox.footprintBytes <= limits.bytesMax)
    t.ok(outbox.footprintBytes > limits.bytesMax * 0.8, 'and not many more than need be')
    t.equal(outbox.waiting + outbox.dropped.full, 40_000)
    t.equal(outbox.dropped.tooOld, 0)
    t.match(outbox.lend(1, 1e9)?.events, [{ firstSeenMs: outbox.dropped.full }], 'the oldest that is left')
    if (where === 'memory') return
    const fileBytes = statSync(`${directory}/data.mdb`).size
    t.ok(fileBytes < 2 * limits.bytesMax, `${fileBytes} bytes on disk`)
  })

  t.test(`on ${where}: what is lent and leaves by the limit is counted once, whichever way it ends`, async (t) => {
    for (const arrives of [true, false]) {
      const outbox = new Outbox(where === 'disk' ? `${t.testdir()}/${arrives}` : 'memory', {
        bytesMax: 64 * 1024,
        ageMsMax: NO_AGE,
      })
      outbox.write({ added: many(0, 600) })
      const lent = outbox.lend(300, 1e9)
      t.equal(lent?.events.length, 300)
      outbox.write({ added: many(600, 1200) })
      t.ok(outbox.footprintBytes <= 64 * 1024)
      const left = 1800 - outbox.waiting - outbox.dropped.full
      t.equal(left, 0, 'each is in one place')
      const droppedBefore = outbox.dropped.full
      if (arrives) {
        outbox.acknowledge(lent?.lastSequence ?? 0)
        t.equal(outbox.dropped.full, droppedBefore, 'it was not lost')
        t.equal(outbox.waiting + outbox.dropped.full + 300, 1800)
      } else {
        outbox.giveBack()
        t.equal(outbox.dropped.full, droppedBefore + 300)
        t.equal(outbox.waiting + outbox.dropped.full, 1800)
      }
      await outbox.close()
    }
  })
}

t.test('what is too old goes, but not on a clock that was never set', async (t) => {
  const outbox = new Outbox('memory', { bytesMax: 1e9, ageMsMax: 50 })
  outbox.write({ added: many(0, 10) })
  outbox.dropExpired()
  t.equal(outbox.waiting, 10)
  await new Promise((resolve) => setTimeout(resolve, 80))
  outbox.dropExpired()
  t.equal(outbox.waiting, 0)
  t.same(outbox.dropped, { full: 0, tooOld: 10 })
  const realNow = Date.now
  t.teardown(() => {
    Date.now = realNow
  })
  Date.now = () => 1000
  outbox.write({ added: many(0, 5) })
  Date.now = realNow
  outbox.dropExpired()
  t.equal(outbox.waiting, 5, 'written in 1970, as a machine without a clock says')
})

t.test('an outbox can be looked into beside the one who runs on it', async (t) => {
  const directory = t.testdir()
  const outbox = new Outbox(directory)
  t.teardown(() => outbox.close())
  outbox.write({ added: many(0, 9000) })
  const reader = new OutboxReader(directory)
  t.teardown(() => reader.close())
  t.match(reader.figures, { waiting: 9000, firstSequence: 1, lastSequence: 9000 })
  t.same([...reader.events()], outbox.lend(9000, 1e9)?.events)
  t.equal([...reader.events(7)].length, 7)
  const reading = reader.events()
  reading.next()
  outbox.acknowledge(8990)
  outbox.write({ added: many(9000, 10) })
  const rest = [...reading].map(({ firstSeenMs }) => firstSeenMs)
  t.ok(rest.length < 9000 && rest.at(-1) === 9009, 'goes on behind what has left')
  t.match(reader.figures, { waiting: 20, firstSequence: 8991, lastSequence: 9010 })
  t.throws(() => new OutboxReader(`${directory}/nothing`), { code: 'NOT_FOUND' })
})

t.test('events of an earlier release wait on, under the ids that they had', async (t) => {
  const directory = t.testdir()
  const options = { setting: '--outbox', schemaVersion: 1, freeBytesMin: 0 }
  const earlier = new Environment(directory, options)
  const instance = '00112233445566ff'
  const old = [1, 2, 3].map((number) => ({ ...eventNumber(number), id: eventId(instance, number) }))
  const u64 = (value: number): Buffer => Buffer.from(value.toString(16).padStart(16, '0'), 'hex')
  earlier.write(() => {
    earlier.table('state').putSync(Buffer.from('instance'), sealRecord(1, Buffer.from(instance, 'hex')))
    for (const event of old) {
      earlier.table('queue').putSync(u64(Number.parseInt(event.id.slice(16), 16)), sealRecord(1, packEvent(event)))
    }
    earlier.table('queue').putSync(Buffer.alloc(8, 0xff), u64(4))
  })
  await earlier.close()
  const outbox = new Outbox(directory)
  outbox.write({ added: [eventNumber(4)] })
  t.same(outbox.lend(9, 1e9)?.events, [...old, { ...eventNumber(4), id: eventId(instance, 4) }])
  await outbox.close()
  t.throws(() => new Environment(directory, options), { code: 'STORE_VERSION', message: /install the newer release/ })
})
