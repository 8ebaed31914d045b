import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t from 'tap'
import { Random } from '../fuzz/random.ts'
import { ip, namespace, skipNamespaces as skip } from '../support/namespace.ts'
import { start, startService } from '../support/programs.ts'
import { testFolder } from '../support/test-folder.ts'
import { Oracle } from './oracle.ts'
import { Organization } from './organization.ts'

const SERVICE_ADDRESS = '10.99.0.1'
const COLLECTOR_ADDRESS = '10.99.0.2'
/**
 * A static ARP entry. Without ARP queries, the collector's host does not notice that the service is
 * unreachable.
 */
const SERVICE_MAC = '02:00:00:00:00:01'
const QUERIES = 400_000
/**
 * TCP survives the first interruption. The second is longer than the collector's timeout for an
 * answer.
 */
const INTERRUPTIONS_MS = [2500, 31_500]
/** A few batches: the network is interrupted long before all events have arrived. */
const BYTES_BEFORE_INTERRUPTION = 200_000

t.test(
  'every event arrives exactly once after the network has dropped all packets for a while',
  { skip },
  async (t) => {
    const far = `spsfar${process.pid}`
    const near = `spsnear${process.pid}`
    const atService = namespace(t, near)
    const atCollector = namespace(t, far)
    ip('-n', near, 'link', 'add', 'near', 'address', SERVICE_MAC, 'type', 'veth', 'peer', 'name', 'far', 'netns', far)
    for (const [name, link, address] of [
      [near, 'near', SERVICE_ADDRESS],
      [far, 'far', COLLECTOR_ADDRESS],
    ] as const) {
      ip('-n', name, 'address', 'add', `${address}/24`, 'dev', link)
      for (const each of ['lo', link]) ip('-n', name, 'link', 'set', each, 'up')
    }
    ip('-n', far, 'neighbour', 'add', SERVICE_ADDRESS, 'lladdr', SERVICE_MAC, 'dev', 'far', 'nud', 'permanent')

    const directory = testFolder(t)
    const directories = { data: join(directory, 'service'), outbox: join(directory, 'outbox') }
    const capture = join(directory, 'capture.pcap')
    const oracle = new Oracle()
    oracle.writeCapture(capture, new Random(1), QUERIES, Date.now() - QUERIES)
    const organization = await Organization.make(directories)
    const everywhere = ['--ingest-address', '0.0.0.0', '--api-threads', '1']
    const service = await startService(directories.data, everywhere, {}, ['ip', ...atService()])
    t.teardown(() => service.child.kill('SIGKILL'))
    const reach = ['--endpoint', SERVICE_ADDRESS, '--https-port', String(service.ingestPort)]
    const collector = start(
      'collector',
      [
        ...['--read', capture, '--outbox', directories.outbox, '--event-window-seconds', '1'],
        ...[...reach, '--service-fingerprint', service.fingerprint],
      ],
      { SVC_TOKEN: organization.token },
      ['ip', ...atCollector()],
    )
    t.teardown(() => collector.child.kill('SIGKILL'))

    const receivedBytes = (): number =>
      JSON.parse(execFileSync('ip', ['-n', near, '-s', '-j', 'link', 'show', 'near'], { encoding: 'utf8' }))[0].stats64
        .rx.bytes
    for (const interruptionMs of INTERRUPTIONS_MS) {
      const interruptedAt = receivedBytes() + BYTES_BEFORE_INTERRUPTION
      while (receivedBytes() < interruptedAt && collector.child.exitCode === null) await later(1)
      t.equal(collector.child.exitCode, null, 'the collector is forwarding')
      ip('-n', near, 'link', 'set', 'near', 'down')
      await later(interruptionMs)
      ip('-n', near, 'link', 'set', 'near', 'up')
    }
    const { status, stderr } = await collector.ended
    t.equal(status, 0, stderr)
    t.match(stderr, /cannot forward, the events wait in the outbox/, 'the collector logged the long interruption')
    t.same(await organization.differences(oracle.expected), [])
  },
)
