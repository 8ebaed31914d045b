import { join } from 'node:path'
import t from 'tap'
import { platform, writeRegistryFile } from '../support/own-platforms.ts'
import { admin, run, startService } from '../support/programs.ts'
import { sendTcp } from '../support/syslog-sender.ts'
import { dataOf, organizationWithToken, rfc5424, SYSLOG_ON_LOOPBACK, squid } from '../support/syslog-service.ts'
import { until } from '../support/wait.ts'

t.test('a running service applies custom platforms at once, also to waiting events', async (t) => {
  const directory = t.testdir()
  const data = dataOf(directory)
  const { token } = await organizationWithToken(data, 'Acme', 'devices')
  const ofAcme = ['--data-dir', data, '--org', 'Acme']
  const file = writeRegistryFile(join(directory, 'reg.json'), [platform('corp-llm', 'llm.corp.example')])
  const service = await startService(data, SYSLOG_ON_LOOPBACK)
  t.teardown(async () => {
    service.child.kill('SIGTERM')
    await service.ended
  })
  const tcp = service.syslog.find(({ kind }) => kind === 'tcp')
  const send = async (message: string): Promise<void> => {
    const sender = await sendTcp(t, tcp?.port ?? 0)
    sender.send(`${rfc5424(token, message)}\n`)
  }
  const nowMs = new Date().toISOString()
  const event = JSON.stringify({
    ...{ id: '00112233445566770000000000000001', name: 'llm.corp.example', client: '10.0.0.1', method: 'dns' },
    ...{ first_seen: nowMs, last_seen: nowMs, count: 1 },
  })
  const counted = async (name: string): Promise<number> => {
    const rows = await admin('ingest', 'sources', ...ofAcme)
    return rows.reduce((sum, row) => sum + Number(row[name] ?? 0), 0)
  }
  await send(squid('llm.corp.example'))
  await until('counted', async () => (await counted('unmatched')) === 1)
  await send(event)
  await until('counted', async () => (await counted('stored')) === 1)
  const [waiting] = await admin('scan', 'run', ...ofAcme)
  t.match(waiting, { status: 'completed', unmatched_waiting: 1 })
  await admin('registry', 'add', file, ...ofAcme)
  t.match(await admin('scan', 'show', ...ofAcme), [{ platform_name: 'Own corp-llm', metadata: { matches: 1 } }])
  await send(squid('www.llm.corp.example'))
  await until('counted', async () => (await counted('stored')) === 2)
  await admin('scan', 'run', ...ofAcme)
  t.match(await admin('scan', 'show', ...ofAcme), [{ platform_name: 'Own corp-llm', metadata: { matches: 2 } }])
  await admin('registry', 'remove', 'corp-llm', ...ofAcme)
  await send(squid('www.llm.corp.example'))
  await until('counted', async () => (await counted('unmatched')) === 2)
  t.same(await admin('scan', 'show', ...ofAcme), [])
  const { stdout } = await run('admin', ['registry', 'export', '--data-dir', data])
  t.match(stdout, /^platforms: \[\]\ndisable: \[\]\n$/)
})

t.test('SIGHUP reads REGISTRY_FILE again', async (t) => {
  const directory = t.testdir()
  const data = dataOf(directory)
  const file = writeRegistryFile(join(directory, 'reg.json'), [platform('one', 'one.example')])
  const service = await startService(data, ['--registry-file', file])
  t.teardown(async () => {
    service.child.kill('SIGTERM')
    await service.ended
  })
  const ids = async (): Promise<string> => {
    const rows = await admin('registry', 'list', '--custom', '--service-wide', '--data-dir', data)
    return rows.map(({ id }) => String(id)).join(' ')
  }
  t.equal(await ids(), 'one')
  writeRegistryFile(file, [platform('two', 'two.example')])
  service.child.kill('SIGHUP')
  await until('the platforms of the changed file', async () => (await ids()) === 'two')
})
