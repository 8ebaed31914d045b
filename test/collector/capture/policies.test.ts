import t from 'tap'
import type { FilterWidth } from '../../../collector/capture/bpf.ts'
import { type LinkState, LinkWatch } from '../../../collector/capture/link-watch.ts'
import { Pressure, Watchdog } from '../../../collector/capture/live.ts'

/** Lost packets of each second, and the resulting filter width: w (wide) or n (narrow). */
const PRESSURE: readonly { title: string; lost: readonly number[]; widths: string }[] = [
  { title: 'no loss', lost: [0, 0, 0, 0], widths: 'wwww' },
  { title: 'a one-second burst ends before the filter changes', lost: [0, 5000, 0, 5000, 0], widths: 'wwwww' },
  {
    title: 'losses in two successive seconds narrow the filter; three seconds without loss widen it',
    lost: [1, 1, 0, 0, 0, 0],
    widths: 'wnnnww',
  },
  { title: 'the filter stays narrow while losses continue', lost: [1, 1, 1, 0, 0, 1, 0, 0, 0], widths: 'wnnnnnnnw' },
  {
    title: 'the delay doubles after the filter was widened too early',
    lost: [1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0],
    widths: 'wnnnwwnnnnnnw',
  },
  {
    title: 'the delay resets after a quiet period as long as the narrow one',
    lost: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0],
    widths: 'wnnnwwwwwwwwnnnw',
  },
]
for (const { title, lost, widths } of PRESSURE) {
  t.test(`pressure: ${title}`, async (t) => {
    const pressure = new Pressure(3)
    const letter = (width: FilterWidth) => width[0]
    t.equal(lost.map((count) => letter(pressure.second(count))).join(''), widths)
  })
}

/**
 * For each second: packets that the kernel received, packets that it dropped, packets that arrived.
 * `barks`: the seconds at which the capture is reopened.
 */
const SILENT_TEN = Array.from({ length: 10 }, (): readonly [number, number, number] => [150, 0, 100])
const WATCHDOG: readonly {
  title: string
  seconds: readonly (readonly [number, number, number])[]
  reopenedAt: number[]
}[] = [
  { title: 'a quiet link', seconds: Array.from({ length: 30 }, () => [100, 0, 100] as const), reopenedAt: [] },
  {
    title: 'packets arrive',
    seconds: Array.from({ length: 30 }, (_s, at) => [at * 10 + 5, 0, at * 10] as const),
    reopenedAt: [],
  },
  { title: 'packets are counted but none arrives', seconds: [[100, 0, 100], ...SILENT_TEN], reopenedAt: [10] },
  {
    title: 'all packets are dropped: the ring is full, which is not silence',
    seconds: [[100, 0, 100], ...Array.from({ length: 12 }, (_s, at) => [100 + at, at, 100] as const)],
    reopenedAt: [],
  },
  {
    title: 'one packet ends the silence',
    seconds: [[100, 0, 100], ...SILENT_TEN.slice(0, 9), [151, 0, 101], ...SILENT_TEN.slice(0, 5)],
    reopenedAt: [],
  },
]
for (const { title, seconds, reopenedAt } of WATCHDOG) {
  t.test(`watchdog: ${title}`, async (t) => {
    const watchdog = new Watchdog()
    const reopened = seconds.map((second) => watchdog.second(...second))
    t.same(
      reopened.flatMap((reopens, at) => (reopens ? [at] : [])),
      reopenedAt,
    )
  })
}

t.test('link: traffic without a name is reported after a minute; an idle link is not', async (t) => {
  let state: LinkState = { problem: '', packets: 1000, missed: 7 }
  const watch = new LinkWatch('eth7', 0, () => state)
  const second = (at: number, captured: number, packets: number, named = captured) => {
    state = { ...state, packets }
    watch.second(captured, named, at * 1000)
    return watch.state.silence
  }
  t.equal(second(30, 0, 100_000), '', 'not yet')
  t.equal(second(61, 0, 100_000), '99000 packets passed eth7 in 61 s, and none was a query or a ClientHello')
  t.equal(second(62, 1, 100_100), '', 'a packet arrived')
  t.equal(second(200, 1, 100_500), '', 'few packets')
  t.equal(second(300, 1, 3), '', 'the interface returned, and its counters restart at 0')
  t.equal(second(400, 1, 2000), '1997 packets passed eth7 in 338 s, and none was a query or a ClientHello')
  t.equal(second(401, 5, 2010, 4), '')
  t.equal(second(900, 20_000, 30_000, 4), '', 'uploads alone, but not for long')
  t.equal(second(901, 20_001, 30_001, 5), '', 'a hello')
  t.equal(second(1600, 20_900, 31_000, 5), '', 'few packets')
  t.equal(
    second(1601, 30_001, 41_000, 5),
    '10000 packets passed the filter in 700 s, and none was a query or a ClientHello',
  )
})

t.test('link: packets missed by the interface count from the start', async (t) => {
  let state: LinkState = { problem: '', packets: 0, missed: 7 }
  const watch = new LinkWatch('eth7', 0, () => state)
  state = { problem: 'eth7 is down', packets: 0, missed: 9 }
  watch.second(0, 0, 1000)
  t.match(watch.state, { problem: 'eth7 is down', missed: 2 })
  state = { problem: '', packets: 0, missed: 1 }
  watch.second(0, 0, 2000)
  t.match(watch.state, { problem: '', missed: 1 }, 'the interface returned')
})
