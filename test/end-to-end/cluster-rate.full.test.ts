import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ALLOWANCE_MAX, FREE_AFTER_MS, GRANT_MS, LEASE_MS } from '../../api/rate-limit/protocol.ts'
import { REQUESTS_PER_WINDOW, WINDOW_MS } from '../../api/rate-limit/rate-limit.ts'
import { Brokers } from '../support/brokers.ts'
import { TestNode } from '../support/cluster-node.ts'
import { ALL_SCOPES, admin } from '../support/programs.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'

const PATH = '/api/v1/scores'

interface Asked {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly sentMs: number
  readonly receivedMs: number
}

async function ask(node: TestNode, key: string): Promise<Asked | undefined> {
  const sentMs = performance.now()
  try {
    const { status, headers } = await node.get(PATH, key)
    return { status, retryAfter: headers['retry-after'] as string | undefined, sentMs, receivedMs: performance.now() }
  } catch {
    // The node was killed.
    return undefined
  }
}

/** The most answers that were certainly given within a window. */
function mostInWindow(asked: readonly Asked[]): number {
  const given = asked.filter(({ status }) => status === 200).sort((a, b) => a.sentMs - b.sentMs)
  return Math.max(
    0,
    ...given.map(
      ({ sentMs }, first) => given.slice(first).filter((last) => last.receivedMs - sentMs < WINDOW_MS).length,
    ),
  )
}

async function primaryOf(nodes: readonly TestNode[]): Promise<TestNode> {
  return until('no node is the primary', async () => {
    for (const node of nodes) if (await node.isPrimary()) return node
    return undefined
  })
}

t.test('the limit of a key holds over three nodes, and through the loss of the primary', async (t) => {
  const directory = testFolder(t)
  const brokers = await Brokers.start(t, { directory: join(directory, 'brokers') })
  // A lease of an allowance ends before.
  const parameters = ['--stale-max', '60']
  const nodes = ['one', 'two', 'three'].map((name) => new TestNode(name, directory, brokers, { parameters }))
  const [one] = nodes as [TestNode]
  t.teardown(async () => {
    await Promise.all(nodes.map((node) => node.kill()))
    if (t.passing()) return
    for (const node of nodes) t.comment(`${node.name}: ${node.logEnd}`)
  })
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...one.data)
  const keys: string[] = []
  for (let number = 0; number < 16; number++) {
    const [key] = await admin('key', 'create', `key ${number}`, '--org', 'Acme', ...ALL_SCOPES, ...one.data)
    keys.push(String(key?.['key']))
  }
  const [first = '', second = '', third = '', fourth = '', fifth = '', sixth = '', ...rest] = keys
  const [within, others] = [rest.slice(0, 6), rest.slice(6)]
  const answers = (node: TestNode, key: string): Promise<unknown> =>
    until(`${node.name} does not answer`, async () => (await ask(node, key))?.status === 200 || later(100, false))

  await one.start()
  const startedMs = performance.now()
  await answers(one, others[0] ?? '')
  t.comment(`a cluster of one node answered ${Math.round(performance.now() - startedMs)} ms after its start`)
  for (const node of nodes.slice(1)) await node.start()
  for (const node of nodes) await answers(node, others[0] ?? '')
  const readyMs = performance.now()

  /** @param before requests of this key that were answered. */
  const isExact = async (t: Test, key: string, before = 0): Promise<void> => {
    const left = REQUESTS_PER_WINDOW - before
    const asked = await Promise.all(Array.from({ length: 100 }, (_, number) => ask(nodes[number % 3] as TestNode, key)))
    const statuses = asked.map((each) => each?.status)
    const count = (wanted: number): number => statuses.filter((status) => status === wanted).length
    // On a busy machine, the answer to a question can come too late.
    const late = count(503)
    t.ok(count(200) <= left && count(200) + late >= left, `${count(200)} and ${late} late`)
    t.ok(count(429) <= 100 - left && count(429) + late >= 100 - left, `${count(429)} refused`)
  }

  t.test('100 requests at once over three nodes: exactly 60 are answered', (t) => isExact(t, first))

  t.test('the same when each node has an allowance', async (t) => {
    // All nodes have followed the primary for so long that it need not answer the next one.
    await later(Math.max(0, readyMs + FREE_AFTER_MS + 5000 - performance.now()))
    const { headers } = await (nodes[0] as TestNode).get(PATH, sixth)
    t.equal(headers['ratelimit-remaining'], '17', 'all that the other nodes leave')
    for (const node of nodes) {
      const within = await Promise.all(Array.from({ length: ALLOWANCE_MAX }, () => ask(node, third)))
      t.ok(
        within.every((each) => each?.status === 200),
        `${node.name} answers`,
      )
      const used = /^posture_cluster_permits_total\{outcome="allowance"\} (\d+)$/m.exec(await node.metrics())
      t.ok(Number(used?.[1]) >= ALLOWANCE_MAX, `${node.name} used its allowance`)
    }
    await isExact(t, third, nodes.length * ALLOWANCE_MAX)
  })

  t.test('the primary is killed: replicas answer from their allowances, and 503 beyond them', async (t) => {
    const asked: Asked[] = []
    const primary = await primaryOf(nodes)
    const replicas = nodes.filter((node) => node !== primary)
    const askAll = async (all: readonly TestNode[]): Promise<void> => {
      const found = await Promise.all(all.map((node) => ask(node, second)))
      asked.push(...found.filter((each) => each !== undefined))
    }
    const useUp = async (key: string): Promise<void> => {
      for (const node of replicas) for (let use = 0; use < ALLOWANCE_MAX; use++) await ask(node, key)
    }
    for (let round = 0; round < 15; round++) await askAll(nodes)
    t.equal(asked.filter(({ status }) => status === 200).length, 45)
    await Promise.all([useUp(fourth), useUp(fifth)])
    const killedMs = performance.now()
    const allowed: Asked[] = []
    const askWithin = async (): Promise<void> => {
      for (let round = 0; round < ALLOWANCE_MAX; round++) {
        for (const key of within) {
          const found = await Promise.all(replicas.map((node) => ask(node, key)))
          allowed.push(...found.filter((each) => each !== undefined))
          await later(100)
        }
      }
    }
    const untilGranted = async (): Promise<number> => {
      for (const [number, key] of Array.from(
        { length: 1000 },
        (_, number) => [number, number % 2 ? fourth : fifth] as const,
      )) {
        await askAll(replicas)
        const granted = await ask(replicas[number % 2] as TestNode, key)
        if (granted?.status === 200 || performance.now() - killedMs > 2 * GRANT_MS) break
        await later(50)
      }
      return performance.now()
    }
    const [, , , , grantedMs] = await Promise.all([
      primary.kill(),
      askAll(nodes),
      askAll(nodes),
      askWithin(),
      untilGranted(),
    ])
    const leased = allowed.filter(({ sentMs }) => sentMs - killedMs < LEASE_MS / 2)
    t.ok(leased.length > 0)
    t.same(
      leased.filter(({ status }) => status !== 200),
      [],
      `${leased.length} requests within the allowance`,
    )
    t.comment(`the next primary granted ${Math.round(grantedMs - killedMs)} ms after the death`)
    t.ok(grantedMs - killedMs < GRANT_MS / 2, 'it collected, and did not wait until all grants had ended')
    const refused = asked.filter(({ status }) => status === 503)
    t.ok(refused.length > 0)
    t.ok(refused.every(({ retryAfter }) => Number(retryAfter) >= 1))
    t.ok(asked.every(({ status }) => [200, 429, 503].includes(status)))
    t.ok(mostInWindow(asked) <= REQUESTS_PER_WINDOW, `${mostInWindow(asked)} in a window`)
    // A node that was killed knows what it used after GRANT_MS.
    await primary.start()
    const restartedMs = performance.now()
    while (performance.now() - restartedMs < GRANT_MS + 1000) {
      await askAll(replicas)
      await later(500)
    }
    t.ok(mostInWindow(asked) <= REQUESTS_PER_WINDOW, `${mostInWindow(asked)} in a window`)
    t.ok(
      asked.some(({ status, sentMs }) => status === 200 && sentMs > killedMs + GRANT_MS / 2),
      'the key is free again',
    )
    for (const node of nodes) await answers(node, others[1] ?? '')
  })

  t.test('the primary is stopped in order: the others answer again at once', async (t) => {
    const primary = await primaryOf(nodes)
    const [replica] = nodes.filter((node) => node !== primary)
    const asked: Asked[] = []
    const stopped = primary.kill('SIGTERM')
    let endMs = Number.POSITIVE_INFINITY
    void stopped.then(() => {
      endMs = performance.now() + 3000
    })
    for (let number = 0; performance.now() < endMs; number++) {
      const found = await ask(replica as TestNode, others[number % others.length] ?? '')
      if (found !== undefined) asked.push(found)
      await later(50)
    }
    t.match(await stopped, { status: 0 })
    t.not(asked.at(-1)?.status, 503)
    const without = asked.filter(({ status }) => status === 503)
    t.comment(`${without.length} of ${asked.length} requests got 503, for ${spanOf(without)} ms`)
    t.ok(spanOf(without) < GRANT_MS / 2, 'the next home collected')
    await primary.start()
  })
})

function spanOf(asked: readonly Asked[]): number {
  return Math.round((asked.at(-1)?.receivedMs ?? 0) - (asked[0]?.sentMs ?? 0))
}
