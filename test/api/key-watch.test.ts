import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { alertSite } from '../support/alerts.ts'
import { run, startService } from '../support/programs.ts'

t.test('the service creates the key of secrets with its store, so that it can be copied', async (t) => {
  const directory = join(t.testdir(), 'data')
  const service = await startService(directory)
  t.ok(existsSync(join(directory, 'secrets.key')))
  service.child.kill('SIGTERM')
  t.match((await service.ended).stderr, /"msg":"created the key of secrets; keep a copy apart from backups"/)
})

t.test('while the key of stored secrets is missing or wrong, all that report problems say so', async (t) => {
  const site = alertSite(t)
  site.addChannel({ kind: 'webhook', url: 'https://alerts.example' })
  const file = join(site.directory, 'secrets.key')
  renameSync(file, `${file}.away`)
  const service = await startService(site.directory)
  t.teardown(() => service.child.kill('SIGKILL'))
  const health = async () => {
    const answer = await fetch(`http://127.0.0.1:${service.metricsPort}/healthz`)
    return { status: answer.status, text: await answer.text() }
  }
  t.notOk(existsSync(file), 'another key does not take its place')
  const cases = [
    { title: 'missing', problem: `${file}: no such file`, make: () => {} },
    {
      title: 'wrong',
      problem: `${file}: is not the key that encrypted the secret`,
      make: () => writeFileSync(file, `${'0'.repeat(64)}\n`, { mode: 0o600 }),
    },
  ]
  for (const { title, problem, make } of cases) {
    make()
    const expected = `alert channels and identity providers cannot use 1 secret: ${problem}`
    const { status, text } = await health()
    t.equal(status, 503, title)
    t.ok(text.includes(expected), text)
    const doctor = await run('admin', ['doctor', '--data-dir', site.directory])
    t.ok(doctor.stderr.includes(expected), doctor.stderr)
  }
  renameSync(`${file}.away`, file)
  t.equal((await health()).status, 200)
  service.child.kill('SIGTERM')
  const { stderr } = await service.ended
  for (const { title, problem } of cases) {
    t.equal(stderr.split(`cannot use 1 secret: ${problem}`).length, 2, `${title}: logged once`)
  }
})

t.test('a backup names the files that it does not contain, and a restore without the key says so', async (t) => {
  const site = alertSite(t)
  site.addChannel({ kind: 'webhook', url: 'https://alerts.example' })
  const clients = join(site.directory, 'clients-1.key')
  writeFileSync(clients, '')
  const file = join(site.directory, 'a.backup')
  const backup = await run('admin', ['backup', file, '--data-dir', site.directory, '--json'])
  t.match(JSON.parse(backup.stdout), {
    also_copy: [join(site.directory, 'secrets.key'), join(site.directory, 'clients-*.key')],
  })
  const restored = await run('admin', ['restore', file, '--data-dir', join(site.directory, 'restored'), '--json'])
  t.same(
    Object.keys(JSON.parse(restored.stdout)).filter((name) => /[A-Z]/.test(name)),
    [],
    'names as in the API',
  )
  t.equal(restored.status, 0, restored.stderr)
  t.match(restored.stderr, /cannot use 1 secret: \S+restored\/secrets.key: no such file/)
})
