import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Store } from '../../engine/store/store.ts'
import { ip, namespace, skipNamespaces as skip } from '../support/namespace.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import { admin, forwardArgs, type Running, runAdmin, start } from '../support/programs.ts'
import {
  BUILT_IN_VERSION,
  FIRST_KEY,
  laterVersion,
  makeUpdate,
  newKey,
  newPlatform,
  SECOND_KEY,
  writeRoot,
} from '../support/registry-updates.ts'
import { startSite } from '../support/service-site.ts'
import { until } from '../support/wait.ts'

/*
 * A service that is updated while it runs, and a collector that fetches updates from it. Both are
 * in a network namespace, where the collector captures on the loopback interface.
 */
const HOST = 'llm.example.net'
const NEW = newPlatform('new-llm', HOST)

async function madeSite(t: Test) {
  const inside = namespace(t, `spsreg${process.pid}x${made++}`)
  ip(...inside('ip', 'link', 'set', 'lo', 'up'))
  const { directory, dataDirectory, data, service, token } = await startSite(t, [], { through: ['ip', ...inside()] })
  const outbox = join(directory, 'outbox')
  const root = writeRoot(directory)
  const collector = (environment: NodeJS.ProcessEnv = {}): Running => {
    const flags = ['--interface', 'lo', '--outbox', outbox, '--event-window-seconds', '0', '--dns-ports', '5353']
    const variables = { SVC_TOKEN: token, HEALTH_PORT: '19090', ...environment }
    const running = start('collector', [...flags, '--registry-root', root, ...forwardArgs(service)], variables, [
      'ip',
      ...inside(),
    ])
    t.teardown(() => running.child.kill('SIGKILL'))
    return running
  }
  const update = async (bytes: Uint8Array) => {
    const file = join(directory, 'registry.update')
    writeFileSync(file, bytes)
    const { status, stderr } = await runAdmin(['registry', 'update', file, '--registry-root', root, ...data])
    t.equal(status, 0, stderr)
  }
  /** Sends a DNS query for the name, which the collector sees. */
  const query = (name: string) => {
    const hex = Buffer.from(dnsQuery([name])).toString('hex')
    const script = `const s=require('dgram').createSocket('udp4');s.send(Buffer.from('${hex}','hex'),5353,'127.0.0.1',()=>s.close())`
    execFileSync('ip', inside(process.execPath, '-e', script))
  }
  const logged = (running: Running, pattern: RegExp) => {
    return until(`a line with ${pattern}`, () => pattern.test(running.output.stdout + running.output.stderr))
  }
  /** What the platform's matches are after a scan. */
  const matches = async (): Promise<number> => {
    await admin('scan', 'run', '--org', 'Acme', ...data)
    const rows = await admin('scan', 'show', '--org', 'Acme', ...data)
    const found = rows.find(({ platform_name: name }) => name === 'new-llm')
    return Number((found?.['metadata'] as { matches?: number } | undefined)?.matches ?? 0)
  }
  /** The versions that sensors have reported. */
  const reported = async (): Promise<readonly (string | undefined)[]> => {
    const store = new Store(dataDirectory)
    const sensors = store.environment.read(() => {
      return store.organizations.all().flatMap(({ id }) => store.coverage.sensors(id))
    })
    await store.close()
    return sensors.map(({ sensor }) => sensor.registry)
  }
  return { data, dataDirectory, outbox, service, collector, update, query, logged, matches, reported }
}
let made = 0

t.test('a running service and its collector use an update, and a rollback, without a restart', { skip }, async (t) => {
  const { data, collector, update, query, logged, matches } = await madeSite(t)
  const sensor = collector()
  await logged(sensor, /watching/)
  t.equal(await matches(), 0)
  await update(makeUpdate(laterVersion(1), { platforms: [NEW] }))
  // The collector hears of the update with the answer to its next batch.
  query('claude.ai')
  await logged(sensor, /the registry was changed/)
  query(HOST)
  await until('a finding of the new platform', async () => (await matches()) === 1)
  const scans = await admin('scan', 'list', '--org', 'Acme', ...data)
  t.equal(scans.at(-1)?.['registry_version'], BUILT_IN_VERSION)
  t.equal(scans[0]?.['registry_version'], laterVersion(1))

  await admin('registry', 'rollback', ...data)
  t.equal(await matches(), 0, 'the running service went back')
  // A coverage report may have brought the collector the version before this query does.
  query('claude.ai')
  const wentBack = new RegExp(`"version":"${BUILT_IN_VERSION.replaceAll('.', '\\.')}"[^\\n]*the registry was changed`)
  await logged(sensor, wentBack)
  sensor.child.kill('SIGTERM')
  t.match(await sensor.ended, { status: 0 })
})

t.test('killed between download and use, the collector has the one before or the new one', { skip }, async (t) => {
  const { collector, update, query, logged, outbox, reported } = await madeSite(t)
  await update(makeUpdate(laterVersion(1), { platforms: [NEW] }))
  const loaded = (version: string) => new RegExp(`"version":"${version.replaceAll('.', '\\.')}"`)
  for (const point of ['registry:downloaded', 'registry:written', 'registry:kept']) {
    const killed = collector({ POSTURE_FAULT_POINT: point })
    await logged(killed, /watching/)
    query('claude.ai')
    t.match(await killed.ended, { signal: 'SIGKILL' }, point)
    t.match(killed.output.stdout + killed.output.stderr, loaded(BUILT_IN_VERSION), point)
  }
  const kept = JSON.parse(readFileSync(join(outbox, 'registry.json'), 'utf8')) as { key_number: number }
  t.equal(kept.key_number, 1)
  const sensor = collector()
  await logged(sensor, loaded(laterVersion(1)))
  await until('the report of the version', async () => (await reported()).includes(laterVersion(1)))
  sensor.child.kill('SIGTERM')
  await sensor.ended

  writeFileSync(join(outbox, 'registry.json'), '{"key_number":1')
  const damaged = collector()
  await logged(damaged, /the stored registry is not used/)
  await logged(damaged, /watching/)
  query('claude.ai')
  await logged(damaged, /the registry was changed/)
})

t.test('the collector verifies an update itself', { skip }, async (t) => {
  const { dataDirectory, collector, update, query, logged, data } = await madeSite(t)
  const sensor = collector()
  await logged(sensor, /watching/)
  /** As somebody would who has taken over the service. */
  const forge = async (version: string, bytes: Uint8Array) => {
    const store = new Store(dataDirectory)
    store.environment.write(() => {
      const { registryReleases: releases } = store
      releases.put({ version, bytes, sha256: 'f'.repeat(64), keyNumber: 9, installedAtMs: 1 })
      releases.setState({ ...releases.state, installed: version })
    })
    await store.close()
  }
  await forge(laterVersion(1), makeUpdate(laterVersion(1), { root: newKey(), platforms: [NEW] }))
  query('claude.ai')
  await logged(sensor, /no pinned root key has signed its release key/)
  await admin('registry', 'rollback', ...data)

  await update(makeUpdate(laterVersion(2), { signer: SECOND_KEY, platforms: [NEW] }))
  await until('the update after the delay', () => {
    query('claude.ai')
    return /the registry was changed/.test(sensor.output.stdout + sensor.output.stderr)
  })
  await forge(laterVersion(3), makeUpdate(laterVersion(3), { signer: FIRST_KEY }))
  query('claude.ai')
  await logged(sensor, /release key 1 signed it, which key 2 has replaced/)
  t.match(await admin('registry', 'version', ...data), [{ version: laterVersion(3) }])
})
