import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Method } from '../../../collector/decode/name-rows.ts'
import { FULL_DISK_RETRY_MS } from '../../../collector/limits.ts'
import { Aggregate } from '../../../collector/outbox/aggregate.ts'
import { MatchWriter } from '../../../collector/outbox/match-writer.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import { rowOf } from '../../support/match-rows.ts'
import { skipNamespaces } from '../../support/namespace.ts'

const START_MS = Date.UTC(2026, 2, 3)

/** A writer on a real outbox, and its notices. */
function writerOn(directory: string, source: string | undefined, bytesMax = 1e9) {
  const outbox = new Outbox(directory, { bytesMax, ageMsMax: Number.POSITIVE_INFINITY })
  const aggregate = new Aggregate(10_000)
  const notices: string[] = []
  const writer = new MatchWriter(aggregate, () => outbox, {
    source,
    rules: 4,
    onFull: () => notices.push('full'),
    onWritten: () => notices.push('written'),
  })
  const match = (name: string, afterMs = 0, rule = 0) => {
    const view = rowOf({ name, client: '10.0.0.1', method: Method.dns, timeMs: START_MS + afterMs, rule })
    writer.row(view, Buffer.from(view.buffer), 0)
  }
  return { outbox, aggregate, writer, match, notices }
}

/** Controls performance.now(), by which the writer decides what is due, and Date.now(). */
function controlClock(t: Test) {
  let passedMs = 0
  const [startMs, dateMs] = [performance.now(), Date.now()]
  t.intercept(performance, 'now', { value: () => startMs + passedMs })
  t.intercept(Date, 'now', { value: () => dateMs + passedMs })
  return {
    pass(ms: number): void {
      passedMs += ms
    },
  }
}

t.test("a file's events and position are on disk together, including open events", async (t) => {
  const clock = controlClock(t)
  const directory = t.testdir()
  const first = writerOn(directory, 'file')
  first.match('claude.ai')
  first.match('claude.ai', 1000)
  await first.writer.delivered({ framesDone: 7 })
  clock.pass(250)
  first.match('claude.ai', 2000)
  first.match('chatgpt.com', 3000)
  await first.writer.delivered({ framesDone: 9 })
  // Closed without finishing, as after a crash.
  await first.outbox.close()
  const second = new Outbox(directory)
  t.teardown(() => second.close())
  t.equal(second.framesDone('file'), 9)
  t.same(
    second.peek(10, 1e6)?.events.map(({ name, count }) => [name, count]),
    [
      ['claude.ai', 3],
      ['chatgpt.com', 1],
    ],
    'events that were open are closed now',
  )
})

t.test('an open event is not forwarded; when its window closes, it is, with all its matches', async (t) => {
  const clock = controlClock(t)
  const { outbox, writer, match, notices } = writerOn(t.testdir(), undefined)
  t.teardown(() => outbox.close())
  match('claude.ai', 0, 2)
  const opened = performance.now()
  await writer.delivered({ framesDone: 1 })
  t.equal(outbox.waiting, 1, 'on disk')
  t.equal(outbox.peek(10, 1e6), undefined, 'and not forwarded yet')
  match('claude.ai', 5000, 3)
  clock.pass(250)
  await writer.tick(opened + 9_900)
  t.equal(outbox.peek(10, 1e6), undefined)
  clock.pass(250)
  await writer.tick(performance.now() + 10_000)
  t.match(outbox.peek(10, 1e6)?.events, [{ name: 'claude.ai', count: 2, lastSeenMs: START_MS + 5000 }])
  t.equal(notices.at(-1), 'written')
  t.same(writer.matchedRules, [2, 3])
  t.match(writer.matchesByMethod, { dns: 2, tls: 0, quic: 0, tls_inferred: 0 })
  match('chatgpt.com', 20_000)
  await writer.finish()
  t.equal(outbox.peek(10, 1e6)?.events.length, 2)
})

/** A file system of 40 MB. `take` fills part of it. */
function smallDisk(t: Test): { directory: string; take(megabytes: number): void; free(): void } {
  const disk = mkdtempSync(join(tmpdir(), 'small-disk-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=40m', 'tmpfs', disk])
  t.teardown(() => {
    // Lazy unmount, because LMDB may still have its file open.
    execFileSync('umount', ['-l', disk])
    rmSync(disk, { recursive: true })
  })
  const ballast = join(disk, 'ballast')
  return {
    directory: join(disk, 'outbox'),
    take: (megabytes) => writeFileSync(ballast, Buffer.alloc(megabytes * 1024 * 1024)),
    free: () => rmSync(ballast),
  }
}

t.test('a full disk blocks the source, loses nothing, and is logged once', { skip: skipNamespaces }, async (t) => {
  const clock = controlClock(t)
  const disk = smallDisk(t)
  const { outbox, writer, match, notices } = writerOn(disk.directory, 'file')
  disk.take(30)
  // The disk is checked once a second.
  clock.pass(1100)
  match('claude.ai')
  let delivered = false
  const delivering = Promise.resolve(writer.delivered({ framesDone: 1 })).then(() => {
    delivered = true
  })
  clock.pass(1500)
  // After the timer of the writer's retry, which started earlier and is as long.
  await new Promise((resolve) => setTimeout(resolve, FULL_DISK_RETRY_MS))
  t.equal(delivered, false, 'the source waits')
  t.ok(writer.full)
  t.same(notices, ['full'])
  disk.free()
  clock.pass(1100)
  await delivering
  t.notOk(writer.full)
  t.equal(outbox.waiting, 1)
  t.equal(outbox.framesDone('file'), 1)
  await outbox.close()
})

t.test('a writer that is stopped does not wait for space', { skip: skipNamespaces }, async (t) => {
  const clock = controlClock(t)
  const disk = smallDisk(t)
  const { outbox, writer, match } = writerOn(disk.directory, 'file')
  disk.take(30)
  // The disk is checked once a second.
  clock.pass(1100)
  match('claude.ai')
  const delivering = Promise.resolve(writer.delivered({ framesDone: 1 }))
  writer.stop()
  await t.rejects(delivering, { code: 'STORE_FULL' })
  await outbox.close()
})

t.test('an outbox that is too small for its open events loses those, and no later matches', async (t) => {
  const clock = controlClock(t)
  const { outbox, aggregate, writer, match } = writerOn('memory', undefined, 200_000)
  for (let name = 0; name < 10_000; name++) match(`h${name}.claude.ai`)
  await writer.tick(performance.now())
  clock.pass(250)
  await writer.tick(performance.now())
  const dropped = outbox.dropped.full
  t.ok(dropped > 1000, `${dropped} dropped`)
  t.equal(aggregate.events, 10_000)
  // The first event has left, so new matches go into another event.
  for (let times = 0; times < 100; times++) match('h0.claude.ai')
  t.equal(aggregate.events, 10_001)
  await writer.finish()
  const events = []
  for (let waiting = outbox.peek(1000, 1e9); waiting !== undefined; waiting = outbox.peek(1000, 1e9)) {
    events.push(...waiting.events)
    outbox.acknowledge(waiting.lastSequence)
  }
  t.match(
    events.filter(({ name }) => name === 'h0.claude.ai').map(({ count }) => count),
    [100],
  )
  t.equal(events.length + outbox.dropped.full, 10_001)
})

t.test('a clock that is set back blocks nothing', async (t) => {
  const clock = controlClock(t)
  const { outbox, writer, match } = writerOn('memory', undefined)
  match('claude.ai', 3_600_000)
  for (let minute = 0; minute < 50; minute++) match('chatgpt.com', minute * 60_000)
  await writer.tick(performance.now() + 11_000)
  clock.pass(250)
  await writer.tick(performance.now() + 11_000)
  t.equal(
    outbox.peek(100, 1e9)?.events.reduce((sum, { count }) => sum + count, 0),
    51,
  )
})
