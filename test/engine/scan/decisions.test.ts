import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { undoableDecisions } from '../../../engine/admin/approvals.ts'
import { clientList } from '../../../engine/admin/client-list.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../engine/kernel/process/clock.ts'
import { DECIDED_PLATFORMS_MAX, DECISION_NOTE_BYTES_MAX, DECISIONS_KEPT_MAX } from '../../../engine/limits.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { ScanSchedule } from '../../../engine/scan/schedule.ts'
import { type Decision, decisionState } from '../../../engine/store/decisions.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { acmeSite } from '../../support/acme-site.ts'
import {
  findingsOf,
  inlineScans,
  makeOrganization,
  matcher,
  NOON,
  openStore,
  quietLog,
  registries,
} from '../../support/store.ts'

const catalog = loadCatalog()
const CLAUDE = matcher.match('claude.ai')?.platform.id ?? ''

/** The state at a time of a decision that may have an end. */
type StateCase = readonly [
  atMs: number,
  state: ReturnType<typeof decisionState>,
  kind?: Decision['kind'],
  expiresAtMs?: number,
]

const STATES: Readonly<Record<string, StateCase>> = {
  'no decision': [NOON, 'waiting'],
  'approved without an end': [NOON + 3650 * DAY_MS, 'approved', 'approved'],
  'rejected without an end': [NOON + 3650 * DAY_MS, 'rejected', 'rejected'],
  withdrawn: [NOON, 'waiting', 'withdrawn'],
  'approved, a millisecond before its end': [NOON - 1, 'approved', 'approved', NOON],
  'approved, at its end': [NOON, 'expired', 'approved', NOON],
  'approved, long after its end': [NOON + DAY_MS, 'expired', 'approved', NOON],
  'rejected, a millisecond before its end': [NOON - 1, 'rejected', 'rejected', NOON],
  'rejected, at its end': [NOON, 'expired', 'rejected', NOON],
  'withdrawn does not expire': [NOON + 1, 'waiting', 'withdrawn', NOON],
  'the clock was set back after its end': [NOON - DAY_MS, 'approved', 'approved', NOON],
}

for (const [name, [atMs, state, kind, expiresAtMs = 0]] of Object.entries(STATES)) {
  t.test(`state: ${name}`, async (t) => {
    const decision = kind && { ...terms(kind), expiresAtMs }
    t.equal(decisionState(decision, atMs), state)
  })
}

function terms(kind: Decision['kind']): Decision {
  const by = { decidedBy: 'operator root', decidedAtMs: NOON - DAY_MS, sequence: 1 }
  return { platformId: CLAUDE, kind, note: '', owner: '', expiresAtMs: 0, ...by }
}

/** An organization that uses two platforms, with a service that scans. */
function made(t: Parameters<typeof openStore>[0]) {
  const opened = acmeSite(t)
  const { store, clock, organization, sender, buffer } = opened
  const events = ['claude.ai', 'chatgpt.com'].map((name, at) =>
    sender.event(name, NOON, { client: `10.0.0.${at + 1}` }),
  )
  buffer(events)
  runScan(store, registries, organization.id, 'schedule', clock)
  const schedule = new ScanSchedule(store, registries, clock, quietLog, inlineScans(opened))
  const published = () =>
    store.environment.read(() => {
      const head = store.published.head(organization.id, PublishedList.discovery)
      const count = head?.count ?? 0
      const runs = store.published.elements(organization.id, PublishedList.discovery, count, 0, count)
      const scan = JSON.parse(head?.text.toString() ?? 'null') as { summary: Record<string, number> }
      const platforms = JSON.parse(`[${Buffer.concat(runs).toString()}]`) as {
        platform_name: string
        metadata: { approved: boolean; decision: string; risk: { score: number } }
      }[]
      const claude = platforms.find(({ platform_name }) => platform_name === 'Claude')?.metadata
      return {
        tag: head?.tag,
        version: store.apiVersions.get(Buffer.from(organization.id.replaceAll('-', ''), 'hex')),
        approved: claude?.approved,
        decision: claude?.decision,
        claudeRisk: claude?.risk.score ?? 0,
        shadow: scan.summary['shadow_ai_count'],
        risk: scan.summary['overall_risk_score'] ?? 0,
      }
    })
  /** What the service does each minute. */
  const check = async (): Promise<void> => {
    schedule.check()
    await schedule.idle()
  }
  const { approvals } = new Administration(store, clock)
  return { ...opened, organization, schedule, published, check, approvals }
}

t.test('an approval with an end: the API shows it until it ends, without any change', async (t) => {
  const { store, clock, organization, published, check, approvals, schedule } = made(t)
  await check()
  clock.add(HOUR_MS)
  const expiresAtMs = clock.nowMs() + 5 * HOUR_MS
  approvals.add(organization, catalog, ['Claude'], { note: 'Pilot', owner: 'ada@acme.example', expiresAtMs })
  await check()
  const during = published()
  t.match(during, { approved: true, decision: 'approved', shadow: 1 })
  t.equal(store.scanStates.get(organization.id).decisionExpiresAtMs, expiresAtMs)

  clock.set(expiresAtMs - 1)
  await check()
  t.same(published(), during, 'a millisecond before: the same bytes, for the same entity tag')

  clock.set(expiresAtMs)
  await check()
  const after = published()
  t.match(after, { approved: false, decision: 'expired', shadow: 2 })
  t.ok(after.risk > during.risk)
  t.not(after.tag, during.tag)
  t.ok(after.version > during.version, 'API threads read the new answer')
  const last = store.scans.last(organization.id, () => true)
  t.match(last, { trigger: 'expiry', status: 'completed' })
  t.equal(store.scanStates.get(organization.id).decisionExpiresAtMs, undefined)
  t.equal(schedule.counters.completed.expiry, 1)

  clock.add(60_000)
  await check()
  t.equal(store.scans.last(organization.id, () => true)?.id, last?.id, 'once')
})

t.test('an end that passed while the service was stopped counts when it starts', async (t) => {
  const { clock, organization, published, check, approvals, store } = made(t)
  approvals.add(organization, catalog, ['Claude'], { expiresAtMs: NOON + HOUR_MS })
  await check()
  t.match(published(), { approved: true })
  clock.add(3 * DAY_MS)
  const opened = { store, clock, directory: '' }
  const next = new ScanSchedule(store, registries, clock, quietLog, inlineScans(opened))
  next.check()
  await next.idle()
  t.match(published(), { approved: false, decision: 'expired' })
})

t.test('a failed scan is tried again with the next check', async (t) => {
  const { store, clock, organization, published, check, approvals } = made(t)
  approvals.add(organization, catalog, ['Claude'], { expiresAtMs: NOON + HOUR_MS })
  await check()
  clock.set(NOON + HOUR_MS)
  const broken = new ScanSchedule(store, registries, clock, quietLog, {
    run: async () => Promise.reject(new Error('no thread')),
    close: async () => {},
  })
  broken.check()
  await broken.idle()
  t.match(published(), { approved: true })
  await check()
  t.match(published(), { approved: false })
})

t.test('the clock set back: an approval counts again with the next scan that is due', async (t) => {
  const { clock, organization, published, check, approvals, store } = made(t)
  const expiresAtMs = NOON + 2 * DAY_MS
  approvals.add(organization, catalog, ['Claude'], { expiresAtMs })
  clock.set(expiresAtMs)
  runScan(store, registries, organization.id, 'administrator', clock)
  t.match(published(), { decision: 'expired' })
  clock.set(NOON + DAY_MS)
  await check()
  t.match(published(), { decision: 'approved' }, 'the daily scan sees that its inputs differ')
})

t.test('a rejected platform is not approved, at its full risk', async (t) => {
  const { organization, published, check, approvals } = made(t)
  await check()
  const before = published()
  approvals.reject(organization, catalog, ['claude'], { note: 'No contract' })
  await check()
  t.match(published(), { approved: false, decision: 'rejected', shadow: before.shadow, risk: before.risk })
  t.not(published().tag, before.tag)
  approvals.remove(organization, catalog, ['claude'])
  await check()
  t.match(published(), { approved: false, decision: 'waiting' })
})

t.test('an approval for a plan has the risk of that plan, in the API and in lists as well', async (t) => {
  const { organization, published, check, approvals, store, clock } = made(t)
  const riskOfClient = (): number | undefined =>
    store.environment.read(() => {
      const { clients } = clientList(store, organization, catalog.platforms, { search: '10.0.0.1' }, clock.nowMs())
      return clients[0]?.riskiest()?.score
    })
  await check()
  const worst = published()
  t.equal(riskOfClient(), worst.claudeRisk)
  approvals.add(organization, catalog, ['Claude'])
  await check()
  const anyPlan = published()
  t.equal(anyPlan.claudeRisk, worst.claudeRisk)
  approvals.add(organization, catalog, ['Claude'], { plan: 'Enterprise' })
  await check()
  const enterprise = published()
  t.ok(enterprise.claudeRisk < worst.claudeRisk && enterprise.risk <= anyPlan.risk, 'fewer points')
  t.equal(riskOfClient(), enterprise.claudeRisk, 'the same in the list of clients')
  t.match(store.decisions.get(organization.id, CLAUDE), { kind: 'approved', plan: 'Enterprise' })
  t.throws(() => approvals.add(organization, catalog, ['Claude'], { plan: 'Gold' }), {
    code: 'USAGE',
    message: /^plan of Claude: expected one of Free, Pro, .*Enterprise/,
  })
  t.throws(() => approvals.add(organization, catalog, ['302-ai'], { plan: 'Gold' }), {
    message: 'plan of 302.AI: the registry knows no plan',
  })
  approvals.reject(organization, catalog, ['Claude'], { plan: 'Enterprise' })
  await check()
  t.equal(published().claudeRisk, worst.claudeRisk, 'a rejection is for all plans')
})

t.test('the earliest end of all decisions in force is the next one', async (t) => {
  const { store, clock, organization, check, approvals } = made(t)
  const next = async () => {
    await check()
    return store.scanStates.get(organization.id).decisionExpiresAtMs
  }
  approvals.add(organization, catalog, ['claude'], { expiresAtMs: NOON + 3 * HOUR_MS })
  approvals.reject(organization, catalog, ['chatgpt'], { expiresAtMs: NOON + HOUR_MS })
  approvals.add(organization, catalog, ['deepseek'])
  t.equal(await next(), NOON + HOUR_MS)
  clock.set(NOON + HOUR_MS)
  t.equal(await next(), NOON + 3 * HOUR_MS)
  approvals.remove(organization, catalog, ['claude'])
  t.equal(await next(), undefined)
})

t.test('history: every decision with its author, also after a withdrawal, the last 50', async (t) => {
  const { store, clock, organization, approvals } = made(t)
  const { id } = organization
  store.environment.write(() =>
    store.members.put({ organizationId: id, name: 'Ada@acme.example', role: 'admin', createdAtMs: NOON }),
  )
  const ada = new Administration(store, clock, { kind: 'member', name: 'ada@acme.example' }).approvals
  approvals.add(organization, catalog, ['claude'], { note: 'Pilot' })
  clock.add(1)
  ada.reject(organization, catalog, ['claude'], { owner: 'Legal' })
  clock.add(1)
  approvals.remove(organization, catalog, ['claude'])
  t.match(store.decisions.history(id, 'claude'), [
    { kind: 'withdrawn', note: '', owner: '', decidedBy: 'operator operator', sequence: 3 },
    { kind: 'rejected', owner: 'Legal', decidedBy: 'member Ada@acme.example', decidedAtMs: NOON + 1, sequence: 2 },
    { kind: 'approved', note: 'Pilot', decidedBy: 'operator operator', decidedAtMs: NOON, sequence: 1 },
  ])
  t.same(store.decisions.history(id, 'claude-code'), [], 'a longer id is another platform')
  for (let at = 0; at < DECISIONS_KEPT_MAX + 10; at++)
    approvals.add(organization, catalog, ['claude'], { note: `${at}` })
  const kept = store.decisions.history(id, 'claude')
  t.equal(kept.length, DECISIONS_KEPT_MAX)
  t.match([kept[0], kept.at(-1)], [{ note: `${DECISIONS_KEPT_MAX + 9}` }, { note: '10' }])
  const entries = store.auditLog.ofOrganization(id).slice(0, 3)
  t.match(entries, [
    { action: 'approval.add', subject: 'claude', details: { note: 'Pilot' } },
    { action: 'approval.reject', subject: 'claude', details: { owner: 'Legal' }, actor: 'member Ada@acme.example' },
    { action: 'approval.remove', details: {} },
  ])
})

t.test('an undo restores the author and the time, and the next undo is of the decision before', async (t) => {
  const { store, clock, organization, approvals } = made(t)
  const { id } = organization
  const actor = 'operator operator'
  const next = () => undoableDecisions(store, id, actor, clock.nowMs())?.decidedAtMs
  for (const note of ['first', 'second', 'third']) {
    approvals.add(organization, catalog, ['claude'], { note })
    clock.add(MINUTE_MS)
  }
  for (const [note, minute] of [
    ['second', 1],
    ['first', 0],
  ] as const) {
    approvals.undo(organization, NOON + (minute + 1) * MINUTE_MS)
    const decidedAtMs = NOON + minute * MINUTE_MS
    t.match(store.decisions.get(id, 'claude'), { kind: 'approved', note, decidedBy: actor, decidedAtMs })
    t.equal(next(), decidedAtMs)
  }
  approvals.undo(organization, NOON)
  t.match(store.decisions.get(id, 'claude'), { kind: 'withdrawn', decidedAtMs: clock.nowMs() })
  t.equal(next(), undefined)
  t.throws(() => approvals.undo(organization, clock.nowMs()), { code: 'CONFLICT' })
})

t.test('an approval that expired can be given again with the same terms', async (t) => {
  const { store, clock, organization, approvals } = made(t)
  approvals.add(organization, catalog, ['claude'], { expiresAtMs: NOON + 1 })
  approvals.add(organization, catalog, ['claude'], { expiresAtMs: NOON + 1 })
  t.equal(store.decisions.history(organization.id, 'claude').length, 1)
  clock.add(1)
  approvals.add(organization, catalog, ['claude'], { expiresAtMs: NOON + 2 })
  t.match(store.decisions.history(organization.id, 'claude'), [{ sequence: 2 }, { sequence: 1 }])
})

const REFUSED = [
  { name: 'a note of two lines', terms: { note: 'one\ntwo' } },
  { name: 'a note that is too long', terms: { note: 'x'.repeat(DECISION_NOTE_BYTES_MAX + 1) } },
  { name: 'a note that turns the direction of text', terms: { note: 'safe \u202e evil' } },
  { name: 'an owner with blanks around', terms: { owner: ' ada ' } },
  { name: 'an owner that is too long', terms: { owner: 'x'.repeat(300) } },
  { name: 'an end that has passed', terms: { expiresAtMs: NOON } },
  { name: 'an end in eleven years', terms: { expiresAtMs: NOON + 11 * 366 * DAY_MS } },
  { name: 'an end that is no whole number', terms: { expiresAtMs: NOON + 0.5 } },
  { name: 'an end that is no number', terms: { expiresAtMs: Number.NaN } },
]

for (const { name, terms } of REFUSED) {
  t.test(`refused: ${name}`, async (t) => {
    const { store, organization, approvals } = made(t)
    t.throws(() => approvals.add(organization, catalog, ['claude'], terms), { code: 'USAGE' })
    t.throws(() => approvals.reject(organization, catalog, ['claude'], terms), { code: 'USAGE' })
    t.same(store.decisions.ofOrganization(organization.id), [])
    t.same(store.auditLog.ofOrganization(organization.id), [])
  })
}

t.test('at the limit, platforms whose decision ended the longest ago are forgotten', async (t) => {
  const { store, clock, organization, approvals } = made(t)
  const { id } = organization
  const decide = (platformIds: readonly string[], more: Partial<Decision> = {}) =>
    store.environment.write(() =>
      store.decisions.putAll(
        id,
        platformIds.map((platformId) => ({ ...terms('approved'), platformId, ...more })),
        clock.nowMs(),
      ),
    )
  const filling = Array.from({ length: DECIDED_PLATFORMS_MAX - 3 }, (_, at) => `filling-${at}`)
  t.ok(decide(filling))
  t.ok(decide(['ended-later'], { expiresAtMs: NOON - 1 }))
  t.ok(decide(['ended-first'], { expiresAtMs: NOON - 2 }))
  t.ok(decide(['ended-first'], { expiresAtMs: NOON - 3 }), 'with a past decision')
  t.ok(decide(['in-force'], { expiresAtMs: NOON + 1 }))
  t.ok(decide(['one-more']))
  t.same(store.decisions.history(id, 'ended-first'), [])
  t.equal(store.decisions.history(id, 'ended-later').length, 1)
  approvals.add(organization, catalog, ['claude'])
  t.same(store.decisions.history(id, 'ended-later'), [])
  t.throws(() => approvals.add(organization, catalog, ['chatgpt']), { code: 'CONFLICT' })
  t.ok(decide(['filling-7'], { note: 'another' }), 'a platform with a decision needs no space')
  clock.add(1)
  approvals.add(organization, catalog, ['chatgpt'])
  t.same(store.decisions.history(id, 'in-force'), [], 'it has expired since')
  t.equal(store.decisions.ofOrganization(id).length, DECIDED_PLATFORMS_MAX)
})

t.test('each organization has its own decisions', async (t) => {
  const { store, organization, approvals, ...opened } = made(t)
  const other = makeOrganization({ store, ...opened }, 'Globex')
  approvals.add(organization, catalog, ['claude'])
  t.same(store.decisions.ofOrganization(other.id), [])
  t.throws(() => approvals.remove(other, catalog, ['claude']), { code: 'NOT_FOUND' })
})

t.test('a decision about many platforms reads the record of all decisions a few times', (t) => {
  const site = openStore(t)
  const organization = makeOrganization(site, 'Acme')
  const { decisions } = site.store
  const { approvals } = new Administration(site.store, site.clock)
  const ids = catalog.platforms.map(({ id }) => id)
  let reads = 0
  const last = decisions.last.bind(decisions)
  decisions.last = (organizationId) => {
    reads++
    return last(organizationId)
  }
  approvals.add(organization, catalog, ids, { note: 'one' })
  approvals.add(organization, catalog, ids, { note: 'two' })
  approvals.remove(organization, catalog, ids)
  t.same(findingsOf(site.store), [])
  t.ok(reads < 20, `${reads} reads for ${ids.length} platforms, with a check of the store`)
  t.equal(decisions.get(organization.id, ids[0] ?? '')?.kind, 'withdrawn')
  t.end()
})
