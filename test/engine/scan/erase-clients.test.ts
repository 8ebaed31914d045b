import { existsSync } from 'node:fs'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { NO_CLIENT } from '../../../engine/kernel/event/client.ts'
import { clientKeyFile, Pseudonyms } from '../../../engine/kernel/process/client-key.ts'
import { DistinctClients, HashReplacement, hashClient } from '../../../engine/scan/distinct-clients.ts'
import { beginErasure, finishErasure } from '../../../engine/scan/erase-clients.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { ClientReader } from '../../../engine/store/client-records.ts'
import type { Store } from '../../../engine/store/store.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { capturedLog } from '../../support/captured-log.ts'
import * as fc from '../../support/property.ts'
import { makeOrganization, matcher, NOON, openStore, quietLog, registries, Sender } from '../../support/store.ts'

/** The tables with a record that contains the text or bytes. */
function tablesWith(store: Store, text: string | Buffer): string[] {
  return [...store.environment.tables]
    .filter(([, table]) => [...table.getRange({})].some(({ value }) => value.includes(text)))
    .map(([name]) => name)
    .sort()
}

function clientsOf(store: Store, id: string): string[] {
  const clients: string[] = []
  for (const { day, bytes } of store.clientDays.since(id, 0)) {
    const reader = new ClientReader(bytes, day)
    while (reader.next()) clients.push(`${reader.client} ${reader.user}`.trim())
  }
  return clients.sort()
}

const estimates = (store: Store, id: string): number[] =>
  Array.from(store.evidence.since(id, 0), ({ evidence }) => DistinctClients.fromBytes(evidence.clients).estimate)

t.test('with pseudonyms, no address or user name is stored, and the count of clients stays', async (t) => {
  const { store, clock, directory, organization, id, administration } = acmeSite(t)
  const { clientKeyId = '' } = administration.organizations.set(organization, { clients: 'pseudonym' })
  const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
  const sender = new Sender()
  const events = ['10.9.8.1', '10.9.8.2', '10.9.8.1', NO_CLIENT].map((client, at) =>
    sender.event('claude.ai', NOON, { client, ...(at === 0 ? { user: 'jürgen.doe', bytesSent: 7 } : {}) }),
  )
  t.match(await acceptor.accept(id, [...events, sender.event('nobody.example', NOON, { client: '10.9.8.3' })]), {
    kind: 'stored',
    accepted: 5,
  })
  const leaks = (): string[] => [...tablesWith(store, '10.9.8.'), ...tablesWith(store, 'jürgen')]
  t.same(leaks(), [])
  runScan(store, registries, id, 'schedule', clock)
  t.same(leaks(), [])
  t.same(estimates(store, id), [3])
  const pseudonyms = new Pseudonyms(directory, id, clientKeyId)
  const revealed = clientsOf(store, id).map((text) =>
    text
      .split(' ')
      .map((each) => pseudonyms.reveal(each).text)
      .join(' '),
  )
  t.same(revealed.sort(), ['10.9.8.1', '10.9.8.1 jürgen.doe', '10.9.8.2'])
})

t.test('without the key file, clients are not kept', async (t) => {
  const { store, clock, directory, organization, id } = acmeSite(t)
  new Administration(store, clock).organizations.set(organization, { clients: 'pseudonym' })
  clientKeyFile(directory, id).remove()
  const { log, entries } = capturedLog()
  const acceptor = new EventAcceptor(store, clock, log, () => {})
  const sender = new Sender()
  for (let batch = 0; batch < 3; batch++) await acceptor.accept(id, [sender.event('claude.ai', NOON)])
  t.same(
    store.buffer.read(id, 0, 9).map(({ event }) => event.client),
    [NO_CLIENT, NO_CLIENT, NO_CLIENT],
  )
  t.equal(entries.filter(({ msg }) => /no key for pseudonyms/.test(msg)).length, 1)
})

for (const mode of ['off', 'pseudonym'] as const) {
  t.test(`a change to ${mode} erases every address, in steps that continue after a kill`, async (t) => {
    const opened = acmeSite(t)
    const { store, clock, organization, id, administration } = opened
    const other = makeOrganization(opened, 'Other').id
    const sender = new Sender()
    const events = (name: string, count: number) =>
      Array.from({ length: count }, (_, at) =>
        sender.event(name, NOON, { client: `10.9.${at >> 8}.${at & 255}`, user: `user${at % 9}` }),
      )
    const fill = (organizationId: string): void =>
      store.environment.write(() => {
        store.buffer.append(organizationId, [...events('claude.ai', 300), ...events('chatgpt.com', 200)])
        store.buffer.append(organizationId, events('nobody.example', 20))
      })
    for (const each of [id, other]) {
      fill(each)
      runScan(store, registries, each, 'schedule', clock)
      fill(each)
    }
    const before = estimates(store, id)
    const ofOther = clientsOf(store, other)
    const addresses = (): string[] => tablesWith(store, '10.9.')
    t.same(addresses(), ['buffer', 'client-summaries', 'clients', 'unmatched-events'])
    administration.organizations.set(organization, { clients: mode })
    // Killed after the first step; the next scan finishes.
    finishErasure(store, id).next()
    t.ok(store.clientErasures.get(id))
    runScan(store, registries, id, 'administrator', clock)
    t.notOk(store.clientErasures.get(id))
    t.same(clientsOf(store, id), [])
    t.same(clientsOf(store, other), ofOther, 'nothing of another organization changes')
    t.same(
      estimates(store, id).map((count, at) => Math.abs(count - (before[at] ?? 0)) <= 1),
      [true, true],
      'the unknown client of the buffered events at most is new',
    )
    store.environment.write(() => {
      for (const table of [store.environment.table('buffer'), store.environment.table('unmatched-events')]) {
        for (const { key, value } of [...table.getRange({})]) {
          if (key.subarray(0, 16).toString('hex') === id.replaceAll('-', '')) t.notOk(value.includes('10.9.'))
        }
      }
    })
  })
}

t.test('no count of clients has the hash of an address after the change', async (t) => {
  const opened = openStore(t)
  const { store, clock } = opened
  const [organization, other] = [makeOrganization(opened, 'Acme'), makeOrganization(opened, 'Other')]
  const sender = new Sender()
  const scan = (id: string, client: string): void => {
    store.environment.write(() => store.buffer.append(id, [sender.event('claude.ai', NOON, { client })]))
    runScan(store, registries, id, 'schedule', clock)
  }
  const hashOf = (client: string): Buffer => {
    const hash = Buffer.alloc(4)
    hash.writeUInt32LE(hashClient(new DataView(Uint8Array.from(Buffer.from(client)).buffer), 0, client.length))
    return hash
  }
  scan(organization.id, '10.9.8.7')
  scan(other.id, '10.9.8.6')
  t.same(tablesWith(store, hashOf('10.9.8.7')), ['daily-use', 'evidence'])
  new Administration(store, clock).organizations.set(organization, { clients: 'off' })
  t.same(tablesWith(store, hashOf('10.9.8.7')), ['evidence'], 'the sketches are removed with the change')
  scan(organization.id, NO_CLIENT)
  t.same(tablesWith(store, hashOf('10.9.8.7')), [])
  t.match(store.dailyUse.get(organization.id), [{ notApproved: 2 }])
  t.same(tablesWith(store, hashOf('10.9.8.6')), ['daily-use', 'evidence'], 'of another organization, nothing changes')
})

t.test('a scan that was prepared before the change does not write clients after it', async (t) => {
  const { store, clock, organization, id, sender, buffer } = acmeSite(t)
  buffer([sender.event('claude.ai', NOON, { client: '10.9.8.7' })])
  let isChanged = false
  const changing = {
    matcherOf: () => {
      if (!isChanged) {
        isChanged = true
        new Administration(store, clock).organizations.set(organization, { clients: 'off' })
      }
      return matcher
    },
  }
  t.match(runScan(store, changing, id, 'schedule', clock), { status: 'completed', eventsAdded: 1 })
  t.same(tablesWith(store, '10.9.8.7'), [])
})

t.test('a change to off removes the key; a change to full keeps what is stored', async (t) => {
  const { directory, organization, id, administration } = acmeSite(t)
  const { organizations } = administration
  const { file } = clientKeyFile(directory, id)
  const set = (clients: 'full' | 'pseudonym' | 'off'): void => {
    for (const _step of organizations.eraseClients(organizations.set(organization, { clients })));
  }
  set('pseudonym')
  t.ok(existsSync(file))
  set('full')
  t.ok(existsSync(file), 'stored pseudonyms can still be revealed')
  set('pseudonym')
  set('off')
  t.notOk(existsSync(file))
})

t.test('replaced hashes count as before, alone and together', async (t) => {
  const anyHashes = fc.array(fc.integer({ min: 1, max: 0xffff_ffff }), { maxLength: 400 })
  const sketchOf = (hashes: readonly number[]): Uint8Array => {
    const clients = new DistinctClients()
    for (const hash of hashes) clients.add(hash)
    return clients.toBytes()
  }
  const together = (a: Uint8Array, b: Uint8Array): number => {
    const clients = DistinctClients.fromBytes(a)
    clients.mergeBytes(b)
    return clients.estimate
  }
  fc.assert(
    fc.property(anyHashes, anyHashes, anyHashes, fc.integer(), (first, second, both, seed) => {
      const [a, b] = [sketchOf([...first, ...both]), sketchOf([...second, ...both])]
      const keyed = (number: number): number => Math.imul(number ^ (number / 2 ** 32) ^ seed, 0x9e3779b1) >>> 0
      const replacement = new HashReplacement(keyed)
      const [x, y] = [replacement.apply(a), replacement.apply(b)]
      t.equal(together(x, x), together(a, a))
      const difference = Math.abs(together(x, y) - together(a, b))
      t.ok(difference <= 2, `${difference}`)
      return true
    }),
    { numRuns: 40 },
  )
  t.not(Buffer.compare(sketchOf([5]), new HashReplacement((number) => number * 7919).apply(sketchOf([5]))), 0)
})

t.test('an erasure starts again with each change', async (t) => {
  const { store, id } = acmeSite(t)
  store.environment.write(() => beginErasure(store, id))
  const first = store.clientErasures.get(id)
  store.environment.write(() => beginErasure(store, id))
  t.not(store.clientErasures.get(id)?.sketchKey, first?.sketchKey)
  for (const _step of finishErasure(store, id));
  t.notOk(store.clientErasures.get(id))
})
