import { isTaken, type Taken } from './message-pipeline.ts'
import type { Origin } from './origin.ts'

/**
 * 10 s for an election of brokers, and RETRY_AFTER_SECONDS until the batch of an organization is
 * tried again.
 */
export const DATAGRAM_WAIT_MS = 15_000
/** Approximate overhead of a datagram that waits. */
const DATAGRAM_BYTES = 128

interface Waiting {
  readonly datagram: Uint8Array
  readonly arrivedMs: number
}

/** The datagrams of one peer, in order of arrival. Those before `first` are gone. */
interface Queue {
  readonly origin: Origin
  datagrams: Waiting[]
  first: number
}

export interface WaitingDatagramsOptions {
  /** Beyond it, datagrams are dropped when they arrive. */
  readonly bytesMax: number
  /** Datagrams that waited for this time are dropped. */
  readonly waitMs: number
  /** Tries to process a datagram. It waits if the queue is full, not if its token is over its rate. */
  readonly take: (datagram: Uint8Array, origin: Origin) => Taken
}

/**
 * Datagrams that cannot be stored now, such as during an election of brokers: UDP has no other way
 * to make a sender wait. The datagrams of a peer stay in order.
 */
export class WaitingDatagrams {
  count = 0
  /** Dropped because there was no space, or after the time. */
  dropped = 0
  #bytes = 0
  readonly #queues = new Map<Origin, Queue>()
  readonly #options: WaitingDatagramsOptions

  constructor(options: WaitingDatagramsOptions) {
    this.#options = options
  }

  /** Processes a datagram, or keeps a copy of it. */
  add(datagram: Uint8Array, origin: Origin, arrivedMs: number): void {
    let queue = this.#queues.get(origin)
    if (queue === undefined) {
      const taken = this.#options.take(datagram, origin)
      if (isTaken(taken)) return
      if (taken === 'overRate') {
        this.dropped++
        return
      }
    }
    const bytes = datagram.length + DATAGRAM_BYTES
    if (this.#bytes + bytes > this.#options.bytesMax) {
      this.dropped++
      return
    }
    if (queue === undefined) {
      queue = { origin, datagrams: [], first: 0 }
      this.#queues.set(origin, queue)
    }
    queue.datagrams.push({ datagram: Uint8Array.from(datagram), arrivedMs })
    this.count++
    this.#bytes += bytes
  }

  /** Tries again, and drops what has waited for too long. */
  resume(nowMs: number): void {
    for (const queue of this.#queues.values()) this.#resume(queue, nowMs)
  }

  #resume(queue: Queue, nowMs: number): void {
    const { take, waitMs } = this.#options
    for (let next = queue.datagrams[queue.first]; next !== undefined; next = queue.datagrams[queue.first]) {
      const { datagram, arrivedMs } = next
      const isDone = isTaken(take(datagram, queue.origin))
      // An arrival in the future: the clock was set back.
      const isLate = nowMs - arrivedMs > waitMs || arrivedMs > nowMs
      // Also if it is over the rate now: those that waited come at once.
      if (!isDone && !isLate) break
      if (!isDone) this.dropped++
      queue.first++
      this.count--
      this.#bytes -= datagram.length + DATAGRAM_BYTES
    }
    if (queue.first === queue.datagrams.length) this.#queues.delete(queue.origin)
    else if (queue.first > queue.datagrams.length / 2) {
      queue.datagrams = queue.datagrams.slice(queue.first)
      queue.first = 0
    }
  }
}
