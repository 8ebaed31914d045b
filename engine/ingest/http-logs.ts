import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { SCRATCH_BYTES } from '../formats/log-line.ts'
import { SECOND_MS, systemClock } from '../kernel/process/clock.ts'
import { MESSAGE_BYTES_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import { OUTCOMES, type OutcomeName } from '../store/outcomes.ts'
import type { KnownHosts } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import { type BatchWriter, unstoredPlaces } from './accept.ts'
import type { IngestAccounting } from './ingest-accounting.ts'
import { LogRecords } from './log-records.ts'
import { isTaken, MessagePipeline, type OutgoingBatch, type Taken } from './message-pipeline.ts'
import { Origin } from './origin.ts'
import type { TokenRate } from './rates.ts'
import { TokenAuthenticator } from './token-authenticator.ts'

/** Messages read before other work of the thread gets its turn, about 2 ms. */
const MESSAGES_PER_TURN = 1000
/** Milliseconds until a token over its rate is tried again. */
const RATE_RETRY_MS = 50
/** Maximum milliseconds that the messages of a body wait for their token's rate. */
const RATE_WAIT_MS = 10_000

const STOPPING = 'the service is stopping'

/** Messages of a body by outcome, and which were not read because of the token's rate. */
export interface LogsTaken {
  readonly kind: 'taken'
  readonly messages: number
  readonly counts: Readonly<Record<OutcomeName, number>>
  /** Not all messages were read: the token was over its rate for too long. */
  readonly isOverRate: boolean
}

/** `removed`: the token was revoked, or its organization removed. `busy`: nothing was read. */
export type LogsOutcome = LogsTaken | { readonly kind: 'removed' } | { readonly kind: 'busy'; readonly why: string }

export interface HttpLogsOptions {
  readonly store: Store
  readonly known: KnownHosts
  readonly acceptor: BatchWriter
  readonly accounting: IngestAccounting
  /** Maximum messages per token and second, with those of syslog. undefined: no limit. */
  readonly tokenRate: TokenRate | undefined
}

/** The events of one organization that wait to be stored. */
interface Storing {
  /** Storing that has begun, and the one that follows it. */
  running: Promise<void>
  next: Promise<void> | undefined
  /** Why storing waits; '' if it does not. */
  waitsBecause: string
}

/** The events of a body cannot be stored, and the sender has to send it again. */
class NotStored extends Error {
  override readonly name = 'NotStored'
}

/**
 * Reads the log messages of HTTPS requests. Their matches are on disk when `take` resolves. Each
 * organization waits for its own storing only.
 */
export class HttpLogs {
  readonly pipeline: MessagePipeline
  readonly #options: HttpLogsOptions
  readonly #authenticator: TokenAuthenticator
  /** By organization, while it has events that are not stored. */
  readonly #storing = new Map<string, Storing>()
  readonly #stopping = new AbortController()

  constructor(options: HttpLogsOptions) {
    const { store, known, tokenRate, accounting } = options
    this.#options = options
    this.#authenticator = new TokenAuthenticator(store, systemClock)
    this.pipeline = new MessagePipeline(new Uint8Array(MESSAGE_BYTES_MAX + SCRATCH_BYTES), known, this.#authenticator, {
      tokenRate,
      sources: accounting.sources,
      noteUnauthorized: () => {},
    })
  }

  /**
   * Reads the messages of a body: lines, or JSON objects with or without line feeds between them.
   */
  async take(body: Buffer, token: string, address: string): Promise<LogsOutcome> {
    const text = Buffer.from(token)
    const known = this.#authenticator.find(text, 0, text.length)
    if (known === undefined) return { kind: 'removed' }
    const { organizationId } = known
    const why = this.#stopping.signal.aborted ? STOPPING : this.#storing.get(organizationId)?.waitsBecause
    if (why !== undefined && why !== '') return { kind: 'busy', why }
    let taken: LogsTaken
    try {
      taken = await this.#read(body, new Origin('https', address, 0, known), organizationId)
      await this.#store(organizationId)
    } catch (error) {
      if (!(error instanceof NotStored)) throw error
      return { kind: 'busy', why: error.message }
    }
    const { accounting, store } = this.#options
    accounting.add({ sources: [], rejects: this.pipeline.takeRejects(), candidates: this.pipeline.candidates.take() })
    const isRemoved = taken.counts.unauthorized > 0 || !store.organizations.exists(organizationId)
    return isRemoved ? { kind: 'removed' } : taken
  }

  /** Stops retries. Bodies whose events are not stored are answered so that senders retry. */
  stop(): void {
    this.#stopping.abort()
  }

  async #read(body: Buffer, origin: Origin, organizationId: string): Promise<LogsTaken> {
    const records = new LogRecords(body, MESSAGE_BYTES_MAX)
    const counts = Object.fromEntries(OUTCOMES.map((name) => [name, 0])) as Record<OutcomeName, number>
    const lateMs = Date.now() + RATE_WAIT_MS
    let messages = 0
    let isOverRate = false
    while (!isOverRate && records.next(body.length, true)) {
      if (records.start === records.end) continue
      // Other bodies use the buffer while this one waits.
      let taken = this.#takeMessage(body, records, origin)
      for (let tries = 0; !isTaken(taken); tries++) {
        if (tries > 0) {
          isOverRate = Date.now() > lateMs
          if (isOverRate) break
          await sleep(RATE_RETRY_MS)
        }
        await this.#store(organizationId)
        taken = this.#takeMessage(body, records, origin)
      }
      if (!isTaken(taken)) break
      counts[taken]++
      if (++messages % MESSAGES_PER_TURN === 0) await setImmediate()
    }
    return { kind: 'taken', messages, counts, isOverRate }
  }

  #takeMessage(body: Buffer, { start, end }: LogRecords, origin: Origin): Taken {
    const { line } = this.pipeline
    body.copy(line.bytes, 0, start, end)
    line.referenceMs = Date.now()
    return this.pipeline.take(0, end - start, origin)
  }

  /**
   * Stores the pending events of an organization. Bodies that wait at the same time share a
   * transaction.
   *
   * @throws NotStored
   */
  #store(organizationId: string): Promise<void> {
    const storing = this.#storing.get(organizationId) ?? {
      ...{ running: Promise.resolve(), next: undefined, waitsBecause: '' },
    }
    this.#storing.set(organizationId, storing)
    storing.next ??= storing.running
      .catch(() => {})
      .then(() => {
        storing.next = undefined
        storing.running = this.#storePending(organizationId, storing)
        return storing.running
      })
    return storing.next
  }

  async #storePending(organizationId: string, storing: Storing): Promise<void> {
    let failure: NotStored | undefined
    for (const batch of this.pipeline.takeBatches('all', organizationId)) {
      try {
        while (!(await this.#storeBatch(batch, storing))) await this.#pause()
      } catch (error) {
        if (!(error instanceof NotStored)) throw error
        failure = error
        const rejected = Array.from({ length: batch.events }, (_, index) => index)
        this.pipeline.settled(batch, { duplicates: [], outsideDedupWindow: [], rejected })
      }
      storing.waitsBecause = ''
    }
    if (storing.next === undefined) this.#storing.delete(organizationId)
    if (failure !== undefined) throw failure
  }

  /** @throws NotStored */
  async #pause(): Promise<void> {
    const { signal } = this.#stopping
    await sleep(RETRY_AFTER_SECONDS * SECOND_MS, undefined, { signal }).catch(() => {
      throw new NotStored(STOPPING)
    })
  }

  /** Returns false if it has to be tried again. @throws NotStored */
  async #storeBatch(batch: OutgoingBatch, storing: Storing): Promise<boolean> {
    const { organizationId, bytes, deduplicate, reports } = batch
    const outcome = await this.#options.acceptor.acceptPacked(organizationId, bytes, { deduplicate, reports })
    if (outcome.kind === 'retry') {
      // No later try can succeed.
      if (outcome.isDamaged) throw new NotStored(outcome.why)
      storing.waitsBecause = outcome.why
      return false
    }
    if (outcome.kind === 'malformed') throw new Error(`internal error: malformed batch: ${outcome.why}`)
    this.pipeline.settled(batch, outcome.kind === 'removed' ? 'all' : unstoredPlaces(outcome))
    return true
  }
}
