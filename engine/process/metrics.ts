import { createRequire } from 'node:module'
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { fileDescriptors } from './descriptors.ts'

/** Interval of event loop checks in milliseconds. Each one wakes up an idle process. */
const EVENT_LOOP_CHECK_MS = 1000
const NANOSECONDS = 1e9

/** A value with its labels. */
export interface LabeledValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}
/** One value, a value for each value of one label, or values with several labels. */
type Values = number | Readonly<Record<string, number>> | readonly LabeledValue[]
/** Name, type, help, values, and the label, if any. */
export type MetricRow = readonly [name: string, type: 'counter' | 'gauge', help: string, values: Values, label?: string]

/** Writes Prometheus' text format. Loads the library on the first request, since it takes 8 MB. */
export class Metrics {
  readonly #eventLoopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: EVENT_LOOP_CHECK_MS })

  constructor() {
    this.#eventLoopDelay.enable()
  }

  close(): void {
    this.#eventLoopDelay.disable()
  }

  /** Renders the rows and those of the process. */
  async render(rows: readonly MetricRow[]): Promise<{ type: string; body: string }> {
    const prometheus = createRequire(import.meta.url)('prom-client') as typeof import('prom-client')
    const registry = new prometheus.Registry()
    for (const [name, type, help, values, label] of [...rows, ...this.#processRows()]) {
      const labeled = labeledValues(values, label ?? '')
      const options = { name, help, registers: [registry], labelNames: Object.keys(labeled[0]?.labels ?? {}) }
      const metric = type === 'counter' ? new prometheus.Counter(options) : new prometheus.Gauge(options)
      for (const { labels, value } of labeled) metric.inc(labels, value)
    }
    return { type: registry.contentType, body: await registry.metrics() }
  }

  #processRows(): MetricRow[] {
    const delay = this.#eventLoopDelay
    const { rss, heapUsed, arrayBuffers } = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    // Node measures the time from one check to the next, including the interval.
    const seconds = (nanoseconds: number): number =>
      delay.count === 0 ? 0 : Math.max(0, nanoseconds / NANOSECONDS - EVENT_LOOP_CHECK_MS / 1000)
    const rows: MetricRow[] = [
      [
        'nodejs_eventloop_lag_seconds',
        'gauge',
        'Delay of timers in the main thread since the last scrape',
        { p50: seconds(delay.percentile(50)), p99: seconds(delay.percentile(99)), max: seconds(delay.max) },
        'quantile',
      ],
      ['process_resident_memory_bytes', 'gauge', 'Resident memory', rss],
      ['nodejs_heap_used_bytes', 'gauge', 'Heap of the main thread', heapUsed],
      ['nodejs_array_buffers_bytes', 'gauge', 'Memory of buffers outside the heap', arrayBuffers],
      ...descriptorRows(),
      ['process_cpu_seconds_total', 'counter', 'CPU time of all threads', (user + system) / 1e6],
    ]
    delay.reset()
    return rows
  }
}

/** By the names that Prometheus' client libraries give them. */
function descriptorRows(): MetricRow[] {
  const descriptors = fileDescriptors()
  if (descriptors === undefined) return []
  return [
    ['process_open_fds', 'gauge', 'Open file descriptors', descriptors.open],
    ['process_max_fds', 'gauge', 'Limit of open file descriptors', descriptors.max],
  ]
}

function labeledValues(values: Values, label: string): readonly LabeledValue[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }]
  if (Array.isArray(values)) return values as readonly LabeledValue[]
  return Object.entries(values).map(([value, number]) => ({ labels: { [label]: value }, value: number }))
}
