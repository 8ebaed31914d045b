import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { Outbox } from '../../collector/outbox/outbox.ts'
import { packBatch } from '../../engine/kernel/event/event.ts'
import { askLocal } from '../../engine/kernel/process/local-server.ts'
import { Random } from '../fuzz/random.ts'
import { skipNamespaces as skip } from '../support/namespace.ts'
import { type Ended, type Running, type RunningService, run, start, startService } from '../support/programs.ts'
import { SmallDisk } from '../support/small-disk.ts'
import { testFolder } from '../support/test-folder.ts'
import { until } from '../support/wait.ts'
import { Oracle } from './oracle.ts'
import { type Directories, Organization } from './organization.ts'

const QUERIES = 500_000
/** LMDB's binding prints this before it writes 100 bytes beyond its buffer. */
const LMDB_WITHOUT_SPACE = /Write error/

/** A service, and a collector that reads a capture file and forwards to it. */
class Setup {
  readonly oracle = new Oracle()
  readonly organization: Organization
  readonly service: RunningService
  readonly #collectorParameters: readonly string[]

  private constructor(organization: Organization, service: RunningService, capture: string, outbox: string) {
    this.organization = organization
    this.service = service
    this.oracle.writeCapture(capture, new Random(1), QUERIES, Date.now() - QUERIES)
    this.#collectorParameters = [
      ...['--read', capture, '--outbox', outbox, '--event-window-seconds', '1'],
      ...[
        '--endpoint',
        '127.0.0.1',
        '--https-port',
        String(service.ingestPort),
        '--service-fingerprint',
        service.fingerprint,
      ],
    ]
  }

  /** By default, both programs keep their data in the test's directory. */
  static async prepare(t: Test, overrides: Partial<Directories>): Promise<Setup> {
    const directory = testFolder(t)
    const directories = { data: join(directory, 'service'), outbox: join(directory, 'outbox'), ...overrides }
    const organization = await Organization.make(directories)
    const service = await startService(directories.data)
    t.teardown(() => service.child.kill('SIGKILL'))
    return new Setup(organization, service, join(directory, 'capture.pcap'), directories.outbox)
  }

  collector(t: Test, more: readonly string[] = [], environment: NodeJS.ProcessEnv = {}): Running {
    const parameters = [...this.#collectorParameters, ...more]
    const running = start('collector', parameters, { SVC_TOKEN: this.organization.token, ...environment })
    t.teardown(() => running.child.kill('SIGKILL'))
    return running
  }
}

/**
 * Returns how a program ended. A program that hangs is killed, so the test fails and shows its
 * output.
 */
function endOf(running: Running): Promise<Ended> {
  setTimeout(() => running.child.kill('SIGKILL'), 300_000).unref()
  return running.ended
}

function bytesOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

// The outbox preallocates 4 MB.
for (const megabytesLeft of [11, 0]) {
  t.test(`a full outbox disk (${megabytesLeft} MB left) is logged and loses no event`, { skip }, async (t) => {
    const disk = new SmallDisk(t, 64)
    const outbox = join(disk.directory, 'outbox')
    const setup = await Setup.prepare(t, { outbox })
    await new Outbox(outbox).close()
    disk.fillUpTo(megabytesLeft)
    const collector = setup.collector(t)
    await until('the log message', () => collector.output.stderr.includes('the outbox has no space, the source waits'))
    await later(2500)
    t.equal(collector.child.exitCode, null, 'the collector runs')
    disk.free()
    const { status, stderr } = await endOf(collector)
    t.equal(status, 0, stderr)
    t.notMatch(stderr, LMDB_WITHOUT_SPACE)
    t.same(await setup.organization.differences(setup.oracle.expected), [])
  })
}

t.test('no event is lost when other programs fill the disk during forwarding', { skip }, async (t) => {
  const disk = new SmallDisk(t, 200)
  const outbox = join(disk.directory, 'outbox')
  const setup = await Setup.prepare(t, { outbox })
  // Without aggregation, each match is an event. A slow machine may not fill the disk in time.
  const collector = setup.collector(t, ['--event-window-seconds', '0'])
  await until('events in the outbox', () => bytesOf(join(outbox, 'data.mdb')) > 2 * 1024 * 1024)
  for (let times = 0; times < 5 && collector.child.exitCode === null; times++) {
    disk.fillUpTo(times)
    await later(1500)
    disk.free()
    await later(300)
  }
  const { status, stderr } = await endOf(collector)
  t.equal(status, 0, stderr)
  t.notMatch(stderr, LMDB_WITHOUT_SPACE)
  t.same(await setup.organization.differences(setup.oracle.expected), [])
})

t.test('an outbox that has filled its own disk is drained when the service returns', { skip }, async (t) => {
  const disk = new SmallDisk(t, 24)
  const setup = await Setup.prepare(t, { outbox: join(disk.directory, 'outbox') })
  const filling = setup.collector(t, ['--event-window-seconds', '0', '--no-https', '--syslog', 'off'])
  await until('a full disk', () => filling.child.exitCode !== null || filling.output.stderr.includes('has no space'))
  filling.child.kill('SIGKILL')
  await filling.ended
  const { status, stderr } = await endOf(setup.collector(t, ['--event-window-seconds', '0']))
  t.equal(status, 0, stderr)
  t.same(await setup.organization.differences(setup.oracle.expected), [])
})

for (const megabytesLeft of [32, 0]) {
  t.test(`a service with a full disk (${megabytesLeft} MB left) answers 503 and recovers`, { skip }, async (t) => {
    const disk = new SmallDisk(t, 160)
    const data = join(disk.directory, 'service')
    const setup = await Setup.prepare(t, { data })
    const { service, organization, oracle } = setup
    disk.fillUpTo(megabytesLeft)
    // The service checks the disk once a second.
    await later(1200)
    const collector = setup.collector(t)
    await until('the log message', () => collector.output.stderr.includes('the disk is full'))

    const dispatcher = new Agent({ connect: { ca: readFileSync(join(data, 'tls/certificate.pem')) } })
    const answer = await request(`https://localhost:${service.ingestPort}/ingest/v1/events`, {
      dispatcher,
      method: 'POST',
      headers: { authorization: `Bearer ${organization.token}`, 'content-type': 'application/msgpack' },
      body: packBatch([]),
    })
    t.match(await answer.body.json(), { error: 'Try again later: the disk is full' })
    t.match(answer, { statusCode: 503, headers: { 'retry-after': '5' } })
    await dispatcher.close()
    t.equal(collector.child.exitCode, null, 'the collector keeps retrying')
    const health = await askLocal(service.metricsPort, '/healthz')
    t.equal(health.status, 503)
    t.match(JSON.parse(health.text), { status: 'degraded', reasons: ['the disk is full'] })
    for (const words of [['doctor'], ['organization', 'list'], ['audit', 'list']]) {
      t.match(await run('admin', [...words, '--data-dir', data]), { status: 0, stderr: '' }, `${words} only reads`)
    }
    const scan = await organization.startScan().ended
    // A scan frees more space than it takes, so it may use the reserve. On a completely full disk
    // the scan may fail with STORE_FULL.
    if (megabytesLeft > 0) t.equal(scan.status, 0, scan.stderr)
    else t.match(scan.status === 0 ? 'STORE_FULL' : scan.stderr, /STORE_FULL/)
    // A completely full disk once made the library abort the process.
    for (const words of [
      ['member', 'add', 'a'],
      ['scan', 'run'],
      ['retention', 'apply'],
    ]) {
      const ended = await run('admin', [...words, '--org', 'Acme', '--data-dir', data])
      if (ended.status !== 0) t.match(ended, { status: 4, stderr: /STORE_FULL/ }, `${words}: ${ended.signal}`)
    }
    disk.free()
    const { status, stderr } = await endOf(collector)
    t.equal(status, 0, stderr)
    t.same(await organization.differences(oracle.expected), [])
    t.equal(service.child.exitCode, null, 'the service runs')
    t.same(organization.findings(), [])
    const logged = (text: string): number => service.output.stderr.split(text).length - 1
    t.equal(logged('the store is not written'), 1, 'logged once')
    t.equal(logged('the store is written again'), 1, 'logged once')
    t.match(await askLocal(service.metricsPort, '/healthz'), { status: 200, text: '{"status":"running"}' })
  })
}
