import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { DAY_MS } from '../../../engine/kernel/process/clock.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { DailyRetention } from '../../../engine/store/daily-retention.ts'
import { applyRetention, retentionOf } from '../../../engine/store/retention.ts'
import type { SourceDelta } from '../../../engine/store/sources.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { makeOrganization, openStore, quietLog, registries, type TestStore } from '../../support/store.ts'

function source(organizationId: string, address: string, lastSeenMs: number): SourceDelta {
  return {
    organizationId,
    tokenId: organizationId,
    listener: 'tcp',
    address,
    host: 'fw',
    lastSeenMs,
    received: 2,
    counts: [1, 0, 1, 0, 0, 0, 0, 0],
    formats: {},
    sample: '',
    zoneMinutes: 0,
    timesUnread: 0,
    hasUnknownToken: false,
  }
}

const scanned = ({ store, clock }: TestStore, id: string): string =>
  runScan(store, registries, id, 'schedule', clock).id

t.test('expired records are removed, and published ones stay', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const administration = new Administration(store, clock)
  const organization = administration.organizations.create({ name: 'Acme', domain: 'acme.example', plan: 'enterprise' })
  const other = makeOrganization(opened, 'Other').id
  const { id } = organization
  t.same(retentionOf(organization), { scanDays: 400, auditDays: 400, sourceDays: 400, clientDays: 30 })
  for (const each of [id, id, other]) {
    scanned(opened, each)
    clock.add(1)
  }
  store.environment.write(() => store.sources.add([source(id, '192.0.2.1', clock.nowMs())]))
  clock.add(399 * DAY_MS)
  const removed = administration.retention.apply(organization)
  t.same(removed, { scans: 0, auditEntries: 0, sources: 0, clientRecords: 0 }, 'a day earlier, nothing is removed')
  store.environment.write(() => store.sources.add([source(id, '192.0.2.2', clock.nowMs())]))
  clock.add(2 * DAY_MS)
  t.same(administration.retention.apply(organization), { scans: 1, auditEntries: 1, sources: 1, clientRecords: 0 })
  t.equal(store.scans.ofOrganization(id).length, 1, 'the last completed one is what the API shows')
  t.equal(store.scanStates.get(id).stored, 1)
  t.equal(store.scans.ofOrganization(other).length, 1)
  t.match(
    store.sources
      .ofOrganization(id)
      .map(({ address, received }) => `${address} ${received}`)
      .sort(),
    ['192.0.2.2 2', 'other 2'],
    'the sums stay',
  )
  t.same(administration.retention.apply(organization), { scans: 0, auditEntries: 0, sources: 0, clientRecords: 0 })
  // A new scan replaces the one that was kept.
  scanned(opened, id)
  t.equal(administration.retention.apply(organization).scans, 1)
})

t.test('retention periods are set one by one, within limits', async (t) => {
  const { store, clock } = openStore(t)
  const administration = new Administration(store, clock)
  const organization = administration.organizations.create({ name: 'Acme', domain: 'acme.example', plan: 'enterprise' })
  administration.retention.set(organization, { scanDays: 7 })
  const changed = administration.retention.set(organization, { auditDays: 90 })
  t.same(retentionOf(changed), { scanDays: 7, auditDays: 90, sourceDays: 400, clientDays: 30 })
  for (const days of [{ auditDays: 89 }, { scanDays: 0 }, { sourceDays: 3651 }, { scanDays: 1.5 }]) {
    t.throws(() => administration.retention.set(organization, days), { code: 'USAGE' }, JSON.stringify(days))
  }
  t.match(store.auditLog.all().at(-1), { action: 'retention.set', details: { auditDays: 90 } })
})

t.test('many records are removed in short transactions, once a day', async (t) => {
  const { store, clock, id } = acmeSite(t)
  const entry = { organizationId: id, actor: 'operator test', action: 'x', subject: 'y', details: {} }
  const append = (count: number): void =>
    store.environment.write(() => {
      for (let times = 0; times < count; times++) store.auditLog.append({ ...entry, timeMs: clock.nowMs() })
    })
  append(1201)
  store.environment.write(() =>
    store.sources.add(Array.from({ length: 700 }, (_, at) => source(id, `10.0.${at >> 8}.${at & 255}`, clock.nowMs()))),
  )
  clock.add(401 * DAY_MS)
  const steps = [...applyRetention(store, id, clock.nowMs())]
  t.same(
    steps.map(({ auditEntries, sources }) => auditEntries + sources),
    [500, 500, 500, 400],
  )
  t.equal(store.auditLog.ofOrganization(id).length, 1, 'the last entry stays, since the next sequence follows it')
  append(3)
  clock.add(401 * DAY_MS)
  await new DailyRetention(store, clock, quietLog).run()
  t.equal(store.auditLog.ofOrganization(id).length, 1)
})
