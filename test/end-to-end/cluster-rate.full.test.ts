import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { REQUESTS_PER_WINDOW } from '../../api/rate-limit/rate-limit.ts'
import { BROKER_COUNT } from '../support/brokers.ts'
import { makeCluster, primaryAmong, type TestNode } from '../support/cluster-node.ts'
import { ALL_SCOPES, admin } from '../support/programs.ts'
import { until } from '../support/wait.ts'

const PATH = '/api/v1/scores'
/** Longer than the brokers are away. */
const PARAMETERS = ['--replica-max-lag-seconds', '120']

t.test('the limit of a key over three nodes, which report what they have allowed', async (t) => {
  const { brokers, nodes } = await makeCluster(t, ['one', 'two', 'three'], { parameters: PARAMETERS })
  const [one] = nodes
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...one.data)
  const keys: string[] = []
  for (let number = 0; number < 8; number++) {
    const [key] = await admin('key', 'create', `key ${number}`, '--org', 'Acme', ...ALL_SCOPES, ...one.data)
    keys.push(String(key?.['key']))
  }
  const nextKey = (): string => keys.pop() ?? ''
  await one.start()
  await one.untilPrimary()
  for (const node of nodes.slice(1)) await node.start()
  for (const node of nodes) await node.untilReady()

  const statusesOf = async (requests: readonly TestNode[], key: string): Promise<number[]> =>
    Promise.all(requests.map(async (node) => (await node.get(PATH, key)).status))
  const repeated = (count: number): TestNode[] => Array.from({ length: count }, () => nodes).flat()
  const count = async (node: TestNode, kind: 'uses' | 'messages', outcome: string): Promise<number> => {
    const line = new RegExp(`^posture_cluster_rate_${kind}_total{outcome="${outcome}"} (\\d+)$`, 'm')
    return Number(line.exec(await node.metrics())?.[1])
  }
  const received = (): Promise<number[]> => Promise.all(nodes.map((node) => count(node, 'uses', 'received')))
  /** Each allowed request is received by the two other nodes. */
  const untilHeard = (before: readonly number[], allowed: number): Promise<unknown> =>
    until('the nodes do not hear of each other', async () => {
      const heard = (await received()).reduce((sum, each, index) => sum + each - (before[index] ?? 0), 0)
      return heard === 2 * allowed || later(10, false)
    })
  const isShared = async (t: Test, key: string): Promise<void> => {
    const before = await received()
    t.ok((await statusesOf(repeated(20), key)).every((status) => status === 200))
    const answeredMs = performance.now()
    await untilHeard(before, 60)
    t.comment(`heard at most ${Math.round(performance.now() - answeredMs)} ms after the last answer`)
    const { status, headers } = await one.get(PATH, key)
    t.match({ status, headers }, { status: 429, headers: { 'ratelimit-remaining': '0', 'retry-after': /^\d+$/ } })
    t.same(await statusesOf(nodes, key), [429, 429, 429])
  }

  t.test('when all have heard of 20 requests at each, none allows another one', (t) => isShared(t, nextKey()))

  t.test('of 180 requests at once, at least 60 are allowed, and none afterwards', async (t) => {
    const key = nextKey()
    const before = await received()
    const statuses = await statusesOf(repeated(REQUESTS_PER_WINDOW), key)
    const found = statuses.filter((status) => status === 200).length
    t.comment(`${found} of ${statuses.length} requests were allowed`)
    t.ok(found >= REQUESTS_PER_WINDOW)
    t.equal(statuses.filter((status) => status === 429).length, statuses.length - found)
    await untilHeard(before, found)
    t.same(await statusesOf(nodes, key), [429, 429, 429])
  })

  t.test('malformed and foreign messages do nothing', async (t) => {
    const connection = await brokers.connect(brokers.followerSeed)
    t.teardown(() => connection.close())
    const messages = ['', 'text', Buffer.alloc(28), Buffer.alloc(1_000_000, 1)]
    for (const message of messages) connection.publish('node.any', message)
    for (const node of nodes) {
      await until('it is not counted', async () => (await count(node, 'messages', 'malformed')) === messages.length)
    }
    const { headers } = await one.get(PATH, nextKey())
    t.equal(headers['ratelimit-remaining'], '59')
  })

  t.test('without brokers, each node counts alone, and they agree again afterwards', async (t) => {
    const key = nextKey()
    for (let index = 0; index < BROKER_COUNT; index++) await brokers.kill(index)
    for (const node of nodes) {
      await until('it does not notice', async () => /"msg":"the connection to the broker is lost"/.test(node.logEnd))
    }
    const before = await received()
    t.ok((await statusesOf(repeated(25), key)).every((status) => status === 200))
    t.same(await received(), before)
    for (let index = 0; index < BROKER_COUNT; index++) brokers.restart(index)
    const restartedMs = performance.now()
    const probe = nextKey()
    await until('the nodes do not hear of each other again', async () => {
      const before = await received()
      await statusesOf(nodes, probe)
      // Few enough that each node allows the next one.
      await later(1000)
      return (await received()).every((heard, index) => heard >= (before[index] ?? 0) + 2)
    })
    t.comment(
      `they hear of each other ${Math.round(performance.now() - restartedMs)} ms after the brokers have started`,
    )
    await isShared(t, nextKey())
  })

  t.test('no request gets 503 while another node becomes the primary', async (t) => {
    const key = nextKey()
    for (const node of nodes) await node.untilReady()
    const primary = await primaryAmong(nodes)
    const others = nodes.filter((node) => node !== primary)
    await primary.kill()
    const statuses = new Set<number>()
    let hasPrimary = false
    void primaryAmong(others).then(() => {
      hasPrimary = true
    })
    while (!hasPrimary) {
      for (const status of await statusesOf(others, key)) statuses.add(status)
      await later(100)
    }
    t.notOk(
      [...statuses].some((status) => status !== 200 && status !== 429),
      [...statuses].join(),
    )
  })
})
