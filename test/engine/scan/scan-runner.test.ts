import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import type { Event } from '../../../engine/kernel/event/event.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { Fault } from '../../../engine/kernel/process/error-codes.ts'
import { INTERNAL_ERROR } from '../../../engine/kernel/process/failure.ts'
import { Evidence } from '../../../engine/scan/evidence.ts'
import { requestScan, runScan, type ScanRequest, ScanRunner } from '../../../engine/scan/scan-runner.ts'
import { ScanSchedule } from '../../../engine/scan/schedule.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import { Store } from '../../../engine/store/store.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { capturedLog } from '../../support/captured-log.ts'
import { makeOrganization, matcher, NOON, openStore, registries, Sender, type TestStore } from '../../support/store.ts'

interface Published {
  readonly scan: Record<string, unknown>
  readonly platforms: readonly {
    readonly id: string
    readonly platform_name: string
    readonly confidence: number
    readonly created_at: string
    readonly metadata: Record<string, unknown>
  }[]
}

function buffer({ store }: TestStore, organizationId: string, events: readonly Event[]): void {
  store.environment.write(() => store.buffer.append(organizationId, events))
}

function published(store: Store, organizationId: string): Published {
  return store.environment.read(() => {
    const head = store.published.head(organizationId, PublishedList.discovery)
    const runs = store.published.elements(organizationId, PublishedList.discovery, head?.count ?? 0, 0, 1e6)
    return JSON.parse(
      `{"scan":${head?.text.toString() ?? 'null'},"platforms":[${Buffer.concat(runs).toString()}]}`,
    ) as Published
  })
}

t.test('a scan adds buffered events to the evidence, publishes the result, and empties the buffer', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, id, sender } = opened
  buffer(opened, id, [
    sender.event('claude.ai', NOON - 5000, { count: 3 }),
    sender.event('claude.ai', NOON - 4000, { client: '10.0.0.2', method: 'tls' }),
    sender.event('api.anthropic.com', NOON - 3000),
    sender.event('chatgpt.com', NOON - DAY_MS),
    sender.event('no-ai-at-all.example', NOON),
  ])
  const scan = runScan(store, registries, id, 'administrator', clock)
  t.match(scan, {
    status: 'completed',
    trigger: 'administrator',
    organizationId: id,
    domain: 'acme.example',
    eventsAdded: 5,
    summary: { platformsDiscovered: 3, shadowAiCount: 3 },
  })
  t.equal(store.buffer.count(id), 0)
  const { scan: shown, platforms } = published(store, id)
  t.same(shown, {
    id: scan.id,
    organization_id: id,
    status: 'completed',
    domain: 'acme.example',
    started_at: '2026-11-20T12:00:00Z',
    completed_at: '2026-11-20T12:00:00Z',
    summary: { platforms_discovered: 3, shadow_ai_count: 3, overall_risk_score: scan.summary.overallRiskScore },
  })
  const confidences = platforms.map(({ confidence }) => confidence)
  t.same(
    confidences,
    [...confidences].sort((a, b) => b - a),
    'highest confidence first',
  )
  const claude = platforms.find(({ platform_name }) => platform_name === 'Claude')
  t.match(claude, { created_at: '2026-11-20T12:00:00Z' })
  t.match(claude?.metadata, {
    vendor: 'Anthropic',
    approved: false,
    decision: 'waiting',
    matches: 4,
    methods: { dns: 3, tls: 1 },
    roles: { web: 4 },
    clients: 2,
    clients_error: 0,
    days: 1,
    first_seen: '2026-11-20T11:59:55Z',
    last_seen: '2026-11-20T11:59:56Z',
    domains: ['claude.ai'],
    domains_total: 1,
  })
})

t.test('blocked matches are summed over scans, and published only if there are any', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, id, sender } = opened
  const metadata = (name: string) =>
    published(store, id).platforms.find((each) => each.platform_name === name)?.metadata
  buffer(opened, id, [sender.event('claude.ai', NOON, { count: 3 }), sender.event('chatgpt.com', NOON)])
  runScan(store, registries, id, 'schedule', clock)
  t.notOk(metadata('Claude')?.['blocked_matches'])
  t.ok([...store.evidence.since(id, 0)].every(({ evidence }) => evidence.blocked === 0))
  for (let scan = 0; scan < 2; scan++) {
    buffer(opened, id, [sender.event('claude.ai', NOON, { method: 'log', count: 4, blocked: 2 })])
    runScan(store, registries, id, 'schedule', clock)
  }
  t.match(metadata('Claude'), { matches: 11, blocked_matches: 4 })
  t.notOk(Object.hasOwn(metadata('ChatGPT') ?? {}, 'blocked_matches'))
})

t.test('scans accumulate: IDs and first times stay, and days leave the window', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, id, sender } = opened
  buffer(opened, id, [sender.event('claude.ai', NOON)])
  runScan(store, registries, id, 'schedule', clock)
  const first = published(store, id).platforms[0]

  clock.add(10 * DAY_MS)
  buffer(opened, id, [sender.event('claude.ai', clock.nowMs()), sender.event('chatgpt.com', clock.nowMs())])
  runScan(store, registries, id, 'schedule', clock)
  const second = published(store, id).platforms.find(({ platform_name }) => platform_name === 'Claude')
  t.match(second?.metadata, { matches: 2, days: 2, first_seen: '2026-11-20T12:00:00Z' })
  t.match(second, { id: first?.id, created_at: first?.created_at })
  t.ok((second?.confidence ?? 0) > (first?.confidence ?? 1))

  clock.add(20 * DAY_MS)
  t.match(runScan(store, registries, id, 'schedule', clock), { eventsAdded: 0 })
  const third = published(store, id).platforms.find(({ platform_name }) => platform_name === 'Claude')
  t.match(third?.metadata, { matches: 1, days: 1 }, 'the first day is 30 days back and counts no more')

  clock.add(30 * DAY_MS)
  t.match(runScan(store, registries, id, 'schedule', clock), {
    summary: { platformsDiscovered: 0, overallRiskScore: 0 },
  })
  t.same(published(store, id).platforms, [])
})

t.test('approved platforms are not shadow AI and weigh less', async (t) => {
  const opened = acmeSite(t)
  const { store, clock, organization, sender } = opened
  buffer(opened, organization.id, [sender.event('claude.ai', NOON), sender.event('chatgpt.com', NOON)])
  const before = runScan(store, registries, organization.id, 'administrator', clock)
  const approved = matcher.match('claude.ai')?.platform.id ?? ''
  new Administration(store, clock).approvals.add(organization, loadCatalog(), [approved])
  const after = runScan(store, registries, organization.id, 'administrator', clock)
  t.equal(after.summary.shadowAiCount, before.summary.shadowAiCount - 1)
  t.ok(after.summary.overallRiskScore < before.summary.overallRiskScore)
})

t.test("a scan never reads or shows another organization's data", async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const a = makeOrganization(opened, 'A').id
  const b = makeOrganization(opened, 'B').id
  const sender = new Sender()
  buffer(opened, a, [sender.event('claude.ai', NOON)])
  buffer(opened, b, [sender.event('chatgpt.com', NOON), sender.event('chatgpt.com', NOON)])
  t.match(runScan(store, registries, a, 'administrator', clock), { eventsAdded: 1 })
  t.equal(store.buffer.count(b), 2)
  t.same(
    published(store, a).platforms.map(({ platform_name }) => platform_name),
    ['Claude'],
  )
  t.equal(published(store, b).scan, null)
})

const full = new Fault('STORE_FULL', 'no space left')
const bug = new TypeError('x is not a function')
for (const { name, failure, thrown, recorded, entry } of [
  {
    name: 'a Fault: its message',
    failure: full,
    thrown: { code: 'SCAN_FAILED', message: full.message },
    recorded: full.message,
    entry: { level: 50, reason: full.message, err: undefined },
  },
  {
    name: 'anything else: an internal error, and the log has its stack',
    failure: bug,
    thrown: bug,
    recorded: INTERNAL_ERROR,
    entry: { level: 50, reason: undefined, err: { type: 'TypeError', message: bug.message, stack: bug.stack } },
  },
]) {
  t.test(`a failed scan records the reason, and the next one includes its events: ${name}`, async (t) => {
    const opened = acmeSite(t)
    const { store, clock, id } = opened
    buffer(opened, id, [new Sender().event('claude.ai', NOON)])
    const broken = {
      matchBytes: matcher.matchBytes.bind(matcher),
      fingerprint: '',
      platform: () => {
        throw failure
      },
    } as unknown as typeof matcher
    const failed = { status: 'failed', failure: recorded, eventsAdded: 0 }
    t.throws(() => runScan(store, { matcherOf: () => broken }, id, 'schedule', clock), thrown)
    t.match(store.scans.ofOrganization(id), [failed])
    t.equal(store.buffer.count(id), 1)

    clock.add(DAY_MS)
    const { log, entries } = capturedLog()
    const runner = new ScanRunner(store, { matcherOf: () => broken }, clock)
    // An error that crosses threads is a structured clone.
    const run = async (requests: readonly ScanRequest[]) => structuredClone(runner.run(requests))
    const schedule = new ScanSchedule(store, registries, clock, log, { run, close: async () => {} })
    schedule.check()
    await schedule.idle()
    t.equal(schedule.failing, 1)
    t.match(store.scans.ofOrganization(id), [failed, failed])
    t.equal(entries.length, 1)
    t.match(entries[0], { organization: id, trigger: 'schedule', msg: 'scan failed; its events stay buffered' })
    t.match({ reason: undefined, err: undefined, ...entries[0] }, entry)

    clock.add(1000)
    t.match(runScan(store, registries, id, 'schedule', clock), { status: 'completed', eventsAdded: 1 })
  })
}

for (const { name, failure, entry } of [
  { name: 'a Fault', failure: full, entry: { level: 50, reason: full.message } },
  { name: 'an internal error', failure: bug, entry: { level: 50, err: { stack: bug.stack } } },
]) {
  t.test(`a scan that could not be started is recorded: ${name}`, async (t) => {
    const { store, clock, organization } = acmeSite(t)
    store.environment.write(() => requestScan(store, organization, clock))
    const { log, entries } = capturedLog()
    const run = () => Promise.reject(failure)
    const schedule = new ScanSchedule(store, registries, clock, log, { run, close: async () => {} })
    schedule.poll()
    await schedule.idle()
    t.match(entries, [{ ...entry, msg: 'could not start scans; events stay buffered', organizations: 1 }])
    t.equal('err' in (entries[0] ?? {}), failure === bug)
  })
}

t.test('names above the daily limit are counted, not stored', async (t) => {
  const evidence = new Evidence(2)
  for (const name of ['a.claude.ai', 'b.claude.ai', 'c.claude.ai', 'a.claude.ai']) evidence.addName(name, 1)
  t.same(evidence.toDay().byName, { 'a.claude.ai': 2, 'b.claude.ai': 1 })
  t.equal(evidence.toDay().otherNames, 1)
})

const CHILD = fileURLToPath(new URL('../../support/scan-once.js', import.meta.url))
for (const point of ['scan:started', 'scan:added', 'scan:published']) {
  t.test(`after a kill at ${point}, buffer and evidence together contain every event once`, async (t) => {
    const directory = t.testdir()
    const before = new Store(directory)
    const opened: TestStore = { store: before, directory, clock: { nowMs: () => NOON, set() {}, add() {} } }
    const { id } = makeOrganization(opened, 'Acme')
    const sender = new Sender()
    buffer(
      opened,
      id,
      Array.from({ length: 50 }, () => sender.event('claude.ai', NOON)),
    )
    await before.close()

    const { signal, stderr } = spawnSync(process.execPath, [CHILD, directory, id, String(NOON)], {
      env: { ...process.env, POSTURE_FAULT_POINT: point },
      encoding: 'utf8',
    })
    t.equal(signal, 'SIGKILL', stderr)

    const store = new Store(directory)
    t.teardown(() => store.close())
    let matches = 0
    for (const { evidence } of store.evidence.since(id, 0)) matches += evidence.matches
    t.equal(store.buffer.count(id) + matches, 50)
    t.match(store.scans.ofOrganization(id), [{ status: 'running' }])
    t.match(runScan(store, registries, id, 'schedule', { nowMs: () => NOON + 1000 }), { status: 'completed' })
    t.match(
      store.scans.ofOrganization(id).map(({ status, failure }) => ({ status, failure })),
      [{ status: 'failed', failure: 'interrupted' }, { status: 'completed' }],
    )
    t.equal(published(store, id).platforms[0]?.metadata['matches'], 50)
  })
}
