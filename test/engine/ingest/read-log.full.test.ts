import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Store } from '../../../engine/store/store.ts'
import { manyLines } from '../../support/many-lines.ts'
import { admin, run, start } from '../../support/programs.ts'
import { organizationWithToken } from '../../support/syslog-service.ts'
import { until } from '../../support/wait.ts'

t.test('posture-admin ingest file, killed and restarted, counts each message once', async (t) => {
  const directory = t.testdir()
  const data = join(directory, 'data')
  const { token, organizationId } = await organizationWithToken(data, 'Acme', 'devices')
  const { text, matching: count } = manyLines(60)
  const file = join(directory, 'log')
  writeFileSync(file, text)
  const words = ['ingest', 'file', file, '--data-dir', data]
  const booked = async (): Promise<number> => {
    const store = new Store(data, { mustExist: true })
    try {
      return store.buffer.read(organizationId, 0, 1_000_000).reduce((sum, { event }) => sum + event.count, 0)
    } finally {
      await store.close()
    }
  }
  const killed = start('admin', words, { SVC_TOKEN: token })
  await until('some of it', async () => ((await booked()) > count / 10 ? true : undefined))
  killed.child.kill('SIGKILL')
  await killed.ended
  const before = await booked()
  t.ok(before < count, `killed at ${before} of ${count}`)
  const { status, stdout, stderr } = await run('admin', words, { SVC_TOKEN: token })
  t.equal(status, 0, stderr)
  t.match(JSON.parse(stdout), { matched: count - before, duplicates: before })
  t.equal(await booked(), count)
  const again = await run('admin', words, { SVC_TOKEN: token })
  t.match(JSON.parse(again.stdout), { matched: 0, duplicates: count })
  const [sources] = await admin('ingest', 'sources', '--org', 'Acme', '--data-dir', data)
  t.match(sources, { listener: 'file', address: 'log' })
})
