import { copyFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { DATA_FILE } from '../../../engine/kernel/lmdb/file-access.ts'
import { DAY_MS, HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { tryHold } from '../../../engine/kernel/process/exclusive.ts'
import { STORED_SCANS_MAX } from '../../../engine/limits.ts'
import { SCANS, scanNow } from '../../../engine/scan/scan-now.ts'
import { recoverInterrupted, requestScan, runScan, ScanRunner } from '../../../engine/scan/scan-runner.ts'
import { ScanSchedule } from '../../../engine/scan/schedule.ts'
import { uuidBytes } from '../../../engine/store/keys.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import type { Scan } from '../../../engine/store/scans.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { type AcmeSite, acmeSite } from '../../support/acme-site.ts'
import {
  inlineScans,
  makeOrganization,
  matcher,
  openStore,
  quietLog,
  registries,
  Sender,
  type TestStore,
} from '../../support/store.ts'
import { until } from '../../support/wait.ts'

type Made = TestStore & Pick<AcmeSite, 'organization'>

function buffer({ store, clock, organization }: Made, count = 1, sender = new Sender()): void {
  const events = Array.from({ length: count }, () => sender.event('claude.ai', clock.nowMs()))
  store.environment.write(() => store.buffer.append(organization.id, events))
}

const request = ({ store, clock, organization }: Made): Scan =>
  store.environment.write(() => requestScan(store, organization, clock))
const run = ({ store, clock, organization }: Made, trigger: Scan['trigger'] = 'schedule'): Scan =>
  runScan(store, registries, organization.id, trigger, clock)
/** Leaves a scan as a killed process does. */
const kill = ({ store, clock, organization: { id } }: Made, scan: Scan): void =>
  store.environment.write(() => {
    store.scans.put({ ...scan, status: 'running', startedAtMs: clock.nowMs() })
    store.scans.removeRequest(id)
    const running = { id: scan.id, requestedAtMs: scan.requestedAtMs }
    store.scanStates.put(id, { ...store.scanStates.get(id), running })
  })
const failing = (site: Made): unknown => {
  const broken = new Proxy(matcher, {
    get(target, property) {
      if (property === 'fingerprint') throw new Error('out of luck')
      return Reflect.get(target, property).bind(target)
    },
  })
  return new ScanRunner(site.store, { matcherOf: () => broken }, site.clock).run([
    { organizationId: site.organization.id, trigger: 'schedule' },
  ])
}

/** Each row: the steps, and then the states of all scans, oldest first. */
const ROWS: Readonly<Record<string, readonly [happens: (site: Made) => unknown, states: readonly string[]]>> = {
  'nothing requested: no scan': [() => {}, []],
  '(none) to pending by a request': [request, ['pending']],
  'requested again while pending: still the same scan': [
    (site) => {
      const first = request(site)
      if (request(site).id !== first.id) throw new Error('another one')
    },
    ['pending'],
  ],
  '(none) to completed by the schedule': [run, ['completed']],
  'pending to completed, for any trigger': [
    (site) => {
      const { id } = request(site)
      const scan = run(site, 'schedule')
      if (scan.id !== id || scan.trigger !== 'administrator') throw new Error('not the one that was asked for')
      if (site.store.scans.pending(site.organization.id) !== undefined) throw new Error('still asked for')
    },
    ['completed'],
  ],
  'to failed by any cause': [failing, ['failed']],
  'pending to failed': [
    (site) => {
      request(site)
      failing(site)
    },
    ['failed'],
  ],
  'running to failed when the next scan starts after a kill': [
    (site) => {
      kill(site, request(site))
      site.clock.add(1)
      run(site)
    },
    ['failed', 'completed'],
  ],
  'a pending scan stays pending through other scans': [
    (site) => {
      run(site)
      site.clock.add(1)
      request(site)
    },
    ['completed', 'pending'],
  ],
}
for (const [name, [happens, states]] of Object.entries(ROWS)) {
  t.test(name, async (t) => {
    const site = acmeSite(t)
    buffer(site)
    await happens(site)
    const scans = site.store.scans.ofOrganization(site.organization.id)
    t.same(
      scans.map(({ status }) => status),
      states,
    )
    t.equal(site.store.scanStates.get(site.organization.id).stored, states.length, 'the count of stored scans')
    for (const { status, startedAtMs, completedAtMs, failure } of scans) {
      t.equal(startedAtMs > 0, status !== 'pending')
      t.equal(completedAtMs > 0, status === 'completed' || status === 'failed')
      t.equal(failure !== '', status === 'failed')
    }
    t.equal(site.store.buffer.count(site.organization.id), states.includes('completed') ? 0 : 1)
  })
}

t.test('a scan overtaken by another process is prepared again and counts nothing twice', async (t) => {
  const site = acmeSite(t)
  buffer(site, 10)
  let interferences = 2
  const interferingMatcher = new Proxy(matcher, {
    get(target, property) {
      // The last property that a scan reads before it writes.
      if (property === 'fingerprint' && interferences-- > 0) {
        const other = site.store.scans.last(site.organization.id, ({ status }) => status === 'running')
        buffer(site, 1)
        run(site, 'buffer')
        if (other !== undefined) site.store.environment.write(() => site.store.scans.put(other))
      }
      const value = Reflect.get(target, property)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const [outcome] = new ScanRunner(site.store, { matcherOf: () => interferingMatcher }, site.clock).run([
    { organizationId: site.organization.id, trigger: 'schedule' },
  ])
  t.match(outcome?.scan, { status: 'completed', eventsAdded: 0 })
  const matches = [...site.store.evidence.since(site.organization.id, 0)].reduce(
    (sum, { evidence }) => sum + evidence.matches,
    0,
  )
  t.equal(matches, 12)
  t.equal(site.store.buffer.count(site.organization.id), 0)
  t.equal(site.store.scanStates.get(site.organization.id).generation, 3)
})

t.test('a scan that another process ended writes nothing', async (t) => {
  const site = acmeSite(t)
  buffer(site, 3)
  let ended = false
  const ending = new Proxy(matcher, {
    get(target, property) {
      const running = site.store.scans.last(site.organization.id, ({ status }) => status === 'running')
      if (property === 'fingerprint' && !ended && running !== undefined) {
        ended = true
        site.store.environment.write(() =>
          site.store.scans.put({
            ...running,
            status: 'failed',
            completedAtMs: site.clock.nowMs(),
            failure: 'interrupted',
          }),
        )
      }
      const value = Reflect.get(target, property)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const [outcome] = new ScanRunner(site.store, { matcherOf: () => ending }, site.clock).run([
    { organizationId: site.organization.id, trigger: 'schedule' },
  ])
  t.match(outcome?.scan, { status: 'failed', failure: 'another process ended the scan' })
  t.same(
    site.store.scans.ofOrganization(site.organization.id).map(({ failure }) => failure),
    ['interrupted'],
    'failed is final',
  )
  t.equal(site.store.buffer.count(site.organization.id), 3)
})

t.test('scans of many organizations share transactions, and a failing one does not block the others', async (t) => {
  const opened = openStore(t)
  const sites = Array.from({ length: 150 }, (_, index) => ({
    ...opened,
    organization: makeOrganization(opened, `O${index}`),
  }))
  for (const site of sites) buffer(site, 2)
  const [poor] = sites
  if (poor === undefined) throw new Error('150 of them')
  // A deleted organization has no scan, and is not an error.
  const deletedOrganization = '00000000-0000-4000-8000-000000000000'
  const requests = [...sites.map(({ organization }) => organization.id), deletedOrganization].map((organizationId) => ({
    organizationId,
    trigger: 'schedule' as const,
  }))
  const outcomes = new ScanRunner(opened.store, registries, opened.clock).run(requests)
  t.equal(outcomes.length, 150)
  t.ok(outcomes.every(({ scan, left }) => scan.status === 'completed' && scan.eventsAdded === 2 && left === 0))
  t.same(new Set(outcomes.map(({ scan }) => scan.organizationId)).size, 150)
})

t.test('stored scans are limited, and the oldest ended ones are removed', async (t) => {
  const site = acmeSite(t, { unchecked: true })
  const { store, organization, clock } = site
  const pending = request(site)
  kill(site, pending)
  for (let scan = 0; scan < STORED_SCANS_MAX + 5; scan++) {
    clock.add(1)
    store.environment.write(() => store.scans.removeRequest(organization.id))
    request(site)
    clock.add(1)
    store.environment.write(() => {
      const waiting = store.scans.pending(organization.id)
      if (waiting !== undefined) store.scans.put({ ...waiting, status: 'failed', failure: 'test' })
    })
  }
  const scans = store.scans.ofOrganization(organization.id)
  t.equal(scans.length, STORED_SCANS_MAX)
  t.match(scans[0], { id: pending.id, status: 'running' }, 'one that has not ended stays')
  t.equal(store.scanStates.get(organization.id).stored, STORED_SCANS_MAX)
})

t.test('a clock set ahead by less than a period removes no evidence', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(site))
  const check = async (): Promise<void> => {
    schedule.check()
    await schedule.idle()
  }
  const platforms = (): number => {
    const head = store.environment.read(() => store.published.head(organization.id, PublishedList.discovery))
    return JSON.parse(head?.text.toString() ?? '').summary.platforms_discovered
  }
  buffer(site)
  clock.add(DAY_MS)
  await check()
  t.equal(platforms(), 1)
  const rightMs = clock.nowMs()
  clock.add(3650 * DAY_MS)
  await check()
  t.equal(platforms(), 0, 'ten years later nothing is in the window')
  t.equal([...store.evidence.since(organization.id, 0)].length, 1, 'but it is stored')
  clock.set(rightMs + HOUR_MS)
  await check()
  clock.add(DAY_MS)
  buffer(site)
  await check()
  t.equal(platforms(), 1)
  t.match([...store.evidence.since(organization.id, 0)].length, 2)
})

t.test('a clock set ahead and back delays the schedule by at most a period', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  const restarted = async (): Promise<void> => {
    const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(site))
    schedule.check()
    await schedule.idle()
  }
  clock.add(1000 * DAY_MS)
  buffer(site)
  await restarted()
  clock.add(-990 * DAY_MS)
  const scans = () => store.scans.ofOrganization(organization.id).length
  t.equal(scans(), 1)
  buffer(site)
  const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(site))
  schedule.check()
  await schedule.idle()
  t.equal(scans(), 1)
  clock.add(DAY_MS)
  schedule.check()
  await schedule.idle()
  t.equal(scans(), 2)
  t.ok(store.scans.ofOrganization(organization.id).every((scan) => scan.completedAtMs >= scan.startedAtMs))
})

t.test('a scan never ends before it starts, whatever the clock does', async (t) => {
  const site = acmeSite(t)
  buffer(site)
  let nowMs = site.clock.nowMs()
  const falling = { nowMs: () => (nowMs -= HOUR_MS) }
  const scan = runScan(site.store, registries, site.organization.id, 'schedule', falling)
  t.equal(scan.completedAtMs, scan.startedAtMs)
})

t.test('a scheduled scan runs if settings, approvals or the registry have changed', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  const administration = new Administration(store, clock)
  const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(site))
  const next = async (): Promise<number> => {
    clock.add(DAY_MS)
    schedule.check()
    await schedule.idle()
    return store.scans.ofOrganization(organization.id).length
  }
  t.equal(await next(), 0, 'no events yet')
  buffer(site)
  t.equal(await next(), 1)
  t.equal(await next(), 1, 'nothing new')
  administration.organizations.set(organization, { evidenceWindowDays: 60 })
  t.equal(await next(), 2, 'another window')
  administration.organizations.set(organization, { plan: 'free' })
  t.equal(await next(), 2, 'a changed plan starts no scan')
  const other = new ScanSchedule(
    store,
    {
      matcherOf: () =>
        new Proxy(matcher, {
          get: (target, property) => (property === 'fingerprint' ? 'another' : Reflect.get(target, property)),
        }),
    },
    clock,
    quietLog,
    inlineScans(site),
  )
  clock.add(DAY_MS)
  other.check()
  await other.idle()
  t.equal(store.scans.ofOrganization(organization.id).length, 3, 'another registry')
})

t.test('approvals request a scan, and are validated', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  const { approvals } = new Administration(store, clock)
  const catalog = loadCatalog()
  const claude = matcher.match('claude.ai')?.platform.id ?? ''
  const { scan } = approvals.add(organization, catalog, ['claude', 'ChatGPT'])
  const approved = () => [...store.decisions.inForce(organization.id, clock.nowMs()).approved].sort()
  const both = [matcher.match('chatgpt.com')?.platform.id, claude]
  t.same(approved(), both)
  t.match(scan, { status: 'pending' })
  approvals.add(organization, catalog, [claude])
  t.same(approved(), both)
  t.equal(store.decisions.history(organization.id, claude).length, 1, 'the same request twice is one')
  for (const wrong of ['no such thing', '', '../..', 'Claude ']) {
    t.throws(
      () => approvals.add(organization, catalog, ['claude', wrong]),
      { code: 'NOT_FOUND' },
      JSON.stringify(wrong),
    )
    t.throws(() => approvals.remove(organization, catalog, [wrong]), { code: 'NOT_FOUND' }, JSON.stringify(wrong))
  }
  const withoutClaude = { ...catalog, platforms: catalog.platforms.filter(({ id }) => id !== claude) }
  approvals.remove(organization, withoutClaude, [claude])
  t.equal(approved().length, 1, 'also one that left the registry')
  t.throws(() => approvals.remove(organization, catalog, [claude]), { code: 'NOT_FOUND' })
})

t.test('a requester waits for the process that runs scans, or runs the scan', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  buffer(site)
  const never = new AbortController()
  t.match(await scanNow(store, registries, request(site), clock, never.signal), {
    status: 'completed',
    eventsAdded: 1,
  })

  const release = await tryHold(store.environment.path, SCANS)
  clock.add(1)
  const pending = request(site)
  // Read once in each of its attempts.
  let attempts = 0
  const counted = Object.defineProperty(new AbortController().signal, 'aborted', { get: () => ++attempts === 0 })
  const waits = scanNow(store, registries, pending, clock, counted)
  await until('a second attempt', () => attempts > 1)
  t.match(store.scans.current(pending), { status: 'pending' }, 'another process runs scans')
  run(site)
  t.match(await waits, { id: pending.id, status: 'completed' })

  clock.add(1)
  const failed = request(site)
  store.environment.write(() => {
    store.scans.removeRequest(organization.id)
    store.scans.put({ ...failed, status: 'failed', startedAtMs: 1, completedAtMs: 1, failure: 'no luck' })
  })
  await t.rejects(scanNow(store, registries, failed, clock, never.signal), { code: 'SCAN_FAILED', message: 'no luck' })

  clock.add(1)
  const canceled = new AbortController()
  const leaves = scanNow(store, registries, request(site), clock, canceled.signal)
  canceled.abort()
  t.equal(await leaves, undefined)

  // A node that joined its cluster again, and runs the scans of another store since.
  clock.add(1)
  const waiting = request(site)
  const data = join(store.environment.path, DATA_FILE)
  renameSync(data, `${data}.kept`)
  copyFileSync(`${data}.kept`, data)
  await t.rejects(scanNow(store, registries, waiting, clock, never.signal), { code: 'NOT_PRIMARY' })
  renameSync(`${data}.kept`, data)
  run(site)

  clock.add(1)
  const killed = request(site)
  kill(site, killed)
  await release?.()
  clock.add(1)
  t.match(
    await scanNow(store, registries, killed, clock, never.signal),
    { status: 'completed' },
    'after a kill, a new scan',
  )
  t.match(store.scans.current(killed), { status: 'failed', failure: 'interrupted' })
})

t.test('a scheduled scan that failed is due again at the next check', async (t) => {
  const site = acmeSite(t)
  let succeeds = false
  const { run: scan } = inlineScans(site)
  const executor = {
    run: async (requests: Parameters<typeof scan>[0]) => {
      if (!succeeds) throw new Error('out of luck')
      return scan(requests)
    },
    close: async () => {},
  }
  const schedule = new ScanSchedule(site.store, registries, site.clock, quietLog, executor)
  buffer(site)
  for (const [minutes, states] of [
    [24 * 60, []],
    [1, []],
    [1, ['completed']],
    [1, ['completed']],
  ] as const) {
    site.clock.add(minutes * 60_000)
    succeeds = states.length > 0
    schedule.check()
    await schedule.idle()
    t.same(
      site.store.scans.ofOrganization(site.organization.id).map(({ status }) => status),
      states,
    )
  }
})

t.test('a requested scan that was interrupted is requested again when the service starts', async (t) => {
  const site = acmeSite(t)
  buffer(site)
  const asked = request(site)
  kill(site, asked)
  site.clock.add(1)
  recoverInterrupted(site.store, site.clock)
  const { scans } = site.store
  t.match(scans.current(asked), { status: 'failed', failure: 'interrupted' })
  t.match(scans.pending(site.organization.id), { status: 'pending', trigger: 'administrator' })
  site.clock.add(1)
  run(site)
  kill(site, { ...asked, trigger: 'schedule' })
  recoverInterrupted(site.store, site.clock)
  t.equal(scans.pending(site.organization.id), undefined, 'the schedule requests its own scans')
})

t.test("a damaged record of one organization does not block another's scan", async (t) => {
  const opened = openStore(t, { unchecked: true })
  const { store, clock } = opened
  const names = ['organizations', 'scan-states', 'scans', 'scan-requests', 'healthy', 'healthy too']
  const sites = names.map((name) => ({ ...opened, organization: makeOrganization(opened, name) }))
  for (const site of sites) {
    run(site)
    clock.add(1)
    request(site)
    buffer(site, 5000)
  }
  for (const [index, name] of names.slice(0, 4).entries()) {
    const table = store.environment.table(name)
    const prefix = uuidBytes(sites[index]?.organization.id ?? '')
    for (const { key, value } of [...table.getRange({ start: prefix })].slice(0, 1)) {
      const other = Buffer.from(value)
      other[other.length - 1] = (other.at(-1) ?? 0) ^ 1
      store.environment.write(() => table.putSync(key, other))
    }
  }
  clock.add(1)
  const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(opened))
  schedule.check()
  await schedule.idle()
  for (const { organization } of sites.slice(4)) t.equal(store.buffer.count(organization.id), 0, organization.name)
})

t.test('after a clock was set ahead and back, the API shows current data again', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(site))
  const shown = async (): Promise<number> => {
    schedule.check()
    await schedule.idle()
    const head = store.environment.read(() => store.published.head(organization.id, PublishedList.discovery))
    return head?.count ?? -1
  }
  buffer(site)
  clock.add(DAY_MS)
  t.equal(await shown(), 1)
  const rightMs = clock.nowMs()
  clock.add(100 * DAY_MS)
  t.equal(await shown(), 0)
  clock.set(rightMs + HOUR_MS)
  await shown()
  clock.add(DAY_MS)
  t.equal(await shown(), 1)
})

t.test('events of days long past are counted and not stored', async (t) => {
  const site = acmeSite(t)
  const { store, clock, organization } = site
  const sender = new Sender()
  const events = [0, 29, 30, 31, 400, 19_000].map((days) => sender.event('claude.ai', clock.nowMs() - days * DAY_MS))
  store.environment.write(() => store.buffer.append(organization.id, events))
  t.match(run(site), { eventsAdded: 6, eventsTooOld: 4, summary: { platformsDiscovered: 1 } })
  t.equal([...store.evidence.since(organization.id, 0)].length, 2)
})
