import t from 'tap'
import { writeSources } from '../../../engine/admin/ingest-file.ts'
import { IngestAccounting, storeSink } from '../../../engine/ingest/ingest-accounting.ts'
import { Origin } from '../../../engine/ingest/origin.ts'
import { Outcome } from '../../../engine/store/outcomes.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { openPipeline } from '../../support/pipeline.ts'
import { delta } from '../../support/sources.ts'
import { NOON, quietLog } from '../../support/store.ts'
import { rfc5424 } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

t.test('while the store cannot be written, counts wait in one row per source, and none is lost', async (t) => {
  const { store, id: organizationId } = acmeSite(t)
  const owner = { organizationId, tokenId: '22222222-2222-4222-8222-222222222222', label: 'l' }
  const accounting = new IngestAccounting(storeSink(store), quietLog)
  const { environment } = store
  const write = environment.write.bind(environment)
  environment.write = () => {
    throw new Error('the disk is full')
  }
  const SOURCES = 2500
  const SECONDS = 50
  for (let second = 0; second < SECONDS; second++) {
    for (let index = 0; index < SOURCES; index++) {
      const source = accounting.sources.get(owner, 'https', `10.0.${index >> 8}.${index & 255}`, '')
      source.receive(NOON + second)
      source.count(Outcome.stored, NOON + second)
      source.formats[0] = 1
    }
    await accounting.write()
  }
  t.equal(store.sources.ofOrganization(organizationId).length, 0)
  environment.write = write
  await accounting.write()
  const rows = store.sources.ofOrganization(organizationId)
  t.equal(rows.length, SOURCES)
  t.ok(rows.every(({ received, counts }) => received === SECONDS && counts[Outcome.stored] === SECONDS))
  t.ok(rows.every(({ formats }) => Object.values(formats)[0] === SECONDS))
  t.equal(accounting.lost, 0)
})

t.test('counters that another thread reports are stored without waiting for the next second', async (t) => {
  const { store, id: organizationId } = acmeSite(t)
  t.intercept(globalThis, 'setInterval', { value: () => ({}) })
  const accounting = new IngestAccounting(storeSink(store), quietLog)
  accounting.start()
  const tokenId = '22222222-2222-4222-8222-222222222222'
  accounting.add({
    sources: [delta({ organizationId, tokenId, counts: { stored: 1 } })],
    rejects: [],
    candidates: [],
  })
  t.equal(store.sources.ofOrganization(organizationId).length, 0, 'they wait for other threads')
  await until('the row is stored', () => store.sources.ofOrganization(organizationId).length === 1)
  await accounting.stop()
})

t.test('ingest file stores no rows of an organization that was removed while it read', async (t) => {
  const opened = openPipeline(t)
  const { store, pipeline, organization, token } = opened
  const origin = new Origin('tcp', '192.0.2.1', 514)
  t.equal(opened.take(rfc5424(token.raw, 'not a log'), origin), 'unknown')
  opened.administration.organizations.remove(organization, () => {})
  writeSources(store, pipeline)
  t.same(store.sources.ofOrganization(organization.id), [])
  t.same(store.sources.rejectsOf(organization.id), [])
})
