import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Store } from '../../engine/store/store.ts'
import { CaptureSite, HEALTH_PORT } from '../support/capture-site.ts'
import { ip, skipNamespaces as skip } from '../support/namespace.ts'
import { admin, type Running, start } from '../support/programs.ts'
import { until } from '../support/wait.ts'

/**
 * A collector and a service in a network namespace with a veth pair. tcpreplay sends the packets
 * that the collector captures.
 */

interface Counters {
  readonly counters: readonly {
    counter: string
    total: number
    outcomes: Record<string, number>
    difference: number
  }[]
}

let made = 0
const makeSite = (t: Test): Promise<CaptureSite> => CaptureSite.make(t, `spslive${process.pid}x${made++}`)

/** A collector that captures on `far`. */
function startCollector(
  t: Test,
  { inside, directory, service, token }: CaptureSite,
  parameters: readonly string[] = [],
  environment: NodeJS.ProcessEnv = {},
  through: readonly string[] = [],
): Running {
  const args = ['--interface', 'far', '--outbox', join(directory, 'outbox'), '--event-window-seconds', '1']
  const reach = ['--endpoint', '127.0.0.1', '--https-port', `${service.ingestPort}`]
  const all = [...args, ...reach, '--service-fingerprint', service.fingerprint, ...parameters]
  const variables = { SVC_TOKEN: token, HEALTH_PORT: `${HEALTH_PORT}`, ...environment }
  const running = start('collector', all, variables, ['ip', ...inside(...through)])
  t.teardown(() => running.child.kill('SIGKILL'))
  return running
}

t.test(
  'captured names are matched, stored and forwarded; the counters balance; root is dropped',
  { skip },
  async (t) => {
    const site = await makeSite(t)
    const collector = startCollector(t, site)
    await site.untilHealth('the service', ({ https_connected }) => https_connected)
    site.play([...Array.from({ length: 300 }, () => 'claude.ai'), 'chatgpt.com', 'www.example.org'])
    const health = await site.untilHealth('matches', ({ events_matched }) => events_matched === 301)
    t.match(health, {
      status: 'running',
      interface: 'far',
      events_captured: 302,
      platforms_detected: 2,
      syslog_connected: false,
    })
    t.match(health, { last_event_at: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/ })

    const tasks = `/proc/${collector.child.pid}/task`
    for (const thread of readdirSync(tasks)) {
      const status = readFileSync(`${tasks}/${thread}/status`, 'utf8')
      t.match(status, /^Uid:\t65534\t65534\t65534\t65534$/m)
      t.match(status, /^CapEff:\t0000000000000000$/m)
    }

    // The collector reads the kernel's counters once a second.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    const metrics = site.get(HEALTH_PORT, '/metrics')
    t.match(metrics, /^posture_collector_names_total\{result="matched"\} 301$/m)
    t.match(metrics, /^posture_collector_packets_received_total 302$/m)
    t.match(metrics, /^posture_collector_matches_total\{method="dns"\} 301$/m)
    t.notOk(metrics.includes(site.token), 'no secret is in a metric')

    collector.child.kill('SIGTERM')
    const { status, stderr } = await collector.ended
    t.equal(status, 0, stderr)
    const ended = stderr.split('\n').map((line) => (line === '' ? {} : (JSON.parse(line) as Record<string, unknown>)))
    t.match(ended.at(-2), {
      msg: 'ended',
      frames: 302,
      matches: 301,
      events: 301,
      acknowledged: 301,
      waiting: 0,
      rejected: 0,
    })
    t.notOk(stderr.includes('counters do not balance'), stderr)
    t.notOk(stderr.includes(site.token), 'no secret is logged')

    const [scan] = await admin('scan', 'run', '--org', 'Acme', '--data-dir', site.data)
    t.match(scan, { status: 'completed', events: 301, summary: { platforms_discovered: 2 } })
  },
)

t.test('health reports when the link goes down and up, and when it disappears and returns', { skip }, async (t) => {
  const site = await makeSite(t)
  // After dropping root, a collector cannot open a new interface.
  const collector = startCollector(t, site, ['--run-as', 'root'])
  await site.untilHealth('the start', ({ status }) => status === 'running')
  ip(...site.inside('ip', 'link', 'set', 'far', 'down'))
  t.match(await site.untilHealth('down', ({ status }) => status === 'degraded'), { reason: /^far is down/ })
  ip(...site.inside('ip', 'link', 'set', 'far', 'up'))
  await site.untilHealth('up', ({ status }) => status === 'running')
  ip(...site.inside('ip', 'link', 'delete', 'far'))
  t.match(await site.untilHealth('gone', ({ status }) => status === 'degraded'), {
    reason: /^far(: the interface)? is gone|^far: no such interface/,
  })
  ip(...site.inside('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far'))
  for (const link of ['near', 'far']) ip(...site.inside('ip', 'link', 'set', link, 'up'))
  await site.untilHealth('back', ({ status }) => status === 'running')
  site.play(['claude.ai'])
  await site.untilHealth('a match', ({ events_matched }) => events_matched === 1)
  const { counters } = JSON.parse(site.get(HEALTH_PORT, '/counters')) as Counters
  t.same(
    counters.map(({ counter, difference }) => [counter, difference]),
    ['packets', 'names', 'matches', 'events'].map((counter) => [counter, 0]),
  )
  // The health log checks once a second.
  while (!collector.output.stderr.includes('"msg":"running again"')) await later(50)
  collector.child.kill('SIGTERM')
  const { status, stderr } = await collector.ended
  t.equal(status, 0)
  t.match(stderr, /"reason":"far is down[^"]*","msg":"degraded"/)
  t.match(stderr, /"msg":"running again"/)
})

/** Port of an HTTP server that does nothing else, in the collector's network namespace. */
const IDLE_PORT = 19_091
const IDLE_SERVER = `
  import { createServer } from 'node:http'
  createServer((_request, response) => response.end('{}')).listen(${IDLE_PORT}, '127.0.0.1', () => console.log('listening'))`

/**
 * Requests /health and the idle server in turn for a time. Prints their response times in
 * milliseconds.
 */
const POLLER = `
  const [port, forMs] = process.argv.slice(1).map(Number)
  const took = { health: [], idle: [] }
  const measure = async (times, url) => {
    const start = performance.now()
    await (await fetch(url)).json()
    times.push(performance.now() - start)
  }
  for (const end = performance.now() + forMs; performance.now() < end; ) {
    await measure(took.health, 'http://127.0.0.1:' + port + '/health')
    await measure(took.idle, 'http://127.0.0.1:${IDLE_PORT}/')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  console.log(JSON.stringify(took))`

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.POSITIVE_INFINITY
}

// The idle server runs on the same busy machine, so the difference is what the collector adds.
// Medians, because a scheduler delays single answers of either process by hundreds of milliseconds.
t.test(
  'while the ring is full, /health takes at most 100 ms longer than an idle server, and every loss is counted',
  { skip },
  async (t) => {
    const site = await makeSite(t)
    const collector = startCollector(t, site, ['--capture-buffer-mb', '1', '--decode-workers', '0'])
    await site.untilHealth('the start', ({ status }) => status === 'running')
    const node = (program: string, ...words: string[]) =>
      spawn('ip', site.inside(process.execPath, '--input-type=module', '-e', program, ...words), {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
    const idle = node(IDLE_SERVER)
    t.teardown(() => idle.kill())
    await once(idle.stdout, 'data')
    const poller = node(POLLER, `${HEALTH_PORT}`, '3000')
    let polled = ''
    poller.stdout.setEncoding('utf8').on('data', (piece: string) => {
      polled += piece
    })
    const polling = once(poller, 'close')
    const names = Array.from({ length: 20_000 }, (_name, index) =>
      index % 4 === 0 ? 'claude.ai' : `h${index}.example.org`,
    )
    site.play(names, '--preload-pcap', '--loop', '150')
    await polling
    const took = JSON.parse(polled) as { readonly health: number[]; readonly idle: number[] }
    t.ok(took.health.length > 3)
    t.ok(
      median(took.health) < median(took.idle) + 100,
      `/health ${took.health.map(Math.round)} ms, idle server ${took.idle.map(Math.round)} ms`,
    )
    collector.child.kill('SIGTERM')
    const { status, stderr } = await collector.ended
    t.equal(status, 0, stderr)
    const [line = '{}'] = stderr.split('\n').filter((entry) => entry.includes('"msg":"ended"'))
    const ended = JSON.parse(line) as { frames: number; packetsDropped: Record<string, number> }
    const lost = Object.values(ended.packetsDropped).reduce((sum, count) => sum + count, 0)
    t.ok(lost > 0, `the ring was full: ${line}`)
    t.notOk(stderr.includes('counters do not balance'), stderr)
  },
)

t.test('SIGHUP reloads the registry and the log level', { skip }, async (t) => {
  const site = await makeSite(t)
  const registry = join(site.directory, 'registry.yaml')
  const environmentFile = join(site.directory, 'collector.env')
  const platform = (domain: string) => `
platforms:
  - id: house-ai
    name: House AI
    vendor: Acme
    platform_type: llm_chat
    url: https://ai.acme.example
    risk: { score: 5, why: Runs in our own data centre }
    source: [architecture board]
    domains:
      - { domain: ${domain}, match: suffix, role: web, specificity: 1 }
`
  writeFileSync(registry, platform('first.acme.example'))
  writeFileSync(environmentFile, 'LOG_LEVEL=WARNING\n')
  const collector = startCollector(t, site, [
    '--registry-file',
    registry,
    '--settings-file',
    environmentFile,
    '--decode-workers',
    '1',
  ])
  await site.untilHealth('the start', ({ status }) => status === 'running')
  site.play(['first.acme.example', 'second.acme.example'])
  await site.untilHealth('the first match', ({ events_matched }) => events_matched === 1)
  t.notOk(collector.output.stderr.includes('"msg":"watching"'), 'INFO is not written')
  writeFileSync(registry, platform('second.acme.example'))
  writeFileSync(environmentFile, 'LOG_LEVEL=INFO\nSERVICE_CA_FILE=/etc/other.pem\n')
  collector.child.kill('SIGHUP')
  await until('the settings', () => collector.output.stderr.includes('"msg":"changed settings that require a restart"'))
  t.match(collector.output.stderr, /"settings":\["--service-ca-file"\]/)
  t.match(collector.output.stderr, /"logLevel":"INFO","msg":"reloaded"/)
  site.play(['first.acme.example', 'second.acme.example'])
  const health = await site.untilHealth('the second match', ({ events_matched }) => events_matched === 2)
  t.equal(health.platforms_detected, 1)
  writeFileSync(registry, 'platforms: [')
  collector.child.kill('SIGHUP')
  await until('the refusal', () => collector.output.stderr.includes('"msg":"not reloaded'))
  t.match(
    collector.output.stderr,
    /"reason":"[^"]*registry\.yaml[^"]*","msg":"not reloaded; the previous settings and registry stay active"/,
  )
  site.play(['second.acme.example'])
  await site.untilHealth('a match by the registry before', ({ events_matched }) => events_matched === 3)
})

t.test('SIGHUP during the start is not fatal and takes effect', { skip }, async (t) => {
  const site = await makeSite(t)
  const environmentFile = join(site.directory, 'collector.env')
  writeFileSync(environmentFile, 'LOG_LEVEL=INFO\n')
  const collector = startCollector(t, site, ['--settings-file', environmentFile])
  const hangUps = setInterval(() => {
    // Until Node runs the program, no signal handler is installed.
    if (collector.output.stderr.includes('registry loaded')) collector.child.kill('SIGHUP')
  }, 20)
  await site.untilHealth('the start', ({ status }) => status === 'running')
  clearInterval(hangUps)
  site.play(['claude.ai'])
  await site.untilHealth('a match', ({ events_matched }) => events_matched === 1)
  await until('the settings', () => collector.output.stderr.includes('"msg":"reloaded"'))
})

t.test('with the outbox in memory, root is dropped and nothing is written to disk', { skip }, async (t) => {
  const site = await makeSite(t)
  const collector = startCollector(t, site, ['--outbox', 'memory'])
  await site.untilHealth('the service', ({ https_connected }) => https_connected)
  site.play(['claude.ai', 'chatgpt.com'])
  await site.untilHealth('matches', ({ events_matched }) => events_matched === 2)
  collector.child.kill('SIGTERM')
  const { status, stderr } = await collector.ended
  t.equal(status, 0, stderr)
  t.match(stderr, /--outbox memory: events that are not forwarded are lost when the collector ends or crashes/)
  t.match(stderr, /root privileges are dropped/)
  t.match(stderr, /"acknowledged":2,.*"waiting":0,.*"msg":"ended"/)
  t.notOk(existsSync(join(site.directory, 'outbox')))
})

t.test('the collector runs under nsenter, where /sys belongs to another namespace', { skip }, async (t) => {
  const site = await makeSite(t)
  const { service } = site
  const args = ['--interface', 'far', '--outbox', 'memory', '--https-port', String(service.ingestPort)]
  const enter = ['nsenter', `--net=/run/netns/${site.network}`, 'env', '-u', 'NODE_OPTIONS']
  const trust = ['--endpoint', '127.0.0.1', '--service-fingerprint', service.fingerprint]
  const variables = { SVC_TOKEN: site.token, HEALTH_PORT: `${HEALTH_PORT}` }
  const collector = start('collector', [...args, ...trust], variables, enter)
  t.teardown(() => collector.child.kill('SIGKILL'))
  await site.untilHealth('the start', ({ status }) => status === 'running')
  site.play(['claude.ai'])
  await site.untilHealth('a match', ({ events_matched }) => events_matched === 1)
})

t.test(
  'a root user who cannot change users, as in a container with only CAP_NET_RAW, continues',
  { skip },
  async (t) => {
    const site = await makeSite(t)
    const collector = startCollector(t, site, [], {}, ['setpriv', '--bounding-set=-all,+net_raw', '--inh-caps=-all'])
    await site.untilHealth('the start', ({ status }) => status === 'running')
    t.match(readFileSync(`/proc/${collector.child.pid}/status`, 'utf8'), /^CapEff:\t0000000000002000$/m)
    site.play(['claude.ai'])
    await site.untilHealth('a match', ({ events_matched }) => events_matched === 1)
    t.notOk(collector.output.stderr.includes('root privileges are dropped'))
    collector.child.kill('SIGTERM')
    t.equal((await collector.ended).status, 0)
  },
)

t.test(
  'SIGTERM ends the collector within ten seconds while the service is unavailable; events wait on disk',
  { skip },
  async (t) => {
    const site = await makeSite(t)
    const collector = startCollector(t, site, ['--https-port', '1'])
    await site.untilHealth('the start', ({ status }) => status === 'running')
    site.play(['claude.ai'])
    await site.untilHealth('a match', ({ events_matched }) => events_matched === 1)
    const start = performance.now()
    collector.child.kill('SIGTERM')
    const { status, stderr } = await collector.ended
    t.ok(performance.now() - start < 10_000)
    t.equal(status, 0, stderr)
    t.match(stderr, /"acknowledged":0,.*"waiting":1,.*"msg":"ended"/)
  },
)

t.test('each failure to start is one error line', { skip }, async (t) => {
  const site = await makeSite(t)
  const first = startCollector(t, site)
  const sharedDirectory = join(site.directory, 'shared')
  mkdirSync(sharedDirectory)
  writeFileSync(join(sharedDirectory, 'of another program'), '')
  await site.untilHealth('the start', ({ status }) => status === 'running')
  const elsewhere = { HEALTH_PORT: '0' }
  const manyPorts = Array.from({ length: 90 }, (_, index) => 2 * index + 1).join(',')
  const rows: readonly (readonly [
    args: readonly string[],
    status: number,
    expected: RegExp,
    own?: NodeJS.ProcessEnv,
  ])[] = [
    [[], 4, /^posture-collector: PORT_TAKEN HEALTH_PORT: 127\.0\.0\.1:9090 is in use/, {}],
    [
      ['--interface', 'fra', '--outbox', join(site.directory, 'outbox')],
      4,
      /^posture-collector: STORE_IN_USE --outbox \S+outbox: another collector runs on it; stop that one/,
    ],
    [
      ['--outbox', sharedDirectory],
      4,
      /^posture-collector: STORE_UNWRITABLE --outbox \S+: user nobody cannot write there; name a directory of its own/,
    ],
    [
      ['--capture-filter', 'not vlan'],
      2,
      /^posture-collector: USAGE --capture-filter: "not vlan": "vlan" is not supported/,
    ],
    [
      ['--tls-ports', manyPorts],
      2,
      /^posture-collector: USAGE the filter does not fit the kernel: 9\d ports or ranges/,
    ],
    [
      ['--capture-filter', 'ip and ip6'],
      2,
      /^posture-collector: USAGE --capture-filter: "ip and ip6": .*rejects all packets/,
    ],
    [['--interface', 'fra'], 4, /^posture-collector: CAPTURE_DENIED fra: no such interface; available: far/],
    [['--run-as', 'nobody-at-all'], 2, /^posture-collector: USAGE --run-as: no user "nobody-at-all"/],
    [
      ['--capture-buffer-mb', '0'],
      2,
      /^posture-collector: USAGE --capture-buffer-mb: expected a whole number from 1 to 1024, found "0"/,
      {},
    ],
    [['--settings-file', '/none'], 2, /^posture-collector: USAGE --settings-file \/none: no such file/, {}],
  ]
  for (const [index, [args, status, expected, own = elsewhere]] of rows.entries()) {
    const refused = startCollector(t, site, ['--outbox', join(site.directory, `other${index}`), ...args], own)
    const ended = await refused.ended
    const [line = ''] = ended.stderr.split('\n').filter((each) => each.startsWith('posture-collector:'))
    t.match(line, expected)
    t.equal(ended.status, status)
  }
  const wrong = startCollector(t, site, ['--outbox', join(site.directory, 'wrong')], {
    HEALTH_PORT: '0',
    SVC_TOKEN: `svc_mt_${'0'.repeat(48)}`,
  })
  const refused = await wrong.ended
  t.equal(refused.status, 5, 'an unknown token ends the collector before the first match')
  t.match(refused.stderr, /TOKEN_REFUSED/)
  first.child.kill('SIGTERM')
  t.equal((await first.ended).status, 0)
})

t.test(
  'a capturing collector reports its coverage early and at the end; another start is another sensor',
  { skip },
  async (t) => {
    const site = await makeSite(t)
    const reported = () => {
      const store = new Store(site.data, { mustExist: true })
      const [acme] = store.organizations.all()
      const { sensors, counters } = store.coverage.sumSince(acme?.id ?? '', 0)
      void store.close()
      return { sensors, packets: counters.packets, names: counters.names }
    }
    const first = startCollector(t, site)
    await site.untilHealth('the service', ({ https_connected }) => https_connected)
    site.play(['claude.ai', 'www.example.org', 'www.example.net'])
    while (!/^posture_collector_coverage_reports_total\{outcome="sent"\} 1$/m.test(site.get(HEALTH_PORT, '/metrics')))
      await later(100)
    t.same(reported(), { sensors: 1, packets: 3, names: 3 })
    // Less than ten seconds before the last report.
    site.play(['claude.ai', 'www.example.org'])
    await site.untilHealth('the others', ({ events_matched }) => events_matched === 2)
    first.child.kill('SIGTERM')
    t.equal((await first.ended).status, 0)
    t.same(reported(), { sensors: 1, packets: 5, names: 5 })
    const second = startCollector(t, site)
    await site.untilHealth('the service', ({ https_connected }) => https_connected)
    site.play(['claude.ai'])
    await site.untilHealth('one more', ({ events_matched }) => events_matched === 1)
    second.child.kill('SIGTERM')
    t.equal((await second.ended).status, 0)
    t.same(reported(), { sensors: 2, packets: 6, names: 6 })
  },
)
