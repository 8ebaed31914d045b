import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { clusterRows, logRows } from '../../api/cluster.ts'
import { rateRows } from '../../api/rate-limit/cluster-rate.ts'
import { metricRows } from '../../collector/metrics.ts'
import { Metrics } from '../../engine/kernel/process/metrics.ts'
import { statusOf } from './collector-status.ts'
import { REPOSITORY, startService } from './programs.ts'

export const MONITORING = join(REPOSITORY, 'deploy/monitoring')

export interface AlertRule {
  readonly alert: string
  readonly expr: string
}

interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly AlertRule[] }[]
}

export function alertRules(): readonly AlertRule[] {
  const file = parse(readFileSync(join(MONITORING, 'posture-rules.yml'), 'utf8')) as RuleFile
  return file.groups.flatMap(({ rules }) => rules)
}

export interface Panel {
  readonly id?: number
  readonly type: string
  readonly title?: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[]
}

export function dashboardPanels(): readonly Panel[] {
  const text = readFileSync(join(MONITORING, 'grafana-dashboard.json'), 'utf8')
  return (JSON.parse(text) as { readonly panels: readonly Panel[] }).panels
}

/** The queries of the dashboard, with values for Grafana's variables. */
export function dashboardQueries(): readonly string[] {
  return dashboardPanels()
    .flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
    .map((expr) => expr.replaceAll('$__rate_interval', '5m').replaceAll('$organization', '.*'))
}

/**
 * The metrics of a collector that watches an interface and forwards by both transports, of a new
 * service with all listeners, and of a node of a cluster, for which the test needs no brokers.
 */
export async function exportedMetrics(dataDirectory: string): Promise<ReadonlySet<string>> {
  const metrics = new Metrics()
  metrics.close()
  const { body: collector } = await metrics.render([
    ...metricRows(statusOf({ syslog: {} })),
    ...logRows(
      { appended: 0, deferred: 0, removed: 0 },
      { counters: { read: 0, malformed: 0 }, sequence: 0 },
      { lastSequence: 0, bytes: 0, bytesMax: 0 },
    ),
    ...clusterRows({ node: '', isPrimary: true, published: 0, applied: 0, silenceMs: 0 }),
    ...rateRows({ sent: 0, received: 0, malformed: 0, full: 0 }, { sent: 0, received: 0, no_row: 0, lost: 0 }),
  ])
  const anyPort = ['--syslog-tls', '127.0.0.1:0', '--syslog-tcp', '127.0.0.1:0', '--syslog-udp', '127.0.0.1:0']
  const service = await startService(dataDirectory, [...anyPort, '--organization-metrics', 'names'])
  try {
    const response = await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)
    const text = collector + (await response.text())
    return new Set(Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name = '']) => name))
  } finally {
    service.child.kill('SIGTERM')
    await once(service.child, 'close')
  }
}

/** Words of PromQL that are no metric. */
const KEYWORDS = new Set(['and', 'or', 'unless', 'by', 'without', 'on', 'ignoring', 'offset', 'bool'])

/** The metrics that a PromQL expression names. */
export function metricsIn(expr: string): readonly string[] {
  const plain = expr
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, '')
    .replace(/\b(?:by|without|on|ignoring) *\([^)]*\)/g, '')
    .replace(/\boffset +\w+/g, '')
  return [...plain.matchAll(/[a-zA-Z_:][\w:]*(?! *\()\b/g)].flatMap(([name]) => (KEYWORDS.has(name) ? [] : [name]))
}
