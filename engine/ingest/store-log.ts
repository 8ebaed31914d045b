import { setTimeout as sleep } from 'node:timers/promises'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { RETRY_AFTER_SECONDS } from '../limits.ts'
import type { Store } from '../store/store.ts'
import { type Acceptance, type EventAcceptor, unstoredPlaces } from './accept.ts'
import type { MessagePipeline } from './message-pipeline.ts'
import type { LogStorage, OpenFile } from './read-log.ts'

export interface StoreLogOptions {
  /** Polled while the buffer is full. true ends the reading. */
  readonly stopped: () => boolean
  /** Resolves when the reading should end. */
  readonly stop: Promise<unknown>
  /** Frees space in a full buffer. */
  readonly freeSpace: () => Promise<unknown>
}

/** Stores the matches of a log file in the buffer, and which of its messages were read. */
export class LogStore implements LogStorage {
  readonly #store: Store
  readonly #acceptor: EventAcceptor
  readonly #pipeline: MessagePipeline
  readonly #options: StoreLogOptions

  constructor(store: Store, acceptor: EventAcceptor, pipeline: MessagePipeline, options: StoreLogOptions) {
    this.#store = store
    this.#acceptor = acceptor
    this.#pipeline = pipeline
    this.#options = options
  }

  /**
   * Stores the pending events and the hashes of the first `count` messages of the block in one
   * transaction.
   */
  async commit({ block, report, collected }: OpenFile, count: number): Promise<void> {
    // Batches of collectors' events come first. If a later batch fails, their ids still identify
    // them as duplicates.
    const batches = this.#pipeline.takeBatches('all').sort((a, b) => Number(b.deduplicate) - Number(a.deduplicate))
    for (const batch of batches) {
      const { organizationId, bytes, deduplicate } = batch
      const alongside = (): void => block.remember(this.#store, organizationId, count)
      const options = deduplicate ? { deduplicate } : { deduplicate, alongside }
      for (let attempt = 1; ; attempt++) {
        const outcome = await this.#acceptor.acceptPacked(organizationId, bytes, options)
        if (outcome.kind === 'stored') {
          const rejected = outcome.rejected.length
          const places = unstoredPlaces(outcome)
          this.#pipeline.settled(batch, places)
          if (deduplicate) {
            const isOutside = collected.splice(0, batch.senders.length)
            const unstored = [...places.duplicates, ...places.outsideDedupWindow, ...places.rejected]
            report.outsideWindow -= unstored.filter((place) => isOutside[place] === true).length
          }
          // Duplicates among collectors' events are known only now.
          report.matched -= outcome.duplicates + outcome.outsideDedupWindow + rejected
          report.duplicates += outcome.duplicates
          report.outsideDedupWindow += outcome.outsideDedupWindow
          report.rejected += rejected
          break
        }
        if (outcome.kind === 'malformed') throw new Error(`internal error: malformed batch: ${outcome.why}`)
        const fault = this.#finalFault(outcome)
        if (fault !== undefined) {
          for (const messages of batch.messages.values()) report.matched -= messages
          throw fault
        }
        await this.#options.freeSpace()
        // From the second attempt on, freeing space did not help.
        if (attempt > 1) await this.#pause(RETRY_AFTER_SECONDS * SECOND_MS)
      }
    }
  }

  /** Why a batch that was not stored is not tried again; undefined if it is. */
  #finalFault(outcome: Exclude<Acceptance, { kind: 'stored' }>): Fault | undefined {
    if (outcome.kind === 'removed') {
      return new Fault('NOT_FOUND', 'the organization was removed while the file was read')
    }
    const { why } = outcome
    if (this.#store.environment.full) {
      return new Fault('STORE_FULL', `${why}; everything read before is stored. Read the file again later`)
    }
    if (!this.#options.stopped()) return undefined
    return new Fault('STORE_UNWRITABLE', `${why}; stopped, and everything read before is stored. Read the file again`)
  }

  /** Ends early when the reading should end. */
  async #pause(ms: number): Promise<void> {
    const over = new AbortController()
    await Promise.race([sleep(ms, undefined, { signal: over.signal }).catch(() => {}), this.#options.stop])
    over.abort()
  }
}
