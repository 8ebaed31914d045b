import t from 'tap'
import { CHUNK_ENTRIES_MAX } from '../../../engine/kernel/lmdb/queue-chunk.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { SCAN_CPU_MS } from '../../../engine/limits.ts'
import { ScanRunner } from '../../../engine/scan/scan-runner.ts'
import { ScanSchedule } from '../../../engine/scan/schedule.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { makeOrganization, matcher, openStore, quietLog, Sender, type TestStore } from '../../support/store.ts'

/** Two chunks. Fewer events of several transactions would share one. */
const EVENTS_EACH = 2 * CHUNK_ENTRIES_MAX

function bufferEvents({ store, clock }: TestStore, id: string, transactions: number): void {
  const sender = new Sender()
  for (let transaction = 0; transaction < transactions; transaction++) {
    const events = Array.from({ length: EVENTS_EACH }, () => sender.event('claude.ai', clock.nowMs()))
    store.environment.write(() => store.buffer.append(id, events))
  }
}

t.test('a scan adds events for a quarter of its CPU time, publishes them and leaves the others', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, id } = opened
  bufferEvents(opened, id, 5)
  // The second reading after that at the start of a scan reaches the quarter.
  let cpuMs = 0
  const step = (): number => {
    if (cpuMs < SCAN_CPU_MS * 0.75) cpuMs += SCAN_CPU_MS / 8
    return cpuMs
  }
  const runner = new ScanRunner(store, { matcherOf: () => matcher }, clock, step)
  const added: number[] = []
  while (store.buffer.count(id) > 0) {
    cpuMs = 0
    const [outcome] = runner.run([{ organizationId: id, trigger: 'buffer' }])
    t.match(outcome, { scan: { status: 'completed' }, left: store.buffer.count(id) })
    added.push(outcome?.scan.eventsAdded ?? 0)
  }
  t.same(added, new Array(5).fill(EVENTS_EACH))
  const [{ evidence } = { evidence: undefined }] = store.evidence.since(id, 0)
  t.equal(evidence?.matches, 5 * EVENTS_EACH)
})

t.test('a scan that takes too much CPU time publishes nothing and is last and alone from then on', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const organizations = ['Greedy', 'Acme', 'Beta'].map((name) => makeOrganization(opened, name))
  const [greedy = '', ...others] = organizations.map(({ id }) => id)
  let isGreedy = true
  let scanned = ''
  let cpuMs = 0
  const registries = {
    matcherOf: (id: string) => {
      scanned = id
      return matcher
    },
  }
  const spend = (): number => {
    if (isGreedy && scanned === greedy) cpuMs += SCAN_CPU_MS
    return cpuMs
  }
  const runner = new ScanRunner(store, registries, clock, spend)
  const groups: string[][] = []
  const schedule = new ScanSchedule(store, registries, clock, quietLog, {
    run: async (requests) => {
      groups.push(requests.map(({ organizationId }) => organizationId))
      return runner.run(requests)
    },
    close: async () => {},
  })
  const checked = async (): Promise<string[][]> => {
    groups.length = 0
    for (const id of others) bufferEvents(opened, id, 1)
    clock.add(DAY_MS)
    schedule.check()
    await schedule.idle()
    return groups
  }
  bufferEvents(opened, greedy, 3)

  t.same((await checked()).flat(), store.organizations.ids(), 'not known yet')
  t.equal(store.buffer.count(greedy), 3 * EVENTS_EACH, 'its events stay')
  t.same([...store.evidence.since(greedy, 0)], [], 'nothing of it is published')
  const failure = store.scans.ofOrganization(greedy).find(({ status }) => status === 'failed')?.failure
  t.match(failure, /more than 10 s of CPU time; shorten/)
  for (const id of others) t.equal(store.buffer.count(id), 0, 'the others are scanned')
  t.match(schedule.counters, { failed: 1, overBudget: 1 })
  t.equal(schedule.failing, 1)

  const again = await checked()
  t.same(again.at(-1), [greedy], 'last and alone')
  t.same(again.slice(0, -1).flat().sort(), [...others].sort())
  for (const id of others) t.equal(store.buffer.count(id), 0)
  t.match(schedule.counters, { failed: 2, overBudget: 2 })

  isGreedy = false
  t.same((await checked()).at(-1), [greedy])
  t.equal(store.buffer.count(greedy), 0, 'its events are added once it takes less')
  const [{ evidence } = { evidence: undefined }] = store.evidence.since(greedy, 0)
  t.equal(evidence?.matches, 3 * EVENTS_EACH)
  t.match(schedule.counters, { failed: 2, overBudget: 2 })
  t.equal(schedule.failing, 0)
  bufferEvents(opened, greedy, 1)
  t.same((await checked()).flat(), store.organizations.ids(), 'in its place again')
})
