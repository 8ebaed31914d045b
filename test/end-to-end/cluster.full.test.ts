import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { askLocal } from '../../engine/kernel/process/local-server.ts'
import { Store } from '../../engine/store/store.ts'
import { matchesInScans } from '../crash/oracle.ts'
import { makeCluster, TestNode } from '../support/cluster-node.ts'
import { ALL_SCOPES, admin, run, runAdmin } from '../support/programs.ts'
import { findingsOf } from '../support/store.ts'
import { organizationWithKey } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'

/** The acknowledged matches of a name in the scans of an organization, after a scan on the node. */
async function matchesOn(node: TestNode, organizationId: string): Promise<number | undefined> {
  await node.untilRead()
  await admin('scan', 'run', '--org', 'Acme', ...node.data)
  const store = new Store(node.directory, { mustExist: true })
  try {
    t.same(findingsOf(store), [], node.name)
    return matchesInScans(store, organizationId).get('claude')?.get('claude.ai')
  } finally {
    await store.close()
  }
}

t.test('three nodes: the store of one becomes that of all, and survives each of them', async (t) => {
  const { directory, brokers, nodes } = await makeCluster(t, ['one', 'two', 'three'])
  const [one, two, three] = nodes
  // A store of before, of a service without brokers.
  const { organizationId, token, key } = await organizationWithKey(one.directory)
  let sent = 0
  const send = async (node: TestNode): Promise<void> => {
    const count = 100
    const { status } = await until('the batch is not accepted', async () => {
      const answer = await node.send(token, 'claude.ai', count)
      return answer.status === 503 ? undefined : answer
    })
    t.equal(status, 200, `a batch to ${node.name}`)
    sent += count
  }

  await one.start()
  await one.untilPrimary()
  await two.start()
  await three.start()

  t.test('every node accepts events, and answers with the same bytes', async (t) => {
    for (const node of [one, two, three]) await send(node)
    t.equal(await matchesOn(one, organizationId), sent)
    const expected = await until('one does not answer', async () => {
      const answer = await one.get('/api/v1/discovery', key)
      return answer.status === 200 ? answer : undefined
    })
    for (const node of [two, three]) {
      const answer = await until(`${node.name} has not the scan`, async () => {
        const found = await node.get('/api/v1/discovery', key)
        return found.text === expected.text ? found : undefined
      })
      t.equal(answer.headers['etag'], expected.headers['etag'])
    }
  })

  t.test('every node is ready, one is the primary, and log entries name their node', async (t) => {
    for (const node of [one, two, three]) {
      const status = async (path: string) => (await askLocal(node.service.metricsPort, path)).status
      t.same(await Promise.all(['/livez', '/readyz'].map(status)), [200, 200], node.name)
      t.equal(await status('/primary'), node === one ? 200 : 503)
      t.match(await node.metrics(), `posture_cluster_node_info{node="${node.name}",version="`)
      const lines = node.service.output.stderr.trim().split('\n')
      t.same([...new Set(lines.map((line) => JSON.parse(line).node))], [node.name])
    }
  })

  t.test('a revoked key is refused by all nodes at once, and a replica changes nothing', async (t) => {
    const [other] = await admin('key', 'create', 'other', '--org', 'Acme', ...ALL_SCOPES, ...one.data)
    const otherKey = String(other?.['key'])
    await until('two does not know the key', async () => (await two.get('/api/v1/scores', otherKey)).status === 200)
    t.match(await runAdmin(['key', 'revoke', String(other?.['id']), '--org', 'Acme', ...two.data]), {
      status: 5,
      stderr: /NOT_PRIMARY.*this node is a replica; one is the primary/,
    })
    await admin('key', 'revoke', String(other?.['id']), '--org', 'Acme', ...one.data)
    await until('two accepts the key', async () => (await two.get('/api/v1/scores', otherKey)).status === 401)
  })

  t.test('administrators see nodes, streams and snapshots on each node', async (t) => {
    for (const node of [one, three]) {
      const rows = await until('not all nodes have reported', async () => {
        const found = await admin('cluster', 'status', ...node.data)
        return found.length === 3 ? found : undefined
      })
      const roles = rows.map(({ name, role }) => `${name} ${role}`)
      t.same(roles, ['one primary', 'three replica', 'two replica'])
      const streams = await until('the streams are not reported', async () => {
        const found = await admin('cluster', 'streams', ...node.data)
        return found.length === 3 && found.every(({ current }) => current === 3) && found
      })
      t.same(
        streams.map(({ name, replicas }) => [name, replicas]),
        [
          ['events', 3],
          ['changes', 3],
          ['OBJ_snapshots', 3],
        ],
      )
      const snapshots = await until('the snapshot is not reported', async () => {
        const found = await admin('cluster', 'snapshots', ...node.data)
        return found.length > 0 && found
      })
      t.match(snapshots, [{ bytes: Number, sequence: Number, made_at: /^\d{4}-/ }])
    }
  })

  t.test('the primary is killed: another node continues, and no acknowledged event is lost', async (t) => {
    await until('no snapshot was made', () => /made a snapshot/.test(one.service.output.stderr))
    const sending = (async () => {
      for (let batch = 0; batch < 10; batch++) await send(batch % 2 === 0 ? two : three)
    })()
    await one.kill()
    await sending
    const next = await until('no node is the primary', async () => {
      for (const node of [two, three]) if (await node.isPrimary()) return node
      return undefined
    })
    t.equal(await matchesOn(next, organizationId), sent)
    await one.start()
    t.notOk(await one.isPrimary(), 'one is a replica now')
    await send(one)
    t.equal(await matchesOn(next, organizationId), sent)
    // The next primary answers when it knows what the last one granted.
    const expected = await until('the next primary does not answer', async () => {
      const answer = await next.get('/api/v1/discovery', key)
      return answer.status === 200 ? answer : undefined
    })
    await until('one has not the scan', async () => (await one.get('/api/v1/discovery', key)).text === expected.text)

    t.test('a primary that was paused and replaced stops, and joins again', async (t) => {
      next.service.child.kill('SIGSTOP')
      const last = await until('no node is the primary', async () => {
        for (const node of [one, two, three]) if (node !== next && (await node.isPrimary())) return node
        return undefined
      })
      await send(last)
      next.service.child.kill('SIGCONT')
      t.match(await next.service.ended, { status: 4, stderr: /REPLACED.*another node is the primary now/ })
      await next.start()
      t.notOk(await next.isPrimary())
      t.equal(await matchesOn(last, organizationId), sent)
    })
  })

  t.test('when a primary is stopped, another node takes over at once', async (t) => {
    const nodes = [one, two, three]
    const primary = await until('no primary', async () => {
      for (const node of nodes) if (await node.isPrimary()) return node
      return undefined
    })
    t.match(await primary.kill('SIGTERM'), { status: 0 })
    const stoppedMs = performance.now()
    const next = await until('no node is the primary', async () => {
      for (const node of nodes) if (node !== primary && (await node.isPrimary())) return node
      return undefined
    })
    t.comment(`took over after ${Math.round(performance.now() - stoppedMs)} ms`)
    t.equal(await matchesOn(next, organizationId), sent)
    t.match(await run('service', [...primary.data]), { status: 2, stderr: /the store is one of a cluster/ })
  })

  t.test('a node with data of its own does not join', async (t) => {
    const other = new TestNode('other', directory, brokers)
    await admin('organization', 'create', 'Other', '--domain', 'other.example', ...other.data)
    await t.rejects(other.start(), /CONFLICT.*has organizations of its own/)
    t.match(await admin('organization', 'list', ...other.data), [{ name: 'Other' }])
    await admin('organization', 'create', 'Third', '--domain', 'third.example', ...other.data)
    t.notOk(existsSync(join(other.directory, 'store.joining')))
  })
})
