import t from 'tap'
import { IngestAccounting } from '../../../engine/ingest/ingest-accounting.ts'
import { Outcome } from '../../../engine/ingest/outcome.ts'
import { makeOrganization, NOON, openStore, quietLog } from '../../support/store.ts'

t.test('while the store cannot be written, counts wait in one row per source, and none is lost', async (t) => {
  const opened = openStore(t)
  const { store } = opened
  const { id: organizationId } = makeOrganization(opened, 'Acme')
  const owner = { organizationId, tokenId: '22222222-2222-4222-8222-222222222222', label: 'l' }
  const accounting = new IngestAccounting(store, quietLog)
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
    accounting.write()
  }
  t.equal(store.sources.ofOrganization(organizationId).length, 0)
  environment.write = write
  accounting.write()
  const rows = store.sources.ofOrganization(organizationId)
  t.equal(rows.length, SOURCES)
  t.ok(rows.every(({ received, counts }) => received === SECONDS && counts[Outcome.stored] === SECONDS))
  t.ok(rows.every(({ formats }) => Object.values(formats)[0] === SECONDS))
  t.equal(accounting.lost, 0)
})
