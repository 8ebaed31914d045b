import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { SOURCES_MAX } from '../../../collector/limits.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import { OutboxReader } from '../../../collector/outbox/outbox-reader.ts'
import { OutboxLock } from '../../../collector/outbox/outbox-store.ts'
import type { NewEvent } from '../../../collector/outbox/waiting-event.ts'
import { Environment } from '../../../engine/kernel/lmdb/environment.ts'
import * as fc from '../../support/property.ts'

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

t.test('an outbox behaves like an array, and never reuses an ID, even after it was emptied and reopened', async (t) => {
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
          const waiting = outbox.peek(count, 1e9)
          if (waiting !== undefined) outbox.acknowledge(waiting.lastSequence)
          model.splice(0, count)
        } else if (kind === 'give back') {
          outbox.peek(count, 1e9)
          outbox.returnInFlight()
        } else {
          await outbox.close()
          outbox = new Outbox(path)
        }
        t.equal(outbox.waiting, model.length)
        t.equal(outbox.framesDone('file'), all.some((step) => step.kind === 'append') ? made : 0)
        const events = outbox.peek(1000, 1e9)?.events ?? []
        t.same(
          events.map(({ id, ...event }) => {
            t.equal(given.get(id) ?? event.name, event.name, 'an ID belongs to one event')
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
})

t.test(
  'each start is another instance; waiting events keep their IDs, and a restored outbox reuses none',
  async (t) => {
    const directory = t.testdir()
    const [original, copy] = [`${directory}/original`, `${directory}/copy`]
    const idsOf = (outbox: Outbox): string[] => outbox.peek(99, 1e9)?.events.map(({ id }) => id) ?? []
    const first = new Outbox(original)
    first.write({ added: many(1, 2) })
    const [id1, id2] = idsOf(first)
    await first.close()
    cpSync(original, copy, { recursive: true })
    const [second, restored] = [new Outbox(original), new Outbox(copy)]
    second.write({ added: many(3, 1) })
    restored.write({ added: many(4, 1) })
    const [ids, idsOfCopy] = [idsOf(second), idsOf(restored)]
    t.same(ids.slice(0, 2), [id1, id2])
    t.same(idsOfCopy.slice(0, 2), [id1, id2])
    t.not(ids[2], idsOfCopy[2], 'events of two machines')
    second.acknowledge(3)
    await second.close()
    await restored.close()
    const third = new Outbox(original)
    third.write({ added: many(5, 1) })
    const [id4 = ''] = idsOf(third)
    t.equal(Number.parseInt(id4.slice(16), 16), 4, 'sequences continue')
    t.equal(new Set([...ids, ...idsOfCopy, id4].map((id) => id.slice(0, 16))).size, 4)
    await third.close()
  },
)

t.test(
  'events and the position of their file are stored together when the process is killed after a transaction',
  async (t) => {
    const directory = t.testdir()
    const child = fileURLToPath(new URL('../../support/append-to-outbox.js', import.meta.url))
    const environment = { ...process.env, POSTURE_FAULT_POINT: 'outbox:appended' }
    const { signal, stderr } = spawnSync(process.execPath, [child, directory], { env: environment, encoding: 'utf8' })
    t.equal(signal, 'SIGKILL', stderr)
    const outbox = new Outbox(directory)
    t.equal(outbox.waiting, 3)
    t.equal(outbox.framesDone('file'), 100)
    await outbox.close()
  },
)

t.test('a batch is bounded in events and bytes', async (t) => {
  const outbox = new Outbox(t.testdir())
  outbox.write({ added: Array.from({ length: 10 }, (_, index) => eventNumber(index)) })
  t.equal(outbox.peek(4, 1e9)?.events.length, 4)
  t.equal(outbox.peek(10, 1)?.events.length, 1, 'at least one')
  outbox.acknowledge(10)
  t.equal(outbox.peek(10, 1e9), undefined)
  await outbox.close()
})

t.test('a directory that cannot be used is one error line that names --outbox', async (t) => {
  t.throws(() => new Outbox('/proc/outbox'), { code: 'STORE_UNWRITABLE', message: /^--outbox \/proc\/outbox: / })
})

const NO_AGE = Number.POSITIVE_INFINITY
const many = (from: number, count: number) => Array.from({ length: count }, (_, index) => eventNumber(from + index))

for (const where of ['disk', 'memory']) {
  t.test(`on ${where}, the oldest events are dropped and counted at the limit in bytes`, async (t) => {
    const limits = { bytesMax: 256 * 1024, ageMsMax: NO_AGE }
    const directory = where === 'disk' ? t.testdir() : 'memory'
    const outbox = new Outbox(directory, limits)
    t.teardown(() => outbox.close())
    for (let round = 0; round < 200; round++) outbox.write({ added: many(round * 200, 200) })
    t.ok(outbox.footprintBytes <= limits.bytesMax)
    t.ok(outbox.footprintBytes > limits.bytesMax * 0.8, 'and few more than necessary')
    t.equal(outbox.waiting + outbox.dropped.full, 40_000)
    t.equal(outbox.dropped.tooOld, 0)
    t.match(outbox.peek(1, 1e9)?.events, [{ firstSeenMs: outbox.dropped.full }], 'the oldest remaining event')
    if (where === 'memory') return
    const fileBytes = statSync(`${directory}/data.mdb`).size
    // The file preallocates up to 4 MB (engine/kernel/lmdb/free-space.ts).
    t.ok(fileBytes < 2 * limits.bytesMax + 4 * 1024 * 1024, `${fileBytes} bytes on disk`)
  })

  t.test(`on ${where}, events in flight that the limit drops are counted once, with any outcome`, async (t) => {
    for (const arrives of [true, false]) {
      const outbox = new Outbox(where === 'disk' ? `${t.testdir()}/${arrives}` : 'memory', {
        bytesMax: 64 * 1024,
        ageMsMax: NO_AGE,
      })
      outbox.write({ added: many(0, 600) })
      const inFlight = outbox.peek(300, 1e9)
      t.equal(inFlight?.events.length, 300)
      outbox.write({ added: many(600, 1200) })
      t.ok(outbox.footprintBytes <= 64 * 1024)
      const left = 1800 - outbox.waiting - outbox.dropped.full
      t.equal(left, 0, 'each event is waiting, in flight or dropped')
      const droppedBefore = outbox.dropped.full
      if (arrives) {
        outbox.acknowledge(inFlight?.lastSequence ?? 0)
        t.equal(outbox.dropped.full, droppedBefore, 'the event was not lost')
        t.equal(outbox.waiting + outbox.dropped.full + 300, 1800)
      } else {
        outbox.returnInFlight()
        t.equal(outbox.dropped.full, droppedBefore + 300)
        t.equal(outbox.waiting + outbox.dropped.full, 1800)
      }
      await outbox.close()
    }
  })
}

t.test('events that are too old are dropped, but not with a clock that was never set', async (t) => {
  const outbox = new Outbox('memory', { bytesMax: 1e9, ageMsMax: 50 })
  const realNow = Date.now
  t.teardown(() => {
    Date.now = realNow
  })
  const startMs = realNow()
  Date.now = () => startMs
  outbox.write({ added: many(0, 10) })
  outbox.dropExpired()
  t.equal(outbox.waiting, 10)
  Date.now = () => startMs + 51
  outbox.dropExpired()
  t.equal(outbox.waiting, 0)
  t.same(outbox.dropped, { full: 0, tooOld: 10, damaged: 0 })
  Date.now = () => 1000
  outbox.write({ added: many(0, 5) })
  Date.now = realNow
  outbox.dropExpired()
  t.equal(outbox.waiting, 5, 'written in 1970, according to a machine without a clock')
})

t.test('an outbox can be read while a collector uses it', async (t) => {
  const directory = t.testdir()
  const outbox = new Outbox(directory)
  t.teardown(() => outbox.close())
  outbox.write({ added: many(0, 9000) })
  const reader = new OutboxReader(directory)
  t.teardown(() => reader.close())
  t.match(reader.figures, { waiting: 9000, firstSequence: 1, lastSequence: 9000 })
  t.same([...reader.events()], outbox.peek(9000, 1e9)?.events)
  t.equal([...reader.events(7)].length, 7)
  const reading = reader.events()
  reading.next()
  outbox.acknowledge(8990)
  outbox.write({ added: many(9000, 10) })
  const rest = [...reading].map(({ firstSeenMs }) => firstSeenMs)
  t.ok(rest.length < 9000 && rest.at(-1) === 9009, 'reading continues after the removed events')
  t.match(reader.figures, { waiting: 20, firstSequence: 8991, lastSequence: 9010 })
  t.throws(() => new OutboxReader(`${directory}/nothing`), { code: 'NOT_FOUND' })
})

t.test('an outbox of a newer release is rejected', async (t) => {
  const directory = t.testdir()
  await new Environment(directory, { setting: '--outbox', schemaVersion: 2, freeBytesMin: 0 }).close()
  const refused = { code: 'STORE_VERSION', message: /install the newer release/ }
  t.throws(() => new Outbox(directory), refused)
  t.throws(() => new OutboxReader(directory), refused)
})

t.test('a chunk that the disk damaged is counted, and later chunks are read', async (t) => {
  const directory = t.testdir()
  const outbox = new Outbox(directory)
  for (let round = 0; round < 4; round++) outbox.write({ added: many(round * 300, 300) })
  await outbox.close()
  const environment = new Environment(directory, { setting: '--outbox', schemaVersion: 1, freeBytesMin: 0 })
  const table = environment.table('queue')
  const chunks = [...table.getRange({ limit: 8 })].filter(({ key }) => key[0] === 0)
  environment.write(() => {
    for (const at of [0, 3]) {
      const { key, value } = chunks[at] as { key: Buffer; value: Buffer }
      const broken = Buffer.from(value)
      broken[broken.length - 1] = (broken.at(-1) as number) ^ 1
      table.putSync(key, broken)
    }
  })
  await environment.close()
  const again = new Outbox(directory)
  t.teardown(() => again.close())
  const names: number[] = []
  for (let waiting = again.peek(500, 1e9); waiting !== undefined; waiting = again.peek(500, 1e9)) {
    names.push(...waiting.events.map(({ firstSeenMs }) => firstSeenMs))
    again.acknowledge(waiting.lastSequence)
  }
  t.equal(again.dropped.damaged + names.length, 1200)
  t.ok(again.dropped.damaged > 0)
  t.equal(new Set(names).size, names.length)
  again.write({ added: many(0, 1) })
  t.equal(again.peek(9, 1e9)?.events.length, 1)
})

t.test('the number of remembered file positions is bounded', async (t) => {
  const outbox = new Outbox('memory')
  t.teardown(() => outbox.close())
  for (let file = 0; file < SOURCES_MAX + 5; file++) {
    outbox.write({ added: [], position: { source: `file ${String(file).padStart(5, '0')}`, framesDone: file } })
  }
  t.equal(outbox.sources.length, SOURCES_MAX)
  t.equal(outbox.framesDone('file 01004'), 1004)
})

t.test('setting the clock does not age events', async (t) => {
  const directory = t.testdir()
  const day = 86_400_000
  const realNow = Date.now
  let setMs = 0
  Date.now = () => realNow() + setMs
  t.teardown(() => {
    Date.now = realNow
  })
  const limits = { bytesMax: 1e9, ageMsMax: 30 * day }
  // Written with a clock that is 50 days slow and is then corrected.
  setMs = -50 * day
  let outbox = new Outbox(directory, limits)
  outbox.write({ added: many(0, 10) })
  setMs = 0
  outbox.dropExpired()
  t.equal(outbox.waiting, 10)
  outbox.write({ added: many(10, 10) })
  await outbox.close()
  outbox = new Outbox(directory, limits)
  outbox.dropExpired()
  t.equal(outbox.waiting, 20, 'the ages are known after a restart')
  await outbox.close()
  // The clock jumps without a check in between: the time has passed.
  setMs = 40 * day
  outbox = new Outbox(directory, limits)
  t.teardown(() => outbox.close())
  outbox.dropExpired()
  t.equal(outbox.waiting, 0)
  t.equal(outbox.dropped.tooOld, 20)
})

t.test('a record in memory takes little more than its counted size', async (t) => {
  const outbox = new Outbox('memory', { bytesMax: 1e9, ageMsMax: NO_AGE })
  t.teardown(() => outbox.close())
  const before = await heldBytes()
  // One at a time, with other small buffers allocated in between.
  for (let event = 0; event < 30_000; event++) {
    outbox.write({ added: many(event, 1) })
    Buffer.allocUnsafe(3900)
  }
  const usedBytes = (await heldBytes()) - before
  t.ok(usedBytes < 10e6, `${Math.round(usedBytes / 1e6)} MB`)
  t.ok(outbox.footprintBytes < 30_000 * 100, 'a record has several events')
})

/** Memory in use, after several garbage collections. */
async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let step = 0; step < 4; step++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

t.test('an outbox has one collector', async (t) => {
  const directory = t.testdir({ 'a name that is longer than a socket may be called': {} })
  const path = `${directory}/a name that is longer than a socket may be called`
  const first = await OutboxLock.take(path)
  await t.rejects(OutboxLock.take(path), { code: 'STORE_IN_USE', message: /another collector runs on it/ })
  await first.release()
  const second = await OutboxLock.take(path)
  await second.release()
  // State after a crash: the file exists, and no process listens.
  const crashed = spawnSync(process.execPath, ['--input-type=module', '-e', CRASHING(path)], { encoding: 'utf8' })
  t.equal(crashed.signal, 'SIGKILL', crashed.stderr)
  t.ok(existsSync(`${path}/in-use.3.sock`))
  // Two collectors start at the same instant on the crashed one's file. Exactly one takes the lock
  // and keeps it.
  const both = await Promise.allSettled([OutboxLock.take(path), OutboxLock.take(path)])
  t.same(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  await t.rejects(OutboxLock.take(path), { code: 'STORE_IN_USE' })
  for (const each of both) if (each.status === 'fulfilled') await each.value.release()
  t.same(readdirSync(path), ['in-use.4.sock'], 'only the last socket remains')
  await (await OutboxLock.take('memory')).release()
})

const CRASHING = (path: string): string => `
  import { OutboxLock } from ${JSON.stringify(new URL('../../../collector/outbox/outbox-store.js', import.meta.url).href)}
  await OutboxLock.take(${JSON.stringify(path)})
  process.kill(process.pid, 'SIGKILL')`

t.test('the removal of a directory in use is reported', async (t) => {
  const directory = `${t.testdir()}/outbox`
  const outbox = new Outbox(directory)
  outbox.write({ added: many(0, 1) })
  rmSync(directory, { recursive: true })
  // The disk is checked once a second.
  const nextMs = Date.now() + 1100
  t.intercept(Date, 'now', { value: () => nextMs })
  t.throws(() => outbox.write({ added: many(1, 1) }), {
    code: 'STORE_UNWRITABLE',
    message: /^--outbox \S+: the directory was removed$/,
  })
  await outbox.close()
})
