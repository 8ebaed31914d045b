import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isMainThread, MessageChannel, type MessagePort, Worker, workerData } from 'node:worker_threads'
import t from 'tap'
import { OWN_CATALOGS_KEPT_MAX, OWN_SETS_KEPT_MAX } from '../../../engine/limits.ts'
import { type OwnPlatform, SERVICE_WIDE } from '../../../engine/store/own-platforms.ts'
import { type CompiledRegistry, RegistryInForce } from '../../../engine/store/registry-in-force.ts'
import { Store } from '../../../engine/store/store.ts'
import { acmeSite } from '../../support/acme-site.ts'
import { allocatedBytes } from '../../support/allocated-bytes.ts'
import { platform } from '../../support/own-platforms.ts'
import { makeOrganization, matcher, openStore } from '../../support/store.ts'

function own(id: string, ...names: readonly string[]): OwnPlatform {
  return { entry: platform(id, ...names), disabled: false, addedAtMs: 1, provisioned: false }
}

function knows(registry: RegistryInForce, organizationId: string, name: string): boolean {
  const bytes = Buffer.from(name)
  return registry.knows(organizationId, new DataView(bytes.buffer, bytes.byteOffset, bytes.length), 0, bytes.length)
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

if (isMainThread) {
  t.test('each organization has its own set, and the others do not', async (t) => {
    const opened = openStore(t)
    const { store } = opened
    const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
    const registry = new RegistryInForce(store)
    t.equal(
      registry.matcherOf(acme).fingerprint,
      matcher.fingerprint,
      'without custom platforms: the built-in registry',
    )
    store.environment.write(() => store.ownPlatforms.put(acme, own('corp-llm', 'llm.corp.example')))
    t.equal(registry.matcherOf(acme).match('a.llm.corp.example')?.platform.id, 'corp-llm')
    t.equal(registry.matcherOf(other).match('a.llm.corp.example'), undefined)
    t.equal(registry.matcherOf(acme).match('claude.ai')?.platform.id, 'claude')
    t.ok(registry.catalogOf(acme).platforms.some(({ id }) => id === 'corp-llm'))
    t.notOk(registry.catalogOf(other).platforms.some(({ id }) => id === 'corp-llm'))
    store.environment.write(() => store.ownPlatforms.remove(acme, 'corp-llm'))
    t.equal(registry.matcherOf(acme).match('llm.corp.example'), undefined)
    t.equal(registry.matcherOf(acme).fingerprint, matcher.fingerprint)
  })

  t.test('the platforms of an organization are merged once for each version, for a few organizations', async (t) => {
    const opened = openStore(t)
    const { store } = opened
    const ids = Array.from({ length: OWN_CATALOGS_KEPT_MAX + 1 }, (_, at) => makeOrganization(opened, `Org ${at}`).id)
    const [first = '', ...others] = ids
    const put = (id: string, name: string) =>
      store.environment.write(() => store.ownPlatforms.put(id, own(name, `${name}.corp.example`)))
    for (const id of ids) put(id, 'corp-llm')
    const registry = new RegistryInForce(store)
    const before = registry.catalogOf(first)
    t.equal(registry.catalogOf(first), before)
    put(first, 'corp-two')
    const after = registry.catalogOf(first)
    t.ok(after.platforms.some(({ id }) => id === 'corp-two'))
    t.ok(after.rules.some(({ domain }) => domain === 'corp-two.corp.example'))
    put(SERVICE_WIDE, 'shared-llm')
    const shared = registry.catalogOf(first)
    t.ok(shared.platforms.some(({ id }) => id === 'shared-llm'))
    t.notOk(registry.base.platforms.some(({ id }) => id === 'shared-llm'))
    for (const id of others.slice(1)) registry.catalogOf(id)
    t.equal(registry.catalogOf(first), shared, 'kept, and now the last one that was used')
    registry.catalogOf(others[0] ?? '')
    t.equal(registry.catalogOf(first), shared)
    for (const id of others) registry.catalogOf(id)
    t.not(registry.catalogOf(first), shared, 'others took its place')
  })

  t.test('service-wide changes apply to every organization, and its own take precedence', async (t) => {
    const opened = openStore(t)
    const { store } = opened
    const [acme, other] = [makeOrganization(opened, 'Acme').id, makeOrganization(opened, 'Other').id]
    const registry = new RegistryInForce(store)
    t.ok(knows(registry, other, 'chatgpt.com'))
    store.environment.write(() => {
      store.ownPlatforms.put(SERVICE_WIDE, own('shared-llm', 'llm.shared.example'))
      store.ownPlatforms.put(SERVICE_WIDE, { ...own('chatgpt'), entry: { id: 'chatgpt' }, disabled: true })
      store.ownPlatforms.put(acme, own('corp-llm', 'corp.shared.example', 'a.llm.shared.example'))
    })
    for (const id of [acme, other]) {
      t.equal(registry.matcherOf(id).match('llm.shared.example')?.platform.id, 'shared-llm')
      t.equal(registry.matcherOf(id).match('chatgpt.com'), undefined)
    }
    t.equal(registry.matcherOf(acme).match('a.llm.shared.example')?.platform.id, 'corp-llm')
    t.equal(registry.matcherOf(other).match('a.llm.shared.example')?.platform.id, 'shared-llm')
    await nextTurn()
    t.notOk(knows(registry, other, 'chatgpt.com'))
    t.ok(knows(registry, other, 'llm.shared.example'))
    t.ok(knows(registry, acme, 'corp.shared.example'))
  })

  t.test('a thread that was started before a change sees it in its next turn', async (t) => {
    const { store, directory, id } = acmeSite(t)
    const { compiled } = new RegistryInForce(store)
    const { port1: thread, port2: port } = new MessageChannel()
    const options = { workerData: { directory, id, compiled, port }, transferList: [port] }
    const worker = new Worker(fileURLToPath(import.meta.url), options)
    t.teardown(async () => {
      thread.close()
      await once(worker, 'exit')
    })
    const ask = async (name: string): Promise<unknown> => {
      thread.postMessage(name)
      return (await once(thread, 'message'))[0]
    }
    t.equal(await ask('claude.ai'), true)
    t.equal(await ask('llm.corp.example'), false)
    store.environment.write(() => store.ownPlatforms.put(id, own('corp-llm', 'llm.corp.example')))
    t.equal(await ask('llm.corp.example'), true)
    t.equal(await ask('claude.ai'), true)
    store.environment.write(() => store.ownPlatforms.put(SERVICE_WIDE, own('shared-llm', 'llm.shared.example')))
    t.equal(await ask('llm.shared.example'), true)
    store.environment.write(() => store.ownPlatforms.remove(id, 'corp-llm'))
    t.equal(await ask('llm.corp.example'), false)
  })

  t.test('looking up a host allocates nothing for an organization without custom platforms', async (t) => {
    const opened = openStore(t)
    const { id } = makeOrganization(opened, 'Acme')
    const registry = new RegistryInForce(opened.store)
    const bytes = Buffer.from('www.nobody.example')
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const ask = (times: number): void => {
      for (let time = 0; time < times; time++) registry.knows(id, view, 0, bytes.length)
    }
    ask(100_000)
    const allocated = allocatedBytes(() => ask(500), 100_000)
    t.ok(allocated <= 100_000, `${allocated} bytes for 100,000 hosts`)
  })

  t.test('the cache of a thread is bounded', async (t) => {
    const { store, id } = acmeSite(t)
    store.environment.write(() => store.ownPlatforms.put(id, own('corp-llm', 'llm.corp.example')))
    const registry = new RegistryInForce(store)
    t.ok(knows(registry, id, 'llm.corp.example'))
    for (let other = 0; other <= OWN_SETS_KEPT_MAX; other++) {
      registry.matcherOf(`00000000-0000-4000-8000-${other.toString(16).padStart(12, '0')}`)
    }
    t.ok(registry.kept <= OWN_SETS_KEPT_MAX)
    await nextTurn()
    t.ok(knows(registry, id, 'llm.corp.example'), 'read again')
  })
} else {
  const { directory, id, compiled, port } = workerData as {
    directory: string
    id: string
    compiled: CompiledRegistry
    port: MessagePort
  }
  const store = new Store(directory)
  const registry = new RegistryInForce(store, compiled)
  // Two messages can arrive in one turn, and a change applies from the next turn on.
  port.on('message', async (name: string) => {
    await nextTurn()
    port.postMessage(knows(registry, id, name))
  })
  port.on('close', () => void store.close())
}
