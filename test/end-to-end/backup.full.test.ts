import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { SCHEMA_VERSION } from '../../engine/store/migrate.ts'
import { Store } from '../../engine/store/store.ts'
import { skipUnlessRoot } from '../support/other-user.ts'
import { ALL_SCOPES, admin, run, runAdmin, startService } from '../support/programs.ts'
import { Sender } from '../support/store.ts'

/** The answers of a service on this directory, as texts. */
async function answersOf(t: Test, directory: string, key: string): Promise<string[]> {
  const service = await startService(directory)
  t.teardown(() => service.child.kill('SIGKILL'))
  const dispatcher = new Agent({ connect: { ca: readFileSync(join(directory, 'tls/certificate.pem')) } })
  const answers: string[] = []
  for (const list of ['discovery', 'scores', 'recommendations', 'assessments']) {
    const url = `https://localhost:${service.apiPort}/api/v1/${list}`
    const { statusCode, body } = await request(url, { dispatcher, headers: { 'x-api-key': key } })
    answers.push(`${statusCode} ${await body.text()}`)
  }
  await dispatcher.close()
  service.child.kill('SIGTERM')
  await service.ended
  return answers
}

t.test('a backup of a running service gives the same answers as the service', async (t) => {
  const directory = t.testdir({ there: {}, again: {} })
  const there = join(directory, 'there')
  const again = join(directory, 'again')
  const file = join(directory, 'a.backup')
  const data = ['--data-dir', there]
  const [organization] = await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const id = String(organization?.['id'])
  const [key] = await admin('key', 'create', 'test', ...ALL_SCOPES, '--org', 'Acme', ...data)
  const store = new Store(there, { mustExist: true })
  const sender = new Sender()
  const append = (): void =>
    store.environment.write(() => store.buffer.append(id, [sender.event('claude.ai', Date.now())]))
  append()
  await admin('scan', 'run', '--org', 'Acme', ...data)
  for (let times = 0; times < 3; times++) append()
  const service = await startService(there)
  t.teardown(() => service.child.kill('SIGKILL'))
  t.match(await admin('backup', file, ...data), [{ file, schema: SCHEMA_VERSION }])
  t.match(await runAdmin(['restore', file, '--force', ...data]), {
    status: 4,
    stderr: /STORE_IN_USE.*Stop it first\n$/,
  })
  t.match(await runAdmin(['doctor', ...data]), { status: 0, stderr: '' })
  service.child.kill('SIGTERM')
  await service.ended
  t.match(await admin('restore', file, '--data-dir', again), [{ organizations: 1, kept: null }])
  const answers = await answersOf(t, there, String(key?.['key']))
  t.match(answers[0], /^200 \{"scan":\{"id".*"platform_name":"Claude"/)
  t.same(await answersOf(t, again, String(key?.['key'])), answers)
  const rows = (await admin('doctor', '--data-dir', again)).find((row) => row['organization'] === 'Acme')
  t.match(rows, { buffered_events: 3, active_api_keys: 1 })

  store.environment.write(() => store.environment.table('organization-names').removeSync(Buffer.from('acme')))
  await store.close()
  const { status, stdout, stderr } = await run('admin', ['doctor', ...data])
  t.equal(status, 3)
  t.match(stderr, 'posture-admin: STORE_CHECK_FAILED the store has 1 findings; restore a backup\n')
  t.match(stdout, /"damaged_table":"organizations",.*"found":"no entry in organization-names/)
})

for (const point of ['backup:copied', 'backup:sealed']) {
  t.test(`a process killed at ${point} leaves no backup file, and the next backup leaves no other file`, async (t) => {
    const directory = t.testdir({ here: {} })
    const data = ['--data-dir', join(directory, 'here')]
    await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
    const file = join(directory, 'a.backup')
    t.match(await run('admin', ['backup', file, ...data], { POSTURE_FAULT_POINT: point }), { signal: 'SIGKILL' })
    t.equal(existsSync(file), false)
    await admin('backup', file, ...data)
    t.same(readdirSync(directory).sort(), ['a.backup', 'here'])
    t.match(await admin('restore', file, '--data-dir', join(directory, 'there')), [{ organizations: 1 }])
  })
}

t.test(
  'after root restores and inspects a backup, the service of another user starts',
  { skip: skipUnlessRoot },
  async (t) => {
    const directory = t.testdir()
    const [made, file] = [join(directory, 'made'), join(directory, 'a.backup')]
    await admin('organization', 'create', 'Acme', '--domain', 'acme.example', '--data-dir', made)
    await admin('backup', file, '--data-dir', made)
    const service = join(directory, 'service')
    mkdirSync(service)
    chownSync(service, 1234, 1234)
    const data = ['--data-dir', service]
    for (const options of [[], ['--force']]) {
      // Processes of their own, because each becomes the owner of the directory.
      t.match(await run('admin', ['restore', file, ...options, ...data]), { status: 0 })
      t.match(await run('admin', ['doctor', ...data]), { status: 0 })
      const names = readdirSync(service, { recursive: true, encoding: 'utf8' }).filter(
        (name) => !name.startsWith('tls'),
      )
      t.ok(names.includes('store/data.mdb'))
      t.same(
        names.filter((name) => statSync(join(service, name)).uid !== 1234),
        [],
        `every file belongs to the service: ${names.join(', ')}`,
      )
      rmSync(join(service, 'store/lock.mdb'), { force: true })
      t.match(await run('admin', ['doctor', ...data]), { status: 0 })
      const through = ['setpriv', '--reuid=1234', '--regid=1234', '--clear-groups']
      const running = await startService(service, [], {}, through)
      running.child.kill('SIGTERM')
      t.match(await running.ended, { status: 0, signal: null })
    }
  },
)
