import t from 'tap'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../engine/kernel/process/clock.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { ScanSchedule } from '../../../engine/scan/schedule.ts'
import { SCAN_FREQUENCIES, type ScanFrequency } from '../../../engine/store/organizations.ts'
import {
  inlineScans,
  makeOrganization,
  openStore,
  quietLog,
  registries,
  Sender,
  type TestStore,
} from '../../support/store.ts'

const PERIOD_MS: Readonly<Record<ScanFrequency, number>> = { hourly: HOUR_MS, daily: DAY_MS, weekly: 7 * DAY_MS }

/** A schedule whose clock is controlled: a second passes when the test says so. */
class Run {
  readonly id: string
  readonly createdMs: number
  readonly #opened: TestStore
  readonly #sender = new Sender()
  #schedule: ScanSchedule
  #seconds = 0

  constructor(t: Parameters<typeof openStore>[0], scanFrequency: ScanFrequency = 'daily') {
    this.#opened = openStore(t)
    const { store, clock } = this.#opened
    const organization = makeOrganization(this.#opened, 'Acme')
    store.environment.write(() => store.organizations.update({ ...organization, scanFrequency }))
    this.id = organization.id
    this.createdMs = clock.nowMs()
    this.#schedule = this.#newSchedule()
  }

  get store(): TestStore['store'] {
    return this.#opened.store
  }

  get clock(): TestStore['clock'] {
    return this.#opened.clock
  }

  #newSchedule(): ScanSchedule {
    return new ScanSchedule(this.store, registries, this.clock, quietLog, inlineScans(this.#opened))
  }

  /** An event is buffered, as by ingest. */
  send(): void {
    const { store, clock, id } = this
    store.environment.write(() => store.buffer.append(id, [this.#sender.event('claude.ai', clock.nowMs())]))
    this.#schedule.noteBuffered(id)
  }

  /**
   * Lets time pass as the timers of the service see it, in steps of a second, or of a minute for
   * long spans.
   */
  async pass(ms: number, stepMs = SECOND_MS): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.clock.add(stepMs)
      this.#seconds += stepMs / SECOND_MS
      if (this.#seconds % 60 === 0) this.#schedule.check()
      else this.#schedule.poll()
      await this.#schedule.idle()
    }
  }

  async restart(downMs = 0): Promise<void> {
    await this.#schedule.stop()
    this.clock.add(downMs)
    this.#schedule = this.#newSchedule()
    this.#schedule.check()
    await this.#schedule.idle()
  }

  /** Completed scans: the trigger, and the start in seconds after `sinceMs`. */
  scans(sinceMs: number): string[] {
    return this.store.scans
      .ofOrganization(this.id)
      .filter(({ status }) => status === 'completed')
      .map(({ trigger, startedAtMs }) => `${trigger} ${(startedAtMs - sinceMs) / SECOND_MS}`)
  }
}

t.test('the first scan starts 10 s after the first event', async (t) => {
  const run = new Run(t)
  await run.pass(5 * MINUTE_MS)
  t.same(run.scans(0), [], 'without an event there is none')
  const firstMs = run.clock.nowMs()
  run.send()
  await run.pass(9 * SECOND_MS)
  t.same(run.scans(0), [])
  run.send()
  await run.pass(SECOND_MS)
  t.same(run.scans(firstMs), ['first 10'])
  t.equal(run.store.buffer.count(run.id), 0)
})

t.test('then each minute with new events for 30 minutes, then at the set frequency', async (t) => {
  const run = new Run(t)
  await run.pass(MINUTE_MS)
  const firstMs = run.clock.nowMs()
  run.send()
  await run.pass(3 * MINUTE_MS)
  t.same(run.scans(firstMs), ['first 10'], 'no new events, no scan')
  for (let second = 0; second < 40 * 60; second += 5) {
    run.send()
    await run.pass(5 * SECOND_MS)
  }
  const scans = run.scans(firstMs).map((text) => Number(text.split(' ')[1]))
  t.equal(scans[1], 181, 'at once, when the last one is more than a minute ago')
  const gaps = scans.slice(1).map((second, index) => second - (scans[index] ?? 0))
  t.ok(
    gaps.slice(1).every((gap) => gap >= 60 && gap <= 65),
    `${gaps}`,
  )
  t.ok((scans.at(-1) ?? 0) <= 30 * 60 && (scans.at(-1) ?? 0) > 28 * 60, `the last after ${scans.at(-1)} s`)
  const before = scans.length
  await run.pass(run.createdMs + DAY_MS - run.clock.nowMs() - MINUTE_MS, MINUTE_MS)
  t.equal(run.scans(0).length, before)
  await run.pass(2 * MINUTE_MS, MINUTE_MS)
  t.match(run.scans(run.createdMs).at(-1), /^schedule 86400$|^schedule 8646\d$/)
})

t.test('a restart continues where it was', async (t) => {
  const run = new Run(t)
  const firstMs = run.clock.nowMs()
  run.send()
  await run.restart(4 * SECOND_MS)
  await run.pass(5 * SECOND_MS)
  t.same(run.scans(0), [])
  await run.pass(SECOND_MS)
  t.same(run.scans(firstMs), ['first 10'])
  run.send()
  await run.restart(20 * SECOND_MS)
  t.same(run.scans(firstMs), ['first 10'])
  await run.pass(40 * SECOND_MS)
  t.same(run.scans(firstMs), ['first 10', 'first 70'])
  run.send()
  await run.restart(HOUR_MS)
  await run.pass(5 * MINUTE_MS)
  t.equal(run.scans(0).length, 2, 'after the 30 minutes the set frequency applies')
})

t.test('a service that was down when the 10 s had passed makes the first scan when it starts', async (t) => {
  const run = new Run(t, 'weekly')
  const firstMs = run.clock.nowMs()
  run.send()
  await run.restart(3 * HOUR_MS)
  t.same(run.scans(firstMs), [`first ${3 * 3600}`])
})

t.test('steps of the clock neither stop the first scans nor repeat them', async (t) => {
  const run = new Run(t)
  run.send()
  run.clock.add(-DAY_MS)
  await run.pass(2 * MINUTE_MS)
  t.equal(run.scans(0).length, 1, 'set back before the first scan')
  run.send()
  run.clock.add(-HOUR_MS)
  await run.pass(3 * MINUTE_MS)
  t.equal(run.scans(0).length, 2, 'set back after it')
  run.send()
  run.clock.add(20 * HOUR_MS)
  await run.pass(10 * MINUTE_MS)
  t.equal(run.scans(0).length, 3, 'set ahead: what waited is scanned')
  run.send()
  await run.pass(10 * MINUTE_MS)
  t.equal(run.scans(0).length, 3, 'then the 30 minutes are over')
})

t.test('an organization whose first events another scan added has no quick scans', async (t) => {
  const run = new Run(t)
  run.store.environment.write(() =>
    run.store.buffer.append(run.id, [new Sender().event('claude.ai', run.clock.nowMs())]),
  )
  runScan(run.store, registries, run.id, 'schedule', run.clock)
  await run.pass(HOUR_MS, MINUTE_MS)
  run.send()
  await run.pass(5 * MINUTE_MS)
  t.equal(run.scans(0).length, 1)
})

const DAYS = { hourly: 3, daily: 8, weekly: 15 } as const

for (const scanFrequency of SCAN_FREQUENCIES) {
  const days = DAYS[scanFrequency]
  t.test(`${scanFrequency}: ${days} days with clock steps and restarts have one scan in each period`, async (t) => {
    const run = new Run(t, scanFrequency)
    run.send()
    await run.pass(31 * MINUTE_MS)
    const quick = run.scans(0).length
    t.equal(quick, 1)
    const { clock } = run
    const endMs = run.createdMs + days * DAY_MS
    for (let round = 1; clock.nowMs() < endMs; round++) {
      run.send()
      await run.pass(10 * MINUTE_MS, MINUTE_MS)
      // NTP corrects the clock by a few seconds; each day it is set by a quarter of an hour, ahead
      // and back.
      clock.add(round % 2 === 0 ? 2 * SECOND_MS : -2 * SECOND_MS)
      if (round % 144 === 0) clock.add(15 * MINUTE_MS)
      if (round % 144 === 20) clock.add(-15 * MINUTE_MS)
      if (round % 50 === 0) await run.restart(round % 100 === 0 ? 40 * MINUTE_MS : 5 * SECOND_MS)
    }
    const scans = run.store.scans.ofOrganization(run.id).slice(quick)
    for (const { trigger, status } of scans) t.equal(`${trigger} ${status}`, 'schedule completed')
    const periods = scans.map(({ startedAtMs }) => Math.floor((startedAtMs - run.createdMs) / PERIOD_MS[scanFrequency]))
    t.equal(new Set(periods).size, periods.length, 'no period has two')
    // The clock may be set ahead over a period, and the test may end before the last one.
    const missed = Math.floor((days * DAY_MS) / PERIOD_MS[scanFrequency]) - periods.length
    t.ok(missed >= 0 && missed <= (scanFrequency === 'hourly' ? days : 1), `${missed} periods without a scan`)
  })
}
