import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Agent, request } from 'undici'
import { loadCatalog } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'
import { admin, REPOSITORY, type RunningService, run, start, startService } from '../support/programs.ts'

const CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')

/** The expected result, from the builder's names and the registry. */
function expectedEvents(): { events: number; byPlatform: Map<string, number> } {
  const { names } = JSON.parse(readFileSync(join(REPOSITORY, 'test/captures/demo/expect.json'), 'utf8')) as {
    names: { name: string }[]
  }
  const matcher = new NameMatcher(loadCatalog())
  const byPlatform = new Map<string, number>()
  let events = 0
  for (const { name } of names) {
    const platform = matcher.match(name)?.platform.name
    if (platform === undefined) continue
    events++
    byPlatform.set(platform, (byPlatform.get(platform) ?? 0) + 1)
  }
  return { events, byPlatform }
}

interface Discovery {
  readonly scan: { readonly id: string; readonly summary: Record<string, number> } | null
  readonly platforms: readonly { readonly platform_name: string; readonly metadata: { readonly matches: number } }[]
}

async function get(
  service: RunningService,
  certificate: string,
  path: string,
  key: string,
): Promise<{ status: number; body: unknown }> {
  const dispatcher = new Agent({ connect: { ca: readFileSync(certificate) } })
  const answer = await request(`https://localhost:${service.apiPort}${path}`, {
    dispatcher,
    headers: { 'x-api-key': key },
  })
  const body = await answer.body.json()
  await dispatcher.close()
  return { status: answer.statusCode, body }
}

t.test('captured packets become platforms in the API despite crashes of both programs', async (t) => {
  const directory = t.testdir()
  const dataDirectory = join(directory, 'service')
  const outbox = join(directory, 'collector')
  const certificate = join(dataDirectory, 'tls/certificate.pem')
  const expected = expectedEvents()
  t.ok(expected.events > 50, 'the capture holds AI names')

  let service = await startService(dataDirectory)
  const data = ['--data-dir', dataDirectory]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  const [key] = await admin('key', 'create', 'dashboard', '--org', 'Acme', '--scope', 'discovery:read', ...data)
  const [token] = await admin('token', 'generate', 'sensor', '--org', 'Acme', ...data)
  const apiKey = String(key?.['key'])
  const environment = { SVC_TOKEN: String(token?.['token']), LOG_LEVEL: 'INFO' }
  const collect = (port: number, ...more: string[]): string[] => [
    ...['--read', CAPTURE, '--shift-to-now', '--outbox', outbox],
    ...['--endpoint', 'localhost', '--https-port', String(port), ...more],
  ]

  const before = await get(service, certificate, '/api/v1/discovery', apiKey)
  t.same(before, { status: 200, body: { scan: null, platforms: [] } }, 'nothing is found before the first scan')

  // The collector is killed after storing its first events.
  const killed = await run('collector', collect(service.ingestPort, '--service-ca-file', certificate), {
    ...environment,
    POSTURE_FAULT_POINT: 'outbox:appended',
  })
  t.equal(killed.signal, 'SIGKILL')

  // The service is killed after storing events and before acknowledging them. The collector keeps
  // retrying.
  service.child.kill('SIGKILL')
  await service.ended
  service = await startService(dataDirectory, [], { POSTURE_FAULT_POINT: 'accept:committed' })
  const { ingestPort } = service
  const collector = start('collector', collect(ingestPort, '--service-fingerprint', service.fingerprint), environment)
  const crashed = await service.ended
  t.equal(crashed.signal, 'SIGKILL')
  service = await startService(dataDirectory, ['--ingest-port', String(ingestPort)])
  const collected = await collector.ended
  t.equal(collected.status, 0, collected.stderr)

  const [scan] = await admin('scan', 'run', '--org', 'Acme', ...data)
  t.match(scan, { status: 'completed' })

  const { status, body } = await get(service, certificate, '/api/v1/discovery', apiKey)
  const found = body as Discovery
  t.equal(status, 200)
  // The latest scan, which a schedule may have started at the full hour.
  t.match(found.scan, { status: 'completed' })
  t.equal(found.scan?.summary['platforms_discovered'], expected.byPlatform.size)
  t.same(
    new Map(found.platforms.map((platform) => [platform.platform_name, platform.metadata.matches])),
    expected.byPlatform,
    'each platform with the names that the capture holds: every match is in the scan, and none twice',
  )

  // The outbox remembers the position in the file.
  const again = await run('collector', collect(ingestPort, '--service-ca-file', certificate), environment)
  t.equal(again.status, 0, again.stderr)
  const [second] = await admin('scan', 'run', '--org', 'Acme', ...data)
  t.match(second, { status: 'completed', events: 0 }, 'a second run of the same file adds nothing')

  t.equal((await get(service, certificate, '/api/v1/scores', apiKey)).status, 403, 'a scope that the key lacks')
  t.equal((await get(service, certificate, '/api/v1/discovery', apiKey.replace(/.$/, 'x'))).status, 401, 'a wrong key')
  t.equal((await get(service, certificate, '/api/v1/discovery?limit=101', apiKey)).status, 400, 'a limit out of range')

  const secrets = [apiKey, environment.SVC_TOKEN]
  for (const text of [killed.stderr, collected.stderr, again.stderr, crashed.stderr, service.output.stderr]) {
    for (const secret of secrets) t.notOk(text.includes(secret), 'no secret is logged')
    t.notOk(text.includes('do not balance'), text)
  }
  service.child.kill('SIGTERM')
  const { status: stopped } = await service.ended
  t.equal(stopped, 0, 'SIGTERM stops the service cleanly')
})

t.test('npm start finds, shows and serves platforms, ends with Ctrl-C, and continues with the same data', async (t) => {
  const directory = t.testdir()
  const parameters = [
    '--data-dir',
    directory,
    '--api-port',
    '0',
    '--console-port',
    'off',
    '--ingest-port',
    '0',
    '--syslog-port',
    '0',
  ]
  const serving = async (): Promise<{ status: number | null; stdout: string }> => {
    const demo = start('demo', parameters)
    await new Promise<void>((resolve) => {
      const poll = setInterval(() => {
        if (!demo.output.stdout.includes('serving until Ctrl-C') && demo.child.exitCode === null) return
        clearInterval(poll)
        resolve()
      }, 50)
    })
    demo.child.kill('SIGINT')
    return demo.ended
  }
  const first = await serving()
  t.equal(first.status, 0, first.stdout)
  t.match(first.stdout, /log forwarders: svc_mt_[0-9a-f]{48}\n/)
  t.match(first.stdout, /│ ChatGPT\s+│ 0\.\d\d /)
  t.match(first.stdout, new RegExp(`${expectedEvents().byPlatform.size} AI platforms, `))
  t.match(
    first.stdout,
    /curl --cacert \S+ -H 'X-API-Key: svc_pk_[0-9a-f]{64}' https:\/\/localhost:\d+\/api\/v1\/discovery\n/,
  )
  t.match(first.stdout, /\nsyslog listens on 127\.0\.0\.1: tcp port \d+, udp port \d+\n/)
  t.match(first.stdout, /\nstopped\n$/)

  const second = await serving()
  t.equal(second.status, 0, second.stdout)
  t.match(second.stdout, /continuing on the data in/)
  t.match(second.stdout, /│ ChatGPT\s+│ 0\.\d\d /)
  t.notMatch(second.stdout, /svc_pk_[0-9a-f]{64}/, 'the key is shown once')
})
