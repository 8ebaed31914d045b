import t, { type Test } from 'tap'
import { CoverageReporter } from '../../../collector/forward/coverage-reporter.ts'
import { DecidingSource } from '../../../collector/forward/event-source.ts'
import { ForwardLoop, type ForwardOptions } from '../../../collector/forward/forward-loop.ts'
import type { Forwarder, Outcome } from '../../../collector/forward/forwarder.ts'
import { COVERAGE_LAST_MS } from '../../../collector/limits.ts'
import { Outbox } from '../../../collector/outbox/outbox.ts'
import type { CoverageReport } from '../../../engine/kernel/event/coverage-report.ts'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { INTERNAL_ERROR } from '../../../engine/kernel/process/failure.ts'
import { capturedLog } from '../../support/captured-log.ts'
import { counters, INSTANCE } from '../../support/coverage.ts'
import { quietLog } from '../../support/store.ts'
import { PROMPT_MS, until } from '../../support/wait.ts'

function outboxOf(t: Test, count: number): Outbox {
  const outbox = new Outbox(t.testdir())
  t.teardown(() => outbox.close())
  outbox.write({
    added: Array.from({ length: count }, (_, index) => ({
      name: `h${index}.claude.ai`,
      client: '10.0.0.1',
      method: 'dns' as const,
      firstSeenMs: index,
      lastSeenMs: index,
      count: 1,
    })),
  })
  return outbox
}

type Answer = (events: readonly Event[], call: number, coverage: CoverageReport | undefined) => Outcome

/** A forwarder with scripted outcomes. Records the events that it accepts. */
class RecordingForwarder implements Forwarder {
  alive = true
  readonly accepted: string[] = []
  /** The batches received: number of events, and the report's packet count. */
  readonly batches: [events: number, packets: number | undefined][] = []
  calls = 0
  readonly #answer: Answer

  constructor(answer: Answer) {
    this.#answer = answer
  }

  async send(events: readonly Event[], coverage?: CoverageReport): Promise<Outcome> {
    this.batches.push([events.length, coverage?.counters.packets])
    const outcome = this.#answer(events, ++this.calls, coverage)
    if (outcome.kind === 'accepted') this.accepted.push(...events.map(({ name }) => name))
    return outcome
  }

  async close(): Promise<void> {}
}

const ACCEPTED: Outcome = { kind: 'accepted', duplicates: 0, outsideDedupWindow: 0, rejected: [] }

const BATCH = { events: 2000, bytes: 1e6, lingerMs: 20 }

function loopOn(outbox: Outbox, forwarder: Forwarder, more: Partial<ForwardOptions> = {}): ForwardLoop {
  return new ForwardLoop({ source: new DecidingSource(outbox), forwarder, log: quietLog, batch: BATCH, ...more })
}

async function runToEnd(outbox: Outbox, forwarder: Forwarder, reporter?: CoverageReporter): Promise<ForwardLoop> {
  const loop = loopOn(outbox, forwarder)
  loop.finish()
  t.same(await loop.run(reporter), { kind: 'stopped' })
  return loop
}

/** A reporter with seven packets to report, due at once, and nothing after them. */
function reporterOf(options: { readonly everyMs?: number } = {}): CoverageReporter {
  const count = () => counters({ packets: 7 })
  return new CoverageReporter({ instance: INSTANCE, counters: count, log: quietLog, firstMs: 0, ...options })
}

function finished(reporter: CoverageReporter): CoverageReporter {
  reporter.finish()
  return reporter
}

t.test('all events are sent in order, and leave the outbox only when accepted', async (t) => {
  const outbox = outboxOf(t, 5000)
  const forwarder = new RecordingForwarder(() => {
    t.ok(outbox.waiting > 0)
    return ACCEPTED
  })
  const { counters } = await runToEnd(outbox, forwarder)
  t.same(
    forwarder.accepted,
    Array.from({ length: 5000 }, (_, index) => `h${index}.claude.ai`),
  )
  t.match(counters, { acknowledged: 5000, refused: 0, batches: 3 })
  t.equal(outbox.waiting, 0)
})

t.test('a batch that fails temporarily is sent again unchanged', async (t) => {
  const outbox = outboxOf(t, 3)
  const forwarder = new RecordingForwarder((_, call) => (call < 3 ? { kind: 'retry', why: 'not now' } : ACCEPTED))
  const { counters } = await runToEnd(outbox, forwarder)
  t.match(counters, { acknowledged: 3, retries: 2 })
})

t.test('an internal error is logged with its stack, loses no event, and is retried', async (t) => {
  const outbox = outboxOf(t, 3)
  const bug = new TypeError('x is not a function')
  const forwarder = new RecordingForwarder((_, call) => {
    if (call === 1) throw bug
    return ACCEPTED
  })
  const { log, entries } = capturedLog()
  const loop = loopOn(outbox, forwarder, { log })
  loop.finish()
  t.same(await loop.run(), { kind: 'stopped' })
  t.match(loop.counters, { acknowledged: 3, retries: 1 })
  t.match(entries, [
    { level: 50, err: { type: 'TypeError', message: bug.message, stack: bug.stack } },
    { level: 40, why: INTERNAL_ERROR },
  ])
})

t.test('a batch with one rejected event does not block later events', async (t) => {
  const outbox = outboxOf(t, 100)
  const forwarder = new RecordingForwarder((events) =>
    events.some(({ name }) => name === 'h42.claude.ai') ? { kind: 'refused', why: '400' } : ACCEPTED,
  )
  const { counters } = await runToEnd(outbox, forwarder)
  t.match(counters, { acknowledged: 99, refused: 1 })
  t.equal(forwarder.accepted.length, 99)
  t.ok(forwarder.calls < 30, `${forwarder.calls} tries`)
})

t.test('a gateway that limits the size gets small batches, and one that accepts none loses no event', async (t) => {
  const outbox = outboxOf(t, 100)
  const small = new RecordingForwarder((events) =>
    events.length > 10 ? { kind: 'notPassed', why: '413 of a gateway' } : ACCEPTED,
  )
  t.match((await runToEnd(outbox, small)).counters, { acknowledged: 100, refused: 0 })

  const kept = outboxOf(t, 3)
  const none = new RecordingForwarder((_, call) =>
    call < 6 ? { kind: 'notPassed', why: '400 of a gateway' } : ACCEPTED,
  )
  t.match((await runToEnd(kept, none)).counters, { acknowledged: 3, refused: 0 })
})

t.test('a forwarder that refuses every event gets all of them again', async (t) => {
  const outbox = outboxOf(t, 4)
  const refusing = new RecordingForwarder((_, call) => (call < 9 ? { kind: 'refused', why: '400' } : ACCEPTED))
  t.match((await runToEnd(outbox, refusing)).counters, { acknowledged: 4, refused: 0 })
})

t.test('a loop stopped during a hanging send does not retry', async (t) => {
  const outbox = outboxOf(t, 4)
  let answer: (outcome: Outcome) => void = () => {}
  let calls = 0
  const forwarder: Forwarder = {
    alive: true,
    send: () => {
      const failed: Outcome = { kind: 'retry', why: 'x' }
      if (++calls < 3) return Promise.resolve(failed)
      return new Promise((resolve) => {
        answer = resolve
      })
    },
    close: async () => {},
  }
  const loop = loopOn(outbox, forwarder)
  const running = loop.run()
  await until('the third try', () => calls === 3)
  loop.stop()
  const before = performance.now()
  answer({ kind: 'retry', why: 'cut', afterMs: 60_000 })
  await running
  t.ok(performance.now() - before < PROMPT_MS)
})

t.test('events that the service rejects count as refused, not as acknowledged', async (t) => {
  const outbox = outboxOf(t, 10)
  const { counters } = await runToEnd(
    outbox,
    new RecordingForwarder(() => ({
      kind: 'accepted',
      duplicates: 2,
      outsideDedupWindow: 1,
      rejected: ['a', 'b', 'c'],
    })),
  )
  t.match(counters, { acknowledged: 7, duplicates: 2, outsideDedupWindow: 1, refused: 3 })
})

t.test('an invalid token ends the loop, and the events stay in the outbox', async (t) => {
  const outbox = outboxOf(t, 10)
  const loop = loopOn(outbox, new RecordingForwarder(() => ({ kind: 'unauthorized', why: '401' })))
  t.same(await loop.run(), { kind: 'unauthorized', why: '401' })
  t.equal(outbox.waiting, 10)
})

t.test('a loop stopped during a backoff ends at once', async (t) => {
  const outbox = outboxOf(t, 10)
  const loop = loopOn(outbox, new RecordingForwarder(() => ({ kind: 'retry', why: 'x', afterMs: 60_000 })))
  const running = loop.run()
  await until('its first try', () => loop.state.problem === 'x')
  const before = performance.now()
  loop.stop()
  t.same(await running, { kind: 'stopped' })
  t.ok(performance.now() - before < PROMPT_MS)
  t.equal(outbox.waiting, 10)
})

t.test('a missing answer shows as no connection long before the send fails', async (t) => {
  const outbox = outboxOf(t, 1)
  let answer: (outcome: Outcome) => void = () => {}
  let calls = 0
  const forwarder: Forwarder = {
    alive: true,
    send: () =>
      new Promise<Outcome>((resolve) => {
        calls++
        answer = resolve
      }),
    close: async () => {},
  }
  const loop = loopOn(outbox, forwarder)
  const running = loop.run()
  await until('the first send', () => calls === 1)
  answer(ACCEPTED)
  await until('its answer', () => loop.state.connected)
  const { sinceMs } = loop.state
  outbox.write({
    added: [{ name: 'a.claude.ai', client: '10.0.0.1', method: 'dns', firstSeenMs: 1, lastSeenMs: 1, count: 1 }],
  })
  loop.poll()
  await until('the second send', () => calls === 2)
  t.equal(loop.state.connected, true)
  await until('it counts as none', () => !loop.state.connected)
  t.match(loop.state, { connected: false, problem: /^no answer for \d+ s$/, sinceMs })
  answer({ kind: 'retry', why: 'reset' })
  await until('the answer', () => loop.state.problem === 'reset')
  t.match(loop.state, { connected: false, problem: 'reset', sinceMs }, 'since the last answer')
  loop.stop()
  answer(ACCEPTED)
  await running
})

t.test('an event that is refused after the limit dropped it is counted once', async (t) => {
  const outbox = new Outbox('memory', { bytesMax: 20_000, ageMsMax: Number.POSITIVE_INFINITY })
  t.teardown(() => outbox.close())
  let made = 0
  const write = (count: number): void => {
    const added = Array.from({ length: count }, () => ({
      ...{ name: `h${made++}.claude.ai`, client: '10.0.0.1', method: 'dns' as const },
      ...{ firstSeenMs: made, lastSeenMs: made, count: 1 },
    }))
    outbox.write({ added })
  }
  write(1)
  const forwarder = new RecordingForwarder((events) => {
    if (events.length > 0)
      return events.some(({ name }) => name === 'h0.claude.ai') ? { kind: 'refused', why: '400' } : ACCEPTED
    // Many events are written while the loop waits for the outcome.
    if (made === 1) for (let round = 0; round < 10; round++) write(100)
    return ACCEPTED
  })
  const { counters } = await runToEnd(outbox, forwarder)
  t.equal(counters.acknowledged + counters.refused + outbox.dropped.full + outbox.waiting, made)
  t.equal(counters.refused, 1)
  t.ok(outbox.dropped.full > 0)
})

const REPORTS: readonly { name: string; events: number; answer: Answer; batches: [number, number | undefined][] }[] = [
  { name: 'is sent with the events', events: 3, answer: () => ACCEPTED, batches: [[3, 7]] },
  { name: 'is sent alone if there are no events', events: 0, answer: () => ACCEPTED, batches: [[0, 7]] },
  {
    name: 'is sent alone after its events have failed',
    events: 3,
    answer: (_events, call) => (call === 1 ? { kind: 'retry', why: 'busy' } : ACCEPTED),
    batches: [
      [3, 7],
      [3, undefined],
      [0, 7],
    ],
  },
  {
    name: 'is retried when sent alone',
    events: 0,
    answer: (_events, call) => (call < 3 ? { kind: 'retry', why: 'busy' } : ACCEPTED),
    batches: [
      [0, 7],
      [0, 7],
      [0, 7],
    ],
  },
  {
    name: 'is not sent again when the service rejects it, and costs no event',
    events: 1,
    answer: (_events, _call, coverage) => (coverage ? { ...ACCEPTED, coverageError: 'malformed' } : ACCEPTED),
    batches: [
      [1, 7],
      [0, 7],
    ],
  },
  {
    name: 'costs no event when its batch is refused',
    events: 1,
    answer: (_events, _call, coverage) => (coverage ? { kind: 'refused', why: '400' } : ACCEPTED),
    batches: [
      [1, 7],
      [1, undefined],
      [0, 7],
    ],
  },
  {
    name: 'costs no event when a gateway does not pass it',
    events: 1,
    answer: (_events, _call, coverage) => (coverage ? { kind: 'notPassed', why: '413' } : ACCEPTED),
    batches: [
      [1, 7],
      [1, undefined],
      [0, 7],
    ],
  },
]
for (const { name, events, answer, batches } of REPORTS) {
  t.test(`the last report ${name}`, async (t) => {
    const outbox = outboxOf(t, events)
    const forwarder = new RecordingForwarder(answer)
    const loop = await runToEnd(outbox, forwarder, finished(reporterOf()))
    t.same(forwarder.batches, batches)
    t.match(loop.counters, { acknowledged: events, refused: 0 })
    t.equal(outbox.waiting, 0)
  })
}

t.test('a due report is sent alone if no events wait, and with them otherwise', async (t) => {
  const outbox = outboxOf(t, 0)
  let packets = 1
  const count = () => counters({ packets })
  const reporter = new CoverageReporter({ instance: INSTANCE, counters: count, log: quietLog, firstMs: 0, everyMs: 1 })
  const forwarder = new RecordingForwarder(() => ACCEPTED)
  const loop = loopOn(outbox, forwarder)
  const running = loop.run(reporter)
  await until('the connection', () => loop.state.connected)
  t.equal(forwarder.calls, 1)
  outbox.write({
    added: [{ name: 'a.claude.ai', client: '10.0.0.1', method: 'dns', firstSeenMs: 1, lastSeenMs: 1, count: 1 }],
  })
  packets = 2
  loop.poll()
  await until('an empty outbox', () => outbox.waiting === 0)
  t.same(forwarder.batches, [
    [0, 1],
    [1, 2],
  ])
  t.same(reporter.counts, { sent: 2, failed: 0 })
  loop.stop()
  await running
})

t.test('an unknown token ends the run even if only a report was sent', async (t) => {
  const refusing = () => new RecordingForwarder(() => ({ kind: 'unauthorized', why: '401' }))
  t.same(await loopOn(outboxOf(t, 0), refusing()).run(reporterOf()), { kind: 'unauthorized', why: '401' })
  const ending = loopOn(outboxOf(t, 0), refusing())
  ending.finish()
  t.same(await ending.run(finished(reporterOf())), { kind: 'unauthorized', why: '401' })
})

t.test('the end waits for a hanging service for a limited time, and not at all once stopped', async (t) => {
  const hanging: Forwarder = { alive: true, send: () => new Promise(() => {}), close: async () => {} }
  const startMs = performance.now()
  await runToEnd(outboxOf(t, 0), hanging, finished(reporterOf()))
  const tookMs = performance.now() - startMs
  t.ok(tookMs >= COVERAGE_LAST_MS - 50 && tookMs < PROMPT_MS, `${tookMs} ms`)
  const later: Forwarder = { ...hanging, send: async () => ({ kind: 'retry', why: 'busy', afterMs: 60_000 }) }
  const loop = loopOn(outboxOf(t, 0), later)
  loop.finish()
  const running = loop.run(finished(reporterOf()))
  await until('the refusal', () => loop.state.problem === 'busy')
  loop.stop()
  t.same(await running, { kind: 'stopped' })
})
