import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { Environment } from '../../engine/kernel/lmdb/environment.ts'
import { SCHEMA_VERSION } from '../../engine/store/migrate.ts'
import { makeCluster, type TestNode } from '../support/cluster-node.ts'
import { ALL_SCOPES, PROGRAMS, REPOSITORY, startCommand } from '../support/programs.ts'
import { Sender } from '../support/store.ts'
import { organizationWithKey } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'

/*
 * The nodes of a cluster are upgraded one at a time, while events arrive. The next release is this
 * one with one more migration, which notes how many entries of the audit log it has found.
 */

const NEXT_SCHEMA = SCHEMA_VERSION + 1
const MARKER = 'upgrade-marker'
const BATCH_EVENTS = 20

/** Copies the compiled programs into the directory. Returns the path of its dist/. */
function nextRelease(directory: string): string {
  mkdirSync(directory)
  for (const name of readdirSync(REPOSITORY)) {
    if (name !== 'dist' && !name.startsWith('.')) symlinkSync(join(REPOSITORY, name), join(directory, name))
  }
  const dist = join(directory, 'dist')
  cpSync(join(REPOSITORY, 'dist'), dist, {
    recursive: true,
    filter: (path) => !path.startsWith(join(REPOSITORY, 'dist/test')),
  })
  const file = join(dist, 'engine/store/migrate.js')
  const before = readFileSync(file, 'utf8')
  const migration = `(environment) => {
    const count = [...environment.table('audit-log').getKeys()].length
    environment.table('${MARKER}').putSync(Buffer.from('count'), Buffer.from(String(count)))
  }`
  const after = before
    .replace(/(?<=const MIGRATIONS = \[[^\]]*)(?=\])/, `${migration},`)
    .replace('environment.migrate(', `environment.table('${MARKER}')\n    environment.migrate(`)
  if (after.split(MARKER).length !== 3) throw new Error(`${file}: no place for a migration`)
  writeFileSync(file, after)
  return dist
}

/** What the migration has noted in a store. */
async function markerOf({ directory }: TestNode): Promise<string | undefined> {
  const options = { setting: '--data-dir', schemaVersion: NEXT_SCHEMA, freeBytesMin: 0, replicable: true }
  const environment = new Environment(join(directory, 'store'), { ...options, migrate: 'by the caller' })
  try {
    return environment.read(() => {
      if (environment.schemaVersion < NEXT_SCHEMA) return undefined
      return environment.table(MARKER).get(Buffer.from('count'))?.toString()
    })
  } finally {
    await environment.close()
  }
}

t.test('nodes are upgraded one at a time, and the last one migrates the stores of all', async (t) => {
  const { directory, nodes } = await makeCluster(t, ['one', 'two', 'three'])
  const [one, two, three] = nodes
  const next = nextRelease(join(directory, 'next'))
  const { token, key } = await organizationWithKey(one.directory)
  await one.start()
  await one.untilPrimary()
  await two.start()
  await three.start()

  let sent = 0
  let isOver = false
  const sending = (async () => {
    const sender = new Sender()
    for (let number = 0; !isOver; sent += BATCH_EVENTS) {
      const body = packBatch(Array.from({ length: BATCH_EVENTS }, () => sender.event('claude.ai', Date.now())))
      // The same batch, until a node acknowledges it.
      await until('a batch is not acknowledged', async () => {
        const node = nodes[number++ % nodes.length] as TestNode
        const answer = await node.post(token, body).catch(() => undefined)
        if (answer !== undefined && ![200, 503].includes(answer.status)) throw new Error(answer.text)
        return answer?.status === 200 || undefined
      })
    }
  })()
  sending.catch(() => {})
  const upgrade = async (node: TestNode): Promise<void> => {
    t.match(await node.kill('SIGTERM'), { status: 0 }, `${node.name} stops`)
    node.program = join(next, 'api/main.js')
    await node.start()
  }
  /** A change of the primary is soon in the answers of the node. */
  const follows = async (primary: TestNode, node: TestNode): Promise<void> => {
    const made = await run(primary, 'key', 'create', `for ${node.name}`, '--org', 'Acme', ...ALL_SCOPES)
    const text = `${/"key":"([^"]+)"/.exec(made)?.[1]}`
    await until(`${node.name} does not know the key`, async () => {
      return (await node.get('/api/v1/scores', text)).status === 200 || undefined
    })
  }
  const run = async (node: TestNode, ...words: string[]): Promise<string> => {
    const program = node.program === PROGRAMS.service ? PROGRAMS.admin : join(next, 'engine/admin/main.js')
    const command = [process.execPath, program, ...words, '--json', ...node.data]
    const { status, stdout, stderr } = await startCommand(command).ended
    t.equal(status, 0, `${words.join(' ')} on ${node.name} ${stderr}`)
    return stdout
  }

  await upgrade(three)
  await follows(one, three)
  t.equal(await markerOf(three), undefined, 'the store has the older schema')

  t.match(await one.kill('SIGTERM'), { status: 0 })
  await two.untilPrimary()
  t.notOk(await three.isPrimary(), 'a node of the older release takes over')
  one.program = join(next, 'api/main.js')
  await one.start()
  await follows(two, one)

  t.match(await two.kill('SIGTERM'), { status: 0 })
  const stoppedMs = performance.now()
  const last = await until('no node is the primary', async () => {
    for (const node of [one, three]) if (await node.isPrimary()) return node
    return undefined
  })
  t.comment(`the first primary of the new release after ${Math.round(performance.now() - stoppedMs)} ms`)
  const other = last === one ? three : one
  const marker = await until('the store was not migrated', () => markerOf(last))
  t.ok(Number(marker) > 0)
  await follows(last, other)
  t.equal(await markerOf(other), marker)

  await t.rejects(two.start(), /STORE_VERSION.*written by a newer release/)
  two.program = join(next, 'api/main.js')
  await two.start()
  await follows(last, two)
  t.equal(await markerOf(two), marker)

  isOver = true
  await sending
  await last.untilRead()
  await run(last, 'scan', 'run', '--org', 'Acme')
  const expected = await last.get('/api/v1/discovery', key)
  t.match(expected.text, new RegExp(`"matches":${sent}\\b`), `${sent} events, each once`)
  for (const node of nodes) {
    await until(`${node.name} answers with other bytes`, async () => {
      return (await node.get('/api/v1/discovery', key)).text === expected.text || undefined
    })
  }
})
