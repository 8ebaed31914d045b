import t from 'tap'
import { Lane } from '../../../engine/ingest/lane.ts'
import { NoticeLimiter, SenderLog } from '../../../engine/ingest/notice-limiter.ts'
import { Origin } from '../../../engine/ingest/origin.ts'
import type { FromLane } from '../../../engine/ingest/thread-protocol.ts'
import { MINUTE_MS, SECOND_MS } from '../../../engine/kernel/process/clock.ts'
import type { Logger } from '../../../engine/kernel/process/log.ts'
import { NOTICES_PER_SECOND_MAX, SENDERS_LOGGED_PER_MINUTE_MAX } from '../../../engine/limits.ts'
import { known, openPipeline, sumsOf } from '../../support/pipeline.ts'
import { NOON } from '../../support/store.ts'

t.test('each sender is reported once a minute, and all senders up to a limit per second', async (t) => {
  const notes = new NoticeLimiter(2, SECOND_MS)
  t.equal(notes.admit('a', NOON), true)
  t.equal(notes.admit('a', NOON), false)
  t.equal(notes.admit('b', NOON + 1), true)
  t.equal(notes.admit('c', NOON + 2), false, 'the third of this second')
  t.equal(notes.skipped, 1)
  t.equal(notes.admit('c', NOON + SECOND_MS), true)
  t.equal(notes.admit('a', NOON + MINUTE_MS - 1), false, 'less than a minute later')
  t.equal(notes.admit('a', NOON + MINUTE_MS), true)
  t.equal(notes.admit('c', NOON + MINUTE_MS), false, 'also across the minute of the clock')
  t.equal(notes.admit('a', NOON + 10 * MINUTE_MS), true)
  t.equal(notes.admit('a', NOON), true, 'a clock that was set back')
})

t.test("the writer's thread gets few notices, whatever unauthenticated senders send", async (t) => {
  const opened = openPipeline(t)
  const reported: FromLane[] = []
  const lane = new Lane({
    store: opened.store,
    known,
    tokenRate: undefined,
    idleMs: 60_000,
    notify: (message) => reported.push(message),
  })
  t.teardown(() => lane.drain(0))
  const datagram = Buffer.from('<13>x')
  const beganMs = Date.now()
  const one = new Origin('udp', '192.0.2.1', 514)
  for (let index = 0; index < 10_000; index++) lane.takeDatagram(datagram, one)
  t.equal(reported.length, 1, 'one notice of the same sender')
  for (let index = 0; index < 10_000; index++) {
    lane.takeDatagram(datagram, new Origin('udp', `10.0.${index >> 8}.${index & 255}`, 514))
  }
  const seconds = Math.ceil((Date.now() - beganMs) / SECOND_MS) + 1
  t.ok(reported.length <= seconds * NOTICES_PER_SECOND_MAX, `${reported.length} are reported`)
  t.match(sumsOf(lane.pipeline), { received: 20_000, known: 20_000 }, 'all are counted')
})

t.test('the log names a hundred senders a minute, and then logs once that there are more', async (t) => {
  const lines: string[] = []
  const log = new SenderLog({ warn: (_what: object, text: string) => lines.push(text) } as unknown as Logger)
  const unauthenticated = { listener: 'udp', port: 514, problem: 'noToken' } as const
  const send = (nowMs: number): void => {
    for (let index = 0; index < 10_000; index++) {
      log.note({ ...unauthenticated, address: `10.${nowMs % 251}.${index >> 8}.${index & 255}` }, nowMs)
    }
  }
  send(NOON)
  t.equal(lines.length, SENDERS_LOGGED_PER_MINUTE_MAX + 1)
  t.match(lines.at(-1), /^more unauthenticated senders are not logged/)
  send(NOON + 30 * SECOND_MS)
  t.equal(lines.length, SENDERS_LOGGED_PER_MINUTE_MAX + 1)
  send(NOON + MINUTE_MS)
  t.equal(lines.length, 2 * (SENDERS_LOGGED_PER_MINUTE_MAX + 1))
})
