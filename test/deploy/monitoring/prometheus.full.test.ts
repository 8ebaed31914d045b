import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { ip, namespace, skipNamespaces as skip } from '../../support/namespace.ts'
import { admin, REPOSITORY, start, startCommand, startService } from '../../support/programs.ts'
import { alertRules, dashboardQueries, MONITORING } from '../../support/promql.ts'
import { testFolder } from '../../support/test-folder.ts'
import { until } from '../../support/wait.ts'

/** The set-up of `npm run test:full` unpacks Debian's package here. */
const PROMETHEUS = join(REPOSITORY, 'node_modules/.cache/prometheus/usr/bin')

function promtool(...words: string[]): string {
  return execFileSync(join(PROMETHEUS, 'promtool'), words, { encoding: 'utf8', cwd: MONITORING })
}

t.test('promtool accepts the files, and the tests of the rules pass', async (t) => {
  t.match(promtool('check', 'rules', 'posture-rules.yml'), `SUCCESS: ${alertRules().length} rules found`)
  t.match(promtool('check', 'config', 'prometheus.yml'), 'SUCCESS')
  t.match(promtool('test', 'rules', 'posture-rules.test.yml'), 'SUCCESS')
})

t.test('promtool parses every query of the dashboard', async (t) => {
  const file = join(testFolder(t), 'queries.yml')
  const rules = dashboardQueries().map((expr, index) => ({ record: `query:${index}`, expr }))
  writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules }] }))
  t.match(promtool('check', 'rules', file), `SUCCESS: ${rules.length} rules found`)
  writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules: [{ record: 'a', expr: 'sum by (' }] }] }))
  t.throws(() => promtool('check', 'rules', file), 'a query that is none is found')
})

/** A service, a collector and Prometheus in a network namespace. */
class Site {
  readonly #inside: ReturnType<typeof namespace>

  private constructor(inside: ReturnType<typeof namespace>) {
    this.#inside = inside
  }

  static async make(t: Test): Promise<Site> {
    const inside = namespace(t, `spsprom${process.pid}`)
    ip(...inside('ip', 'link', 'set', 'lo', 'up'))
    const directory = testFolder(t)
    const data = ['--data-dir', join(directory, 'service')]
    await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
    const [token] = await admin('token', 'generate', 'office', '--org', 'Acme', ...data)
    const log = join(directory, 'squid.log')
    const line = `${(Date.now() / 1000).toFixed(3)} 318 192.0.2.48 TCP_TUNNEL/200 6120 CONNECT claude.ai:443 jdoe HIER_DIRECT/198.51.100.20 -`
    writeFileSync(log, `${line}\n`)
    const tokenFile = join(directory, 'token')
    writeFileSync(tokenFile, `${token?.['token']}\n`, { mode: 0o600 })
    await admin('ingest', 'file', log, '--token-file', tokenFile, ...data)
    const through = ['ip', ...inside()]
    const service = await startService(join(directory, 'service'), ['--organization-metrics', 'names'], {}, through)
    t.teardown(() => service.child.kill('SIGKILL'))
    await admin('scan', 'run', '--org', 'Acme', ...data)
    const reach = ['--endpoint', '127.0.0.1', '--https-port', `${service.ingestPort}`]
    const words = ['--interface', 'lo', '--outbox', join(directory, 'outbox'), ...reach]
    const collector = start(
      'collector',
      [...words, '--service-fingerprint', service.fingerprint],
      { SVC_TOKEN: String(token?.['token']), HEALTH_PORT: '9090' },
      through,
    )
    t.teardown(() => collector.child.kill('SIGKILL'))
    startPrometheus(t, directory, through, service.metricsPort)
    return new Site(inside)
  }

  /** An answer of Prometheus' HTTP API; undefined while it does not answer. */
  ask<A>(path: string, parameters: Readonly<Record<string, string>> = {}): A | undefined {
    const url = `http://127.0.0.1:9095/api/v1/${path}?${new URLSearchParams(parameters)}`
    try {
      const text = execFileSync('ip', this.#inside('curl', '-s', url), { encoding: 'utf8' })
      return (JSON.parse(text) as { readonly data: A }).data
    } catch {
      return undefined
    }
  }

  query(query: string): readonly Series[] | undefined {
    return this.ask<{ readonly result: readonly Series[] }>('query', { query })?.result
  }
}

interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [time: number, value: string]
}

/** Metrics of the dashboard that a quiet site with one collector and one imported file does not have. */
const WITHOUT_SERIES =
  /posture_(?:log_|cluster_|organization_(?:visible|framework)|ingest_format|api_answers|collector_(?:names|packets|ech|outbox))/

interface Rule {
  readonly name: string
  readonly health: string
  readonly lastError?: string
}

/**
 * The configuration of deploy/monitoring with another port of the service, and intervals that a
 * scrape on a loaded machine still fits in.
 */
function startPrometheus(t: Test, directory: string, through: readonly string[], metricsPort: number): void {
  const folder = join(directory, 'prometheus')
  mkdirSync(folder)
  copyFileSync(join(MONITORING, 'posture-rules.yml'), join(folder, 'posture-rules.yml'))
  const config = readFileSync(join(MONITORING, 'prometheus.yml'), 'utf8')
    .replace('127.0.0.1:9091', `127.0.0.1:${metricsPort}`)
    .replaceAll('15s', '5s')
  writeFileSync(join(folder, 'prometheus.yml'), config)
  const { global } = parse(config) as { readonly global: { readonly scrape_interval: string } }
  t.equal(global.scrape_interval, '5s')
  const words = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    '--web.listen-address=127.0.0.1:9095',
  ]
  const { child } = startCommand([...through, join(PROMETHEUS, 'prometheus'), ...words])
  t.teardown(() => child.kill('SIGKILL'))
}

t.test('Prometheus scrapes both programs, evaluates the rules, and returns the series', { skip }, async (t) => {
  const site = await Site.make(t)
  const up = await until('both targets are up', () => {
    const series = site.query('up == 1')
    return series?.length === 2 && series
  })
  t.same(up.map(({ metric }) => metric['job']).sort(), ['posture-collector', 'posture-service'])

  const platforms = await until('the platforms of the organization', () => {
    const series = site.query('posture_organization_platforms')
    return series?.length === 1 && series
  })
  t.match(platforms[0], { metric: { organization_name: 'Acme', job: 'posture-service' }, value: [Number, '1'] })
  t.match(platforms[0]?.metric['organization'], /^[0-9a-f-]{36}$/)

  for (const query of dashboardQueries()) {
    const series = await until(query, () => site.query(query))
    t.type(series, Array, query)
  }
  // A rate needs two scrapes. This site has no cluster, no assessment and no traffic.
  const isEmpty = (query: string): boolean => (site.query(query)?.length ?? 0) === 0
  let empty = dashboardQueries().filter((query) => !WITHOUT_SERIES.test(query))
  await until(
    () => `queries of the dashboard without a result: ${empty.join('; ')}`,
    () => {
      empty = empty.filter(isEmpty)
      return empty.length === 0
    },
  )

  const rules = await until('every rule was evaluated', () => {
    const groups = site.ask<{ readonly groups: readonly { readonly rules: readonly Rule[] }[] }>('rules')?.groups
    const all = groups?.flatMap((group) => group.rules)
    return all?.length === alertRules().length && all.every(({ health }) => health !== 'unknown') && all
  })
  t.same(
    rules.filter(({ health }) => health !== 'ok'),
    [],
  )
})
