import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BackgroundThread } from '../../api/background-thread.ts'
import { makeOrganization, openStore, quietLog, Sender } from '../support/store.ts'

t.test('a thread that cannot start does not block the next one', async (t) => {
  const site = openStore(t)
  const { store, clock } = site
  const organization = makeOrganization(site, 'Acme')
  const event = new Sender().event('claude.ai', clock.nowMs())
  store.environment.write(() => store.buffer.append(organization.id, [event]))
  const nowhere = join(site.directory, 'later')
  const thread = new BackgroundThread(nowhere, '', quietLog)
  const requests = [{ organizationId: organization.id, trigger: 'buffer' as const }]
  for (let attempt = 0; attempt < 3; attempt++) await t.rejects(thread.run(requests), { code: 'NOT_FOUND' })
  mkdirSync(join(nowhere, 'store'), { recursive: true })
  await store.environment.copyInto(join(nowhere, 'store'))
  t.match(await thread.run(requests), [{ scan: { status: 'completed', eventsAdded: 1 } }])
  await thread.close()
})
