import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterRows, logRows } from '../../api/cluster-metrics.ts'
import { rateRows } from '../../api/rate-limit/cluster-rate.ts'
import { metricRows } from '../../collector/metrics.ts'
import { Metrics } from '../../engine/kernel/process/metrics.ts'
import { statusOf } from '../../test/support/collector-status.ts'
import { startService } from '../../test/support/programs.ts'
import { code, markdownTable } from './markdown.ts'

/** Labels with more values are listed without their values. */
const LABEL_VALUES_SHOWN_MAX = 6

/** One metric in Prometheus' text format. */
interface Metric {
  readonly name: string
  type: string
  help: string
  /** The values of each label in the scrape. */
  readonly labels: Map<string, Set<string>>
}

/** The metrics of a collector that watches an interface and forwards by both transports. */
export async function collectorMetrics(): Promise<string> {
  const metrics = new Metrics()
  try {
    return metricsTable((await metrics.render(metricRows(statusOf({ syslog: {} })))).body)
  } finally {
    metrics.close()
  }
}

/** The metrics of a newly started service with all listeners. */
export async function serviceMetrics(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'posture-docs-'))
  const anyPort = ['--syslog-tls', '127.0.0.1:0', '--syslog-tcp', '127.0.0.1:0', '--syslog-udp', '127.0.0.1:0']
  const service = await startService(directory, [...anyPort, '--organization-metrics', 'names'])
  try {
    const response = await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)
    return metricsTable((await response.text()) + logMetrics())
  } finally {
    service.child.kill('SIGTERM')
    await once(service.child, 'close')
    await rm(directory, { recursive: true })
  }
}

/** Those of a log, for which the documentation needs no brokers. */
function logMetrics(): string {
  const metrics = new Metrics()
  metrics.close()
  const counters = { appended: 0, deferred: 0, removed: 0 }
  const reader = { counters: { read: 0, malformed: 0 }, sequence: 0 }
  const rows = [
    ...logRows(counters, reader, { lastSequence: 0, bytes: 0, bytesMax: 0 }),
    ...clusterRows({ node: '', isPrimary: true, published: 0, applied: 0, silenceMs: 0 }),
    ...rateRows({ sent: 0, received: 0, malformed: 0, full: 0 }, { sent: 0, received: 0, no_row: 0, lost: 0 }),
  ]
  const { body } = metrics.render(rows)
  return body.slice(0, body.indexOf('# HELP nodejs_'))
}

function metricsTable(exposition: string): string {
  const rows = parseExposition(exposition).map(({ name, type, help, labels }) => [
    code(name),
    type,
    labelCell(labels),
    help,
  ])
  return markdownTable(['Metric', 'Type', 'Labels', 'Meaning'], rows)
}

function labelCell(labels: Metric['labels']): string {
  return [...labels]
    .map(([label, values]) =>
      values.size > LABEL_VALUES_SHOWN_MAX ? code(label) : `${code(label)}: ${[...values].join(', ')}`,
    )
    .join('; ')
}

/** https://prometheus.io/docs/instrumenting/exposition_formats/ */
function parseExposition(text: string): Metric[] {
  const metrics = new Map<string, Metric>()
  for (const line of text.split('\n')) {
    const [, kind, about = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    const metric = metricOf(metrics, kind === undefined ? (/^\w+/.exec(line)?.[0] ?? '') : about)
    if (metric === undefined) continue
    if (kind === 'HELP') metric.help = rest
    else if (kind === 'TYPE') metric.type = rest
    else for (const [, label = '', value = ''] of line.matchAll(/(\w+)="([^"]*)"/g)) labelOf(metric, label).add(value)
  }
  return [...metrics.values()]
}

function metricOf(metrics: Map<string, Metric>, name: string): Metric | undefined {
  if (name === '') return undefined
  const metric = metrics.get(name) ?? { name, type: '', help: '', labels: new Map() }
  metrics.set(name, metric)
  return metric
}

function labelOf({ labels }: Metric, label: string): Set<string> {
  const values = labels.get(label) ?? new Set()
  labels.set(label, values)
  return values
}
