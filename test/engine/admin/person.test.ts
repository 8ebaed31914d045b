import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { readGroups, storedGroups } from '../../../engine/admin/client-groups.ts'
import { clientList } from '../../../engine/admin/client-list.ts'
import { platformUse } from '../../../engine/admin/client-use.ts'
import { readHostNames } from '../../../engine/admin/host-names-file.ts'
import { personOf, personRows } from '../../../engine/admin/persons.ts'
import { checkStore } from '../../../engine/check/check.ts'
import { EventAcceptor } from '../../../engine/ingest/accept.ts'
import { addressBytes } from '../../../engine/kernel/process/network.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import type { Store } from '../../../engine/store/store.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { admin, runAdmin } from '../../support/programs.ts'
import { makeOrganization, openStore, quietLog, registries, Sender } from '../../support/store.ts'

const ADDRESS = '10.9.8.1'
const ADDRESS_KEY = Buffer.from(addressBytes(ADDRESS) ?? [])

/** The tables whose keys or values have one of these texts. */
function tablesWith({ environment }: Store, texts: readonly string[]): string[] {
  return environment.read(() =>
    [...environment.tables]
      .filter(([, table]) =>
        [...table.getRange({})].some(({ key, value }) => {
          const bytes = Buffer.from(value)
          return texts.some((text) => bytes.includes(text) || key.includes(text)) || key.includes(ADDRESS_KEY)
        }),
      )
      .map(([name]) => name)
      .sort(),
  )
}

for (const mode of ['full', 'pseudonym'] as const) {
  t.test(`a person is exported and erased, with clients "${mode}"; nobody else is`, async (t) => {
    const opened = openStore(t)
    const { store, clock } = opened
    const administration = new Administration(store, clock)
    const { clients, clientGroups, clientNames, organizations, persons } = administration
    const organization = organizations.set(makeOrganization(opened, 'Acme'), { clients: mode, apiClients: true })
    const { id } = organization
    const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
    const sender = new Sender()
    const send = () =>
      acceptor.accept(
        id,
        ['claude.ai', 'nobody.example'].flatMap((name) => [
          sender.event(name, clock.nowMs(), { client: ADDRESS, user: 'jdoe', count: 3, bytesSent: 5 }),
          sender.event(name, clock.nowMs(), { client: ADDRESS }),
          sender.event(name, clock.nowMs(), { client: '10.9.7.2', user: 'ada' }),
        ]),
      )
    await send()
    runScan(store, registries, id, 'schedule', clock)
    await send()
    if (mode === 'full') {
      clientNames.addNetwork(organization, `${ADDRESS}/32`, 'desk of joan')
      clientNames.importHosts(organization, readHostNames(`${ADDRESS},laptop-of-joan`, 'names').names)
    }
    const groups = readGroups('jdoe,Finance\nada,Finance\n', 'groups')
    clientGroups.replace(organization, await storedGroups(store, organization, groups))
    clients.ofClient(organization, 'jdoe')
    clients.ofClient(organization, 'ada')

    const person = personOf(store, organization, ['jdoe'], true)
    const [user = '', address = ''] = person
    t.equal(person.length, 2)
    t.same(personOf(store, organization, ['jdoe'], false), [user])
    const kinds = new Map<string, number>()
    for (const { kind, client } of store.environment.read(() => personRows(store, organization, person))) {
      t.not(client, '10.9.7.2')
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    }
    // Of each scan, nobody.example waits.
    const names = mode === 'full' ? { 'name of an address': 1 } : {}
    t.same(Object.fromEntries(kinds), {
      group: 1,
      ...names,
      'event that waits': 6,
      use: 2,
      'audit entry': mode === 'full' ? 2 : 1,
    })
    const texts = [user, address, 'jdoe', ADDRESS, 'of-joan', 'of joan']
    t.ok(tablesWith(store, texts.slice(0, 2)).length > 5)

    const before = store.environment.read(() => platformUse(store, organization, 'claude', clock.nowMs()))
    persons.erase(organization, person)
    t.throws(() => persons.erase(organization, person), { code: 'CONFLICT', message: /are being erased/ })
    for (const _step of organizations.eraseClients(organization));
    t.same(tablesWith(store, texts), [])
    t.same(
      store.clientGroups.ofOrganization(id).map(({ members }) => members.length),
      [1],
    )
    const entries = store.auditLog.ofOrganization(id).filter(({ action }) => /^client\.(read|erase)$/.test(action))
    t.match(
      entries.map(({ subject }) => subject),
      ['an erased client', mode === 'full' ? 'ada' : /^u-/, 'an erased client'],
    )
    const after = store.environment.read(() => platformUse(store, organization, 'claude', clock.nowMs()))
    t.match(after, { matches: before.matches, clientsTotal: before.clientsTotal, otherMatches: 4 })
    t.equal(after.clients.length, 1)
    runScan(store, registries, id, 'schedule', clock)
    t.same(tablesWith(store, texts), [], 'the buffered events, too')
    const list = store.environment.read(() =>
      clientList(store, organization, loadCatalog().platforms, {}, clock.nowMs()),
    )
    t.match(list, { isMade: true, total: 1, clients: [{ matches: 2 }] })
    t.same(checkStore(store).findings, [])
  })
}

for (const mode of ['full', 'pseudonym'] as const) {
  t.test(`with clients "${mode}", an address selects only use without a user`, async (t) => {
    const opened = openStore(t)
    const { store, clock } = opened
    const { clients, organizations, persons } = new Administration(store, clock)
    const organization = organizations.set(makeOrganization(opened, 'Acme'), { clients: mode })
    const { id } = organization
    const acceptor = new EventAcceptor(store, clock, quietLog, () => {})
    const sender = new Sender()
    const send = () =>
      acceptor.accept(
        id,
        ['claude.ai', 'nobody.example'].flatMap((name) =>
          [{ user: 'Doe, Jane' }, {}, { user: 'eve' }].map((user) =>
            sender.event(name, clock.nowMs(), { client: ADDRESS, ...user }),
          ),
        ),
      )
    await send()
    runScan(store, registries, id, 'schedule', clock)
    await send()
    clients.ofClient(organization, 'Doe, Jane')
    clients.ofClient(organization, 'eve')
    const person = personOf(store, organization, ['Doe, Jane'], true)
    const [jane = '', address = ''] = person
    const [eve = ''] = personOf(store, organization, ['eve'], false)
    const of = (texts: readonly string[], kinds = /use|event/): string[] =>
      store.environment
        .read(() => personRows(store, organization, texts))
        .filter(({ kind }) => kinds.test(kind))
        .map(({ kind, user }) => `${kind} ${user}`)
        .sort()
    // The scan leaves nobody.example.
    const three = (user: string): string[] => [...Array(3).fill(`event that waits ${user}`), `use ${user}`]
    t.same(of([address]), three(''))
    t.same(of(person), [...three(''), ...three(jane)].sort())
    t.same(of([jane], /audit/).length, 1)

    persons.erase(organization, person)
    t.throws(() => personOf(store, organization, ['eve'], false), { code: 'CONFLICT', message: /are being erased/ })
    for (const _step of organizations.eraseClients(organization));
    t.same(of(person, /./), [])
    t.same(of([eve]), three(eve))
    t.same(of([eve], /audit/).length, 1)
    t.same(tablesWith(store, [jane]), [])

    const addressesOf = (text: string) => personOf(store, organization, [text], true)
    t.throws(() => addressesOf('eve'), { code: 'CONFLICT', message: /next scan makes the list of addresses/ })
    t.same(personOf(store, organization, ['eve'], false), [eve])
    runScan(store, registries, id, 'schedule', clock)
    t.same(addressesOf('eve'), [eve, address])
    t.same(of([eve]), [...Array(2).fill(`event that waits ${eve}`), `use ${eve}`])
  })
}

t.test('commands export and erase', async (t) => {
  const opened = acmeSite(t)
  const { clock, sender, buffer, scan } = opened
  const use = { client: ADDRESS, user: 'jdoe', bytesSent: 7 }
  buffer([sender.event('claude.ai', clock.nowMs(), use)])
  scan()
  const data = ['--data-dir', opened.directory]
  const row = { kind: 'use', at: '2026-11-20', platform: 'claude', client: ADDRESS, user: 'jdoe', matches: 1 }
  t.match(await runAdmin(['client', 'erase', ADDRESS, ...data]), {
    status: 5,
    stderr: new RegExp(`NOT_FOUND.*nothing is stored about ${ADDRESS}`, 's'),
  })
  t.match(await admin('client', 'export', 'jdoe', ...data), [{ ...row, bytes_sent: 7 }, { kind: 'audit entry' }])
  t.match(await admin('client', 'erase', 'jdoe', '--addresses', ...data), [
    { erased: `jdoe, ${ADDRESS}`, data: 'use (1), audit entry (1)' },
  ])
  t.match(await admin('client', 'export', 'jdoe', ADDRESS, ...data), [{ kind: 'audit entry', text: /client\.export/ }])
  const { status, stderr } = await runAdmin(['client', 'erase', 'jdoe', '--as', 'nobody', ...data])
  t.match([status, stderr], [5, /nobody is not a member/])
})
