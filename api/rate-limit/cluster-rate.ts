import type { NodeMessages } from '../../engine/cluster/log/node-messages.ts'
import type { MetricRow } from '../../engine/kernel/process/metrics.ts'
import { monotonicMs, type RateLimit } from './rate-limit.ts'
import { MESSAGE_USES_MAX, readUses, type UseQueue, useQueues, usesIn } from './uses.ts'

/** How long a use waits for others, so that they share a message. */
const PUBLISH_EVERY_MS = 50

export interface ClusterRateOptions {
  readonly messages: Pick<NodeMessages, 'isConnected' | 'publish' | 'subscribe' | 'stop'>
  /** The counts of this node, which its API threads share. */
  readonly limit: Pick<RateLimit, 'add'>
  /** See uses.ts. */
  readonly uses: SharedArrayBuffer
  readonly nowMs?: () => number
}

/**
 * The rate limit of API keys over the nodes of a cluster. Each node decides by its own counts, and
 * publishes what it has allowed. The others add that to theirs. So no answer waits for a message,
 * and a key can exceed its limit by what several nodes allow before they know of each other.
 * Without brokers, a node counts alone. When it is connected again, it publishes its uses of the
 * last window, and does not know what the others have published meanwhile.
 */
export class ClusterRate {
  readonly #options: ClusterRateOptions
  readonly #queues: readonly UseQueue[]
  readonly #nowMs: () => number
  readonly #counts = { sent: 0, received: 0, malformed: 0, full: 0 }
  readonly #uses = { sent: 0, received: 0, no_row: 0 }
  #timer: NodeJS.Timeout | undefined

  constructor(options: ClusterRateOptions) {
    this.#options = options
    this.#queues = useQueues(options.uses)
    this.#nowMs = options.nowMs ?? monotonicMs
  }

  start(): void {
    this.#options.messages.subscribe((message) => this.receive(message))
    this.#timer = setInterval(() => this.publish(), PUBLISH_EVERY_MS)
  }

  /** Call when the API threads have ended. */
  stop(): void {
    clearInterval(this.#timer)
    this.publish()
    this.#options.messages.stop()
  }

  /** Publishes what this node has allowed. */
  publish(): void {
    const usesMax = this.#options.messages.isConnected ? MESSAGE_USES_MAX : 0
    for (const queue of this.#queues) {
      const message = queue.take(usesMax, this.#nowMs())
      if (message === undefined) continue
      this.#options.messages.publish(message)
      this.#counts.sent++
      this.#uses.sent += usesIn(message)
      if (queue.waiting > 0) this.#counts.full++
    }
  }

  /** Adds what another node has allowed. */
  receive(message: Buffer): void {
    const isOfNode = readUses(message, (at, ageMs) => {
      this.#uses.received++
      if (!this.#options.limit.add(message, at, ageMs)) this.#uses.no_row++
    })
    this.#counts[isOfNode ? 'received' : 'malformed']++
  }

  rows(): MetricRow[] {
    const lost = this.#queues.reduce((sum, queue) => sum + queue.lost, 0)
    return rateRows(this.#counts, { ...this.#uses, lost })
  }
}

type Counts<Outcome extends string> = Readonly<Record<Outcome, number>>

/** The Prometheus metrics of the rate limit over the nodes of a cluster. */
export function rateRows(
  messages: Counts<'sent' | 'received' | 'malformed' | 'full'>,
  uses: Counts<'sent' | 'received' | 'no_row' | 'lost'>,
): MetricRow[] {
  return [
    [
      'posture_cluster_rate_messages_total',
      'counter',
      'Messages about allowed API requests: sent to the other nodes, received from them, malformed; full ones left requests for the next',
      messages,
      'outcome',
    ],
    [
      'posture_cluster_rate_uses_total',
      'counter',
      'Allowed API requests: sent to the other nodes, received from them, received without a free row in the rate table; lost ones are counted on this node only',
      uses,
      'outcome',
    ],
  ]
}
