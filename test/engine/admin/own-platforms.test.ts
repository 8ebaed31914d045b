import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Administration, OPERATOR } from '../../../engine/admin/administration.ts'
import { provisionRegistry } from '../../../engine/admin/own-platforms.ts'
import { OWN_PATTERNS_MAX, OWN_PLATFORMS_MAX } from '../../../engine/limits.ts'
import { runScan } from '../../../engine/scan/scan-runner.ts'
import { SERVICE_WIDE } from '../../../engine/store/own-platforms.ts'
import { RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import { loadCatalog } from '../../../registry/catalog.ts'
import { platform, writeRegistryFile } from '../../support/own-platforms.ts'
import { admin, runAdmin } from '../../support/programs.ts'
import { makeOrganization, openStore, quietLog, Sender, type TestStore } from '../../support/store.ts'

const LINE = '1795162502.119 318 192.0.2.45 TCP_TUNNEL/200 1 CONNECT llm.corp.example:443 - HIER_DIRECT/192.0.2.1 -'

interface Site extends TestStore {
  readonly administration: Administration
  readonly catalog: () => ReturnType<typeof loadCatalog>
}

function site(t: Parameters<typeof openStore>[0]): Site {
  const opened = openStore(t)
  const registry = new RegistryInForce(opened.store)
  return {
    ...opened,
    administration: new Administration(opened.store, opened.clock),
    catalog: () => registry.catalogOf(SERVICE_WIDE),
  }
}

const ids = ({ store }: TestStore, organizationId: string): string[] =>
  store.ownPlatforms.ofOrganization(organizationId).map(({ entry }) => entry.id)

t.test('log lines of a custom platform become findings, by commands alone', async (t) => {
  const folder = t.testdir({})
  const data = ['--data-dir', join(folder, 'data')]
  const ofAcme = [...data, '--org', 'Acme']
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  await admin('organization', 'create', 'Other', '--domain', 'other.example', ...data)
  const [token] = await admin('token', 'generate', 'proxy', ...ofAcme)
  const file = writeRegistryFile(join(folder, 'reg.json'), [platform('corp-llm', 'llm.corp.example')])
  t.match(await admin('registry', 'add', file, ...ofAcme), [{ id: 'corp-llm', change: 'added', domains_total: 1 }])
  const log = join(folder, 'access.log')
  const nowSeconds = Math.floor(Date.now() / 1000)
  writeFileSync(log, `${[1, 2, 3].map((back) => LINE.replace('1795162502', `${nowSeconds - back}`)).join('\n')}\n`)
  const read = await admin('ingest', 'file', ...data, '--token', String(token?.['token']), log)
  t.match(read, [{ matched: 3, duplicates: 0, unmatched: 0 }])
  t.match(await admin('scan', 'run', ...ofAcme), [{ status: 'completed', summary: { platforms_discovered: 1 } }])
  t.match(await admin('scan', 'show', ...ofAcme), [{ platform_name: 'Own corp-llm', metadata: { matches: 3 } }])
  t.match(await admin('registry', 'check', 'x.llm.corp.example', ...ofAcme), [{ id: 'corp-llm' }])
  t.match(await admin('registry', 'check', 'x.llm.corp.example', ...data, '--org', 'Other'), [{ id: null }])
  t.match(await admin('registry', 'list', '--custom', ...ofAcme), [{ id: 'corp-llm', provisioned: false }])
  t.same(await admin('registry', 'list', '--custom', '--service-wide', ...data), [], 'none for every organization')
  t.match(await admin('approval', 'add', 'Own corp-llm', ...ofAcme), [{ id: 'corp-llm' }])
  t.match(await runAdmin(['approval', 'add', 'corp-llm', ...data, '--org', 'Other']), { status: 5 })
  t.match(await admin('registry', 'remove', 'corp-llm', ...ofAcme), [])
  t.same(await admin('scan', 'show', ...ofAcme), [], 'the finding leaves with the platform')
  await admin('registry', 'add', file, ...ofAcme)
  t.match(
    await admin('scan', 'show', ...ofAcme),
    [{ platform_name: 'Own corp-llm', metadata: { matches: 3 } }],
    'and returns',
  )
  const actions = (await admin('audit', 'list', ...ofAcme)).map(({ action, subject }) => `${action} ${subject}`)
  t.same(
    actions.filter((text) => text.startsWith('registry.')),
    ['registry.add corp-llm', 'registry.remove corp-llm', 'registry.add corp-llm'],
    'one entry each',
  )
})

t.test('custom platforms apply to every organization only with --service-wide', async (t) => {
  const folder = t.testdir({})
  const data = ['--data-dir', join(folder, 'data')]
  const file = writeRegistryFile(join(folder, 'own.json'), [platform('corp-llm', 'llm.corp.example')])
  const everyones = (): Promise<unknown[]> => admin('registry', 'list', '--custom', '--service-wide', ...data)
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  t.match(await admin('registry', 'add', file, ...data), [{ id: 'corp-llm' }], 'the only organization')
  t.match(await admin('registry', 'check', 'llm.corp.example', ...data), [{ id: 'corp-llm' }])
  await admin('organization', 'create', 'Other', '--domain', 'other.example', ...data)
  for (const words of [['add', file], ['remove', 'corp-llm'], ['export'], ['list', '--custom']]) {
    t.match(await runAdmin(['registry', ...words, ...data]), { status: 2, stderr: /--org/ }, words.join(' '))
  }
  t.match(await runAdmin(['registry', 'add', file, '--service-wide', '--org', 'Acme', ...data]), { status: 2 })
  process.env['POSTURE_ORG'] = 'Other'
  t.teardown(() => delete process.env['POSTURE_ORG'])
  t.match(await admin('registry', 'add', file, ...data), [{ id: 'corp-llm' }])
  t.match(await admin('registry', 'export', ...data), [{ platforms: [{ id: 'corp-llm' }] }])
  t.match(await admin('registry', 'check', 'llm.corp.example', ...data), [{ id: 'corp-llm' }])
  t.same(await admin('registry', 'remove', 'corp-llm', ...data), [])
  delete process.env['POSTURE_ORG']
  t.match(await admin('registry', 'list', '--custom', '--org', 'Acme', ...data), [{ id: 'corp-llm' }])
  t.same(await everyones(), [], 'nothing for every organization')
  await admin('registry', 'remove', 'corp-llm', '--org', 'Acme', ...data)
  await admin('registry', 'add', file, '--service-wide', ...data)
  t.match(await everyones(), [{ id: 'corp-llm' }])
  t.match(
    await admin('registry', 'check', 'llm.corp.example', ...data),
    [{ id: 'corp-llm' }],
    'one platform of all organizations',
  )
  t.match(await admin('registry', 'check', 'llm.corp.example', '--registry-file', file, ...data), [{ id: 'corp-llm' }])
  t.match(await runAdmin(['registry', 'list', '--registry-file', file, '--org', 'Acme', ...data]), { status: 2 })
})

t.test('export writes a file that add and a collector read', async (t) => {
  const folder = t.testdir({})
  const data = ['--data-dir', join(folder, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const shared = writeRegistryFile(
    join(folder, 'shared.json'),
    [platform('shared-llm', 'llm.shared.example', 'b.shared.example'), { id: 'claude', name: 'Claude for all' }],
    ['zapier'],
  )
  const own = writeRegistryFile(
    join(folder, 'own.json'),
    [platform('corp-llm', 'llm.corp.example', 'b.shared.example'), { id: 'claude', risk: { score: 1, why: 'ours' } }],
    ['chatgpt'],
  )
  await admin('registry', 'add', shared, '--service-wide', ...data)
  await admin('registry', 'add', own, ...data, '--org', 'Acme')
  const [exported] = await admin('registry', 'export', ...data, '--org', 'Acme')
  const file = join(folder, 'exported.json')
  writeFileSync(file, JSON.stringify(exported))
  const { platforms } = loadCatalog({ file })
  const found = (id: string) => platforms.find((one) => one.id === id)
  t.match(found('claude'), { name: 'Claude for all', risk: { score: 1 } })
  t.same(
    found('shared-llm')?.domains.map(({ domain }) => domain),
    ['llm.shared.example'],
  )
  t.same(found('corp-llm')?.domains.length, 2)
  t.same([found('chatgpt'), found('zapier')], [undefined, undefined])
  const [ofAll] = await admin('registry', 'export', '--service-wide', ...data)
  t.same(
    ((ofAll?.['platforms'] ?? []) as { id: string }[]).map(({ id }) => id),
    ['claude', 'shared-llm'],
  )
  await admin('registry', 'add', file, ...data, '--org', 'Acme')
  t.same((await admin('registry', 'export', ...data, '--org', 'Acme'))[0], exported, 'adding it changes nothing')
})

t.test('permissions: the operator for every organization, administrators for their own', async (t) => {
  const opened = site(t)
  const { administration, store, clock, catalog, directory } = opened
  const acme = makeOrganization(opened, 'Acme')
  const file = writeRegistryFile(join(directory, 'reg.json'), [platform('corp-llm', 'llm.corp.example')])
  administration.members.add(acme, 'ann', 'admin')
  administration.members.add(acme, 'mel', 'member')
  const as = (name: string) => new Administration(store, clock, { kind: 'member', name }).ownPlatforms
  t.throws(() => as('ann').add(undefined, catalog(), file), { code: 'NOT_ALLOWED', message: /operator/ })
  t.throws(() => as('mel').add(acme, catalog(), file), { code: 'NOT_ALLOWED' })
  t.same(ids(opened, acme.id), [])
  as('ann').add(acme, catalog(), file)
  t.throws(() => as('mel').remove(acme, ['corp-llm']), { code: 'NOT_ALLOWED' })
  as('ann').remove(acme, ['corp-llm'])
  new Administration(store, clock, OPERATOR).ownPlatforms.add(undefined, catalog(), file)
  t.throws(() => as('ann').remove(undefined, ['corp-llm']), { code: 'NOT_ALLOWED' })
  t.same(ids(opened, SERVICE_WIDE), ['corp-llm'])
  t.match(
    store.auditLog.ofOrganization(SERVICE_WIDE).map(({ action, subject, actor }) => ({ action, subject, actor })),
    [{ action: 'registry.add-service-wide', subject: 'corp-llm', actor: 'operator operator' }],
  )
})

t.test('errors and limits change nothing', async (t) => {
  const opened = site(t)
  const { administration, catalog, directory } = opened
  const acme = makeOrganization(opened, 'Acme')
  const add = (platforms: Parameters<typeof writeRegistryFile>[1], disable: readonly string[] = []): unknown =>
    administration.ownPlatforms.add(acme, catalog(), writeRegistryFile(join(directory, 'reg.json'), platforms, disable))
  add([platform('corp-llm', 'llm.corp.example')])
  const rows: Readonly<Record<string, readonly [work: () => unknown, thrown: { code: string; message?: RegExp }]>> = {
    'no such file': [() => administration.ownPlatforms.add(acme, catalog(), '/nowhere'), { code: 'REGISTRY_FILE' }],
    'a new platform that is not whole': [
      () => add([{ id: 'half', name: 'Half' }]),
      { code: 'REGISTRY_FILE', message: /half: vendor: is missing/ },
    ],
    'what is disabled is unknown': [() => add([], ['nobody']), { code: 'REGISTRY_FILE' }],
    'a domain of a platform that was added before': [
      () => add([platform('other', 'llm.corp.example')]),
      { code: 'REGISTRY_FILE', message: /llm\.corp\.example belongs to corp-llm/ },
    ],
    'too many platforms': [
      () => add(Array.from({ length: OWN_PLATFORMS_MAX }, (_, index) => platform(`p${index}`, `p${index}.example`))),
      { code: 'CONFLICT', message: /1001 custom platforms; at most 1000/ },
    ],
    'too many domains': [
      () => add([platform('big', ...Array.from({ length: 10_000 }, (_, index) => `d${index}.example`))]),
      { code: 'CONFLICT' },
    ],
    'too many patterns': [
      () => {
        const domains = Array.from({ length: OWN_PATTERNS_MAX + 1 }, (_, index) => {
          return {
            domain: `*-${index}.corp.example`,
            match: 'pattern',
            role: 'web',
            specificity: 1,
            purpose: 'use',
            evidence: 'listed',
          } as const
        })
        return add([{ ...platform('patterns'), domains }])
      },
      { code: 'CONFLICT', message: /patterns/ },
    ],
    'removing what is not there': [
      () => administration.ownPlatforms.remove(acme, ['corp-llm', 'chatgpt']),
      { code: 'NOT_FOUND', message: /"chatgpt" is not a custom platform/ },
    ],
  }
  for (const [name, [work, thrown]] of Object.entries(rows)) {
    t.throws(work, thrown, name)
    t.same(ids(opened, acme.id), ['corp-llm'], name)
  }
})

t.test('a partial entry never replaces an added platform', async (t) => {
  const opened = site(t)
  const { administration, catalog, directory } = opened
  const acme = makeOrganization(opened, 'Acme')
  for (const organization of [undefined, acme]) {
    const id = organization === undefined ? 'shared-llm' : 'corp-llm'
    const add = (entry: Parameters<typeof writeRegistryFile>[1][0]): unknown =>
      administration.ownPlatforms.add(organization, catalog(), writeRegistryFile(join(directory, 'r.json'), [entry]))
    add(platform(id, `${id}.example`))
    t.throws(() => add({ id, name: 'Renamed' }), {
      code: 'REGISTRY_FILE',
      message: new RegExp(`r\\.json: ${id}: replaces .* every field is required`),
    })
    const stored = opened.store.ownPlatforms.get(organization?.id ?? SERVICE_WIDE, id)
    t.match(stored, { entry: { name: `Own ${id}`, domains: [{ domain: `${id}.example` }] } })
    add({ ...platform(id, `${id}.example`), name: 'Renamed' })
  }
  const file = writeRegistryFile(join(directory, 'r.json'), [{ id: 'shared-llm', name: 'Ours' }])
  administration.ownPlatforms.add(acme, catalog(), file)
  t.ok(catalog().platforms.some(({ name }) => name === 'Renamed'))
})

t.test('REGISTRY_FILE provisions service-wide platforms, and leaves those that commands added', async (t) => {
  const opened = site(t)
  const { administration, store, clock, catalog, directory } = opened
  const file = join(directory, 'provisioned.json')
  const provision = (path = file): void => provisionRegistry(store, path, clock, quietLog)
  administration.ownPlatforms.add(
    undefined,
    catalog(),
    writeRegistryFile(join(directory, 'by-hand.json'), [platform('by-hand', 'hand.example')]),
  )
  writeRegistryFile(file, [platform('one', 'one.example'), platform('two', 'two.example')], ['zapier'])
  provision()
  t.same(ids(opened, SERVICE_WIDE), ['by-hand', 'one', 'two', 'zapier'])
  const version = store.ownPlatforms.version(SERVICE_WIDE)
  provision()
  t.equal(store.ownPlatforms.version(SERVICE_WIDE), version, 'nothing to change')
  writeRegistryFile(file, [platform('two', 'two.example', 'three.example')])
  provision()
  t.same(ids(opened, SERVICE_WIDE), ['by-hand', 'two'])
  provision('')
  t.same(ids(opened, SERVICE_WIDE), ['by-hand', 'two'], 'without the setting, what was provisioned stays')
  writeFileSync(file, '{"platforms": [{"id": "two", "domains": []}]}')
  provision()
  t.same(ids(opened, SERVICE_WIDE), ['by-hand', 'two'], 'with an error in the file as well')
  const entries = store.auditLog.ofOrganization(SERVICE_WIDE).filter(({ action }) => action === 'registry.provision')
  t.match(entries, [{ actor: 'operator posture-service', subject: 'one, two, zapier' }, { subject: 'two' }])
})

t.test('a disabled platform is not shown, and its evidence returns when it is enabled again', async (t) => {
  const opened = site(t)
  const { administration, store, clock, catalog, directory } = opened
  const acme = makeOrganization(opened, 'Acme')
  const registry = new RegistryInForce(store)
  const sender = new Sender()
  const scan = (): unknown => runScan(store, registry, acme.id, 'administrator', clock).summary.platformsDiscovered
  const send = (): void =>
    store.environment.write(() => store.buffer.append(acme.id, [sender.event('claude.ai', clock.nowMs())]))
  administration.ownPlatforms.add(acme, catalog(), writeRegistryFile(join(directory, 'reg.json'), [], ['claude']))
  send()
  t.equal(scan(), 0)
  administration.ownPlatforms.remove(acme, ['claude'])
  send()
  t.equal(scan(), 1)
  const matches = [...store.evidence.since(acme.id, 0)].reduce((sum, { evidence }) => sum + evidence.matches, 0)
  t.equal(matches, 2)
})
