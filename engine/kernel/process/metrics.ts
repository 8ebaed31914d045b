import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { fileDescriptors } from './descriptors.ts'

/** Interval of event loop checks in milliseconds. Each one wakes up an idle process. */
const EVENT_LOOP_CHECK_MS = 1000
const NANOSECONDS = 1e9

/** https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
const TEXT_FORMAT = 'text/plain; version=0.0.4; charset=utf-8'

/** A value with its labels. */
export interface LabeledValue {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}
/** One value, a value for each value of one label, or values with several labels. */
type Values = number | Readonly<Record<string, number>> | readonly LabeledValue[]
/** Name, type, help, values, and the label, if any. */
export type MetricRow = readonly [name: string, type: 'counter' | 'gauge', help: string, values: Values, label?: string]

/** Writes metrics in the text format of Prometheus. */
export class Metrics {
  readonly #eventLoopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: EVENT_LOOP_CHECK_MS })

  constructor() {
    this.#eventLoopDelay.enable()
  }

  close(): void {
    this.#eventLoopDelay.disable()
  }

  /** Renders the rows and those of the process. */
  render(rows: readonly MetricRow[]): { readonly type: string; readonly body: string } {
    return { type: TEXT_FORMAT, body: [...rows, ...this.#processRows()].map(metricText).join('') }
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

/** The lines of one metric. Without values, no sample: 0 would be one more organization, say. */
function metricText([name, type, help, values, label = '']: MetricRow): string {
  let text = `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n# TYPE ${name} ${type}\n`
  for (const { labels, value } of labeledValues(values, label)) text += `${name}${labelsText(labels)} ${value}\n`
  return text
}

function labelsText(labels: LabeledValue['labels']): string {
  let text = ''
  for (const [name, value] of Object.entries(labels)) text += `${text === '' ? '{' : ','}${name}="${labelText(value)}"`
  return text === '' ? '' : `${text}}`
}

/** Few values need escapes, and with 20,000 series the test is cheaper than a replacement. */
function labelText(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, escaped) : value
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`
}

function labeledValues(values: Values, label: string): readonly LabeledValue[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }]
  if (Array.isArray(values)) return values as readonly LabeledValue[]
  return Object.entries(values).map(([value, number]) => ({ labels: { [label]: value }, value: number }))
}
