import t from 'tap'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { HOUR_MS } from '../../../engine/kernel/process/clock.ts'
import { addressBytes } from '../../../engine/kernel/process/network.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { PublishedList } from '../../../engine/store/published.ts'
import type { Store } from '../../../engine/store/store.ts'
import { alertSite, webhookReceiver } from '../../support/alerts.ts'
import { quietLog, registries, Sender } from '../../support/store.ts'

/** All clients of these tests are 10.9.8.x or jdoe. */
const CLIENT = '10.9.8.'
const CLIENT_KEY = Buffer.from(addressBytes(`${CLIENT}1`) ?? []).subarray(0, -1)
const TEXTS = [CLIENT, 'jdoe', 'laptop-of-joan']

/** The tables with a record that names a client, in its key or its value. */
function tablesWithClients({ environment }: Store): string[] {
  return environment.read(() =>
    [...environment.tables]
      .filter(([, table]) =>
        [...table.getRange({})].some(({ key, value }) => {
          const bytes = Buffer.from(value)
          return TEXTS.some((text) => bytes.includes(text) || key.includes(text)) || key.includes(CLIENT_KEY)
        }),
      )
      .map(([name]) => name)
      .sort(),
  )
}

for (const mode of ['off', 'pseudonym'] as const) {
  t.test(`after a change to ${mode}, no record of the store names a client, and alerts are still sent`, async (t) => {
    const [late, refusing] = [await webhookReceiver(t), await webhookReceiver(t)]
    const site = alertSite(t)
    const { store, clock, administration, organization } = site
    const { id } = organization
    site.addChannel({ kind: 'webhook', url: late.url }, { name: 'late' })
    site.addChannel({ kind: 'webhook', url: refusing.url }, { name: 'refusing' })
    late.answer = () => ({ status: 503 })
    refusing.answer = () => ({ status: 422 })
    const { alerts, clients, clientNames, organizations } = administration
    organizations.set(organization, { apiClients: true })
    const named = store.organizations.get(id) ?? organization
    alerts.setThreshold(organization, 'unapproved-platform', 1)
    alerts.setThreshold(organization, 'platform-volume', 1)
    alerts.setThreshold(organization, 'coverage-low', 100)

    const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
    const sender = new Sender()
    const send = async (): Promise<void> => {
      const events = ['claude.ai', 'chatgpt.com', 'nobody.example'].flatMap((name) =>
        [1, 2, 3].map((host) =>
          sender.event(name, clock.nowMs(), { client: `${CLIENT}${host}`, user: 'jdoe', count: 9 }),
        ),
      )
      t.match(await acceptor.accept(id, events), { kind: 'stored', accepted: 9 })
    }
    await send()
    runScan(store, registries, id, 'schedule', clock)
    await send()
    clientNames.addNetwork(named, `${CLIENT}7/32`, 'laptop-of-joan')
    clientNames.addNetwork(named, '10.0.0.0/8', 'Company')
    clientNames.importHosts(named, readHostNames(`${CLIENT}1,laptop-of-joan`, 'names').names)
    clients.ofClient(named, `${CLIENT}1`)
    clients.ofClient(named, 'jdoe')
    clients.ofPlatform(named, 'claude', 'Claude')
    site.evaluate()
    await site.deliver()
    const letters = (): number =>
      store.alertChannels
        .ofOrganization(id)
        .reduce((sum, channel) => sum + store.alertChannels.deadLetterCount(id, channel.id), 0)
    const waiting = (): number =>
      store.alertChannels
        .ofOrganization(id)
        .reduce((sum, channel) => sum + store.alertChannels.waiting(id, channel.id), 0)
    const [dead, left] = [letters(), waiting()]
    t.ok(dead > 0 && left > 0, `${dead} dead letters, ${left} messages wait`)
    t.same(
      tablesWithClients(store),
      [
        'audit-log',
        'buffer',
        'client-names',
        'client-networks',
        'client-summaries',
        'clients',
        'published',
        'unmatched-events',
      ],
      'alerts, their queue and dead letters name no client',
    )

    const changed = organizations.set(named, { clients: mode })
    for (const _step of organizations.eraseClients(changed));
    t.same(tablesWithClients(store), [])
    t.same(
      store.auditLog
        .ofOrganization(id)
        .filter(({ action }) => action === 'client.read')
        .map(({ subject }) => subject),
      ['an erased client', 'an erased client', 'Claude'],
      'who read what stays in the audit log',
    )
    t.same(
      store.clientNames.networks(id).map(({ name }) => name),
      ['Company'],
    )
    const head = store.published.head(id, PublishedList.discovery)
    t.equal(head?.count, 2, 'the findings stay published')
    clients.ofClient(changed, `${CLIENT}1`)
    clients.ofClient(changed, 'jdoe')
    await send()
    runScan(store, registries, id, 'administrator', clock)
    t.same(tablesWithClients(store), [], 'nor after later readings, events and scans')

    late.received.length = 0
    refusing.received.length = 0
    late.answer = () => ({ status: 204 })
    refusing.answer = late.answer
    clock.add(HOUR_MS)
    t.equal(alerts.retry(changed, 'refusing'), dead)
    await site.deliver()
    t.equal(late.received.length, left, 'what waited is sent')
    t.equal(refusing.received.length, dead, 'and dead letters can be sent again')
    for (const { body } of [...late.received, ...refusing.received]) {
      for (const text of TEXTS) t.notMatch(body, text)
    }
  })
}
