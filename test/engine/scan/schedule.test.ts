import t from 'tap'
import { DAY_MS, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { deferred } from '../../../engine/kernel/process/deferred.ts'
import { requestScan, runScan, type ScanRequest } from '../../../engine/scan/scan-runner.ts'
import { EVENTS_FOR_IMMEDIATE_SCAN, ScanSchedule } from '../../../engine/scan/schedule.ts'
import { acmeSite } from '../../support/acme-site.ts'
import {
  inlineScans,
  makeOrganization,
  openStore,
  quietLog,
  registries,
  Sender,
  type TestStore,
} from '../../support/store.ts'

function scheduleOf(opened: TestStore): ScanSchedule {
  return new ScanSchedule(opened.store, registries, opened.clock, quietLog, inlineScans(opened))
}

function bufferEvents({ store, clock }: TestStore, id: string, count = 1, sender = new Sender()): void {
  store.environment.write(() =>
    store.buffer.append(
      id,
      Array.from({ length: count }, () => sender.event('claude.ai', clock.nowMs())),
    ),
  )
}

const completed = ({ store }: TestStore, id: string): number =>
  store.scans.ofOrganization(id).filter(({ status, trigger }) => status === 'completed' && trigger !== 'first').length

for (const [scanFrequency, periodMs] of [
  ['hourly', HOUR_MS],
  ['daily', DAY_MS],
  ['weekly', 7 * DAY_MS],
] as const) {
  t.test(`${scanFrequency}: a scan runs once per period, and only if the result could change`, async (t) => {
    const opened = acmeSite(t)
    const { store, clock, organization, id } = opened
    store.environment.write(() => store.organizations.update({ ...organization, scanFrequency }))
    // After the quick scans of its first event.
    store.environment.write(() => store.scanStates.put(id, { ...store.scanStates.get(id), firstEventAtMs: 0 }))
    runScan(store, registries, id, 'first', clock)
    const schedule = scheduleOf(opened)
    bufferEvents(opened, id)
    schedule.check()
    await schedule.idle()
    t.equal(completed(opened, id), 0, 'not before its time')
    clock.add(periodMs - 1)
    schedule.check()
    await schedule.idle()
    t.equal(completed(opened, id), 0)
    clock.add(1)
    schedule.check()
    await schedule.idle()
    t.equal(completed(opened, id), 1)
    t.equal(store.buffer.count(id), 0)
    schedule.check()
    await schedule.idle()
    bufferEvents(opened, id)
    schedule.check()
    await schedule.idle()
    t.equal(completed(opened, id), 1, 'once a period')
    clock.add(periodMs)
    schedule.check()
    await schedule.idle()
    t.equal(completed(opened, id), 2)
    clock.add(periodMs)
    schedule.check()
    await schedule.idle()
    t.equal(completed(opened, id), 2, 'no new and no expired evidence: no scan')
  })
}

t.test('scans missed while the service was down are replaced by one', async (t) => {
  const opened = acmeSite(t)
  const { clock, id } = opened
  bufferEvents(opened, id)
  clock.add(5 * DAY_MS)
  {
    const restarted = scheduleOf(opened)
    restarted.check()
    await restarted.idle()
  }
  t.equal(completed(opened, id), 1)
  bufferEvents(opened, id)
  {
    const restarted = scheduleOf(opened)
    restarted.check()
    await restarted.idle()
  }
  t.equal(completed(opened, id), 1, 'a restart in the same period does not scan again')
})

t.test('evidence that has expired is a reason for a scheduled scan', async (t) => {
  const opened = acmeSite(t)
  const { clock, id } = opened
  const schedule = scheduleOf(opened)
  bufferEvents(opened, id)
  clock.add(DAY_MS)
  schedule.check()
  await schedule.idle()
  t.equal(completed(opened, id), 1)
  clock.add(28 * DAY_MS)
  schedule.check()
  await schedule.idle()
  t.equal(completed(opened, id), 1, 'day 30 of the window')
  clock.add(DAY_MS)
  schedule.check()
  await schedule.idle()
  t.equal(completed(opened, id), 2, 'the day left the window')
})

t.test('5,000 buffered events start a scan with the next poll; 4,999 do not', async (t) => {
  const opened = openStore(t)
  const { id } = makeOrganization(opened, 'Acme')
  const schedule = scheduleOf(opened)
  const sender = new Sender()
  const buffer = async (count: number) => {
    bufferEvents(opened, id, count, sender)
    schedule.noteBuffered(id)
    await schedule.idle()
  }
  const poll = () => {
    schedule.poll()
    return schedule.idle()
  }
  await buffer(EVENTS_FOR_IMMEDIATE_SCAN - 1)
  await poll()
  t.equal(completed(opened, id), 0)
  for (let time = 0; time < 3; time++) await buffer(EVENTS_FOR_IMMEDIATE_SCAN)
  t.equal(completed(opened, id), 0, 'a second has several buffers')
  await poll()
  t.match(opened.store.scans.ofOrganization(id), [{ status: 'completed', trigger: 'buffer', eventsAdded: 19_999 }])
  await poll()
  t.equal(completed(opened, id), 1, 'and one scan')
})

t.test('a request leads to one scan, however long the thread takes to start', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization } = opened
  const ask = (): unknown => store.environment.write(() => requestScan(store, organization, clock))
  const { run: scan, close } = inlineScans(opened)
  const runs: number[] = []
  const starting = deferred()
  const run = async (requests: readonly ScanRequest[]) => {
    runs.push(requests.length)
    await starting.promise
    return scan(requests)
  }
  const schedule = new ScanSchedule(store, registries, clock, quietLog, { run, close })
  ask()
  for (let checks = 0; checks < 3; checks++) schedule.poll()
  starting.resolve()
  await schedule.idle()
  t.same(runs, [1])
  t.equal(completed(opened, organization.id), 1)
  ask()
  schedule.poll()
  await schedule.idle()
  t.same(runs, [1, 1], 'the next request is another scan')
})
