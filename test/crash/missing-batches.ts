import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { DeliverPolicy, type JsMsg, jetstream } from '@nats-io/jetstream'
import type { NatsConnection } from '@nats-io/transport-node'
import { BatchReader } from '../../engine/ingest/batch-reader.ts'
import { BATCH_EVENTS_MAX } from '../../engine/limits.ts'
import type { IdRun } from '../../engine/store/seen-events.ts'
import type { Store } from '../../engine/store/store.ts'
import type { Brokers } from '../support/brokers.ts'

const RETRY_MS = 250

/*
 * Where acknowledged batches were lost: they are not in the log, they were read but not stored, or
 * they were stored but are in no scan.
 */

export interface AcknowledgedBatch extends IdRun {
  /** By the clock of the test, not of the node. */
  readonly acknowledgedAt: string
  readonly node: string
}

class Undone extends Error {}

/** The batches of which the store has not all events. Changes nothing. */
export function unstored(
  store: Store,
  organizationId: string,
  batches: readonly AcknowledgedBatch[],
): AcknowledgedBatch[] {
  let missing: AcknowledgedBatch[] = []
  try {
    store.environment.write(() => {
      missing = batches.filter(
        (batch) => store.seenEvents.keepUnseen(organizationId, [batch], Date.now()).unseen.length > 0,
      )
      throw new Undone()
    })
  } catch (error) {
    if (!(error instanceof Undone)) throw error
  }
  return missing
}

/** Which messages of the log have which batch. Reads along, because the log is trimmed. */
export class LogRecord {
  /** Messages by instance and first sequence. */
  readonly #messages = new Map<string, string[]>()
  readonly #reader = new BatchReader()
  readonly #brokers: Brokers
  #last = 0
  /** Messages that were trimmed before they were read. */
  readonly #skipped: string[] = []
  #connection: NatsConnection | undefined
  #isStopped = false
  #reading: Promise<void> | undefined

  constructor(brokers: Brokers) {
    this.#brokers = brokers
  }

  start(): void {
    this.#reading = this.#read()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#connection?.close()
    await this.#reading
  }

  /** One line for each of these batches. */
  placesOf(batches: readonly AcknowledgedBatch[]): string[] {
    return batches.map(({ instance, first, acknowledgedAt, node }) => {
      const found = this.#messages.get(`${instance} ${first}`) ?? [
        `not up to message ${this.#last}, of which were not read: ${this.#skipped.join(', ') || 'none'}`,
      ]
      return `batch ${instance} ${first}, acknowledged by ${node} at ${acknowledgedAt}: ${found.join(', ')}`
    })
  }

  async #read(): Promise<void> {
    while (!this.#isStopped) {
      try {
        this.#connection ??= await this.#brokers.connect()
        const consumers = jetstream(this.#connection).consumers
        const consumer = await consumers.get('events', {
          deliver_policy: DeliverPolicy.StartSequence,
          opt_start_seq: this.#last + 1,
        })
        for await (const message of await consumer.consume()) this.#take(message)
      } catch {
        // The brokers elect a leader, or are down.
        await later(RETRY_MS)
      }
    }
  }

  #take({ seq, subject, data, time }: JsMsg): void {
    if (seq <= this.#last) return
    if (seq > this.#last + 1) this.#skipped.push(`${this.#last + 1} to ${seq - 1}`)
    this.#last = seq
    if (subject === 'counters') return
    const batch = this.#reader.read(data, BATCH_EVENTS_MAX, Date.now())
    if (typeof batch === 'string') return
    for (const { instance, first } of batch.runs) {
      const key = `${instance} ${first}`
      this.#messages.set(key, [...(this.#messages.get(key) ?? []), `message ${seq} of ${time.toISOString()}`])
    }
  }
}

/** Keeps what the programs logged, because the folder of the test is removed. */
export function keepLogs(folder: string, logs: ReadonlyMap<string, string>): void {
  mkdirSync(folder, { recursive: true })
  for (const [name, text] of logs) writeFileSync(join(folder, `${name}.log`), text)
}
