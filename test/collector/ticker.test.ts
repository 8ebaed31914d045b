import t from 'tap'
import { COLLECTOR_QUIET_TICK_MS, COLLECTOR_TICK_MS } from '../../collector/limits.ts'
import { Ticker, type TickerWork } from '../../collector/watch.ts'
import { deferred } from '../../engine/kernel/process/deferred.ts'

/** Work that counts its calls. `upTo(n)` resolves at the n-th tick. */
function counted(work: Partial<TickerWork> = {}) {
  const calls = { ticks: 0, seconds: 0 }
  let wanted = { ticks: Number.POSITIVE_INFINITY, reached: deferred() }
  const ticker = new Ticker({
    isBusy: () => true,
    ...work,
    tick: (nowMs) => {
      if (++calls.ticks >= wanted.ticks) wanted.reached.resolve()
      return work.tick?.(nowMs)
    },
    second: (nowMs) => {
      calls.seconds++
      work.second?.(nowMs)
    },
  })
  const upTo = (ticks: number): Promise<void> => {
    wanted = { ticks, reached: deferred() }
    return wanted.reached.promise
  }
  return { ticker, calls, upTo }
}

t.test('the ticker ticks from start to end, and the first tick begins a new second', async (t) => {
  const { ticker, calls, upTo } = counted()
  ticker.wake()
  t.same(calls, { ticks: 0, seconds: 0 })
  void ticker.start()
  await upTo(3)
  t.ok(calls.seconds >= 1 && calls.seconds <= calls.ticks, `${calls.seconds} seconds`)
  ticker.stop()
  const { ticks } = calls
  ticker.wake()
  void ticker.start()
  // Timers of one event loop: a tick after the stop would come before.
  await new Promise((resolve) => setTimeout(resolve, COLLECTOR_TICK_MS + 1))
  t.equal(calls.ticks, ticks, 'a stopped ticker stays stopped')
})

t.test('new work ends the pause of a quiet link', async (t) => {
  let isBusy = true
  const { ticker, upTo } = counted({ isBusy: () => isBusy })
  t.teardown(() => ticker.stop())
  void ticker.start()
  await upTo(1)
  // The pause after the next tick is a long one.
  isBusy = false
  await upTo(2)
  // Both timers belong to one event loop, so their order does not depend on the machine's speed.
  const pause = new Promise<string>((resolve) => setTimeout(resolve, COLLECTOR_QUIET_TICK_MS - 100, 'the pause'))
  const tick = upTo(3).then(() => 'a tick')
  await new Promise((resolve) => setImmediate(resolve))
  ticker.wake()
  t.equal(await Promise.race([tick, pause]), 'a tick')
})

const failure = new Error('made for the test')
const ROWS: readonly { name: string; work: Partial<TickerWork> }[] = [
  {
    name: 'a tick that throws',
    work: {
      tick: () => {
        throw failure
      },
    },
  },
  { name: 'a tick that rejects later', work: { tick: () => Promise.reject(failure) } },
  {
    name: 'the work of a second that throws',
    work: {
      second: () => {
        throw failure
      },
    },
  },
]
for (const { name, work } of ROWS) {
  t.test(`${name} rejects the promise of the start, and later ticks follow`, async (t) => {
    const { ticker, upTo } = counted(work)
    t.teardown(() => ticker.stop())
    const failed = ticker.start()
    await upTo(2)
    await t.rejects(failed, failure)
  })
}
