import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { MESSAGE_BYTES_MAX, RETRY_AFTER_SECONDS } from '../limits.ts'
import { SECOND_MS, systemClock } from '../process/clock.ts'
import { Outcome, type OutcomeName } from '../store/outcomes.ts'
import type { KnownHosts } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import { type BatchWriter, unstoredPlaces } from './accept.ts'
import { SCRATCH_BYTES } from './formats/log-line.ts'
import type { IngestAccounting } from './ingest-accounting.ts'
import { Intake, type OutgoingBatch } from './intake.ts'
import { LogRecords } from './log-records.ts'
import { Origin } from './origin.ts'
import { TokenAuthenticator } from './token-authenticator.ts'
import type { TokenRate } from './token-rate.ts'

/** Messages read before other work of the thread gets its turn, about 2 ms. */
const MESSAGES_PER_TURN = 1000
/** Milliseconds until a token over its rate is tried again. */
const RATE_RETRY_MS = 50
/** Maximum milliseconds that the messages of a body wait for their token's rate. */
const RATE_WAIT_MS = 10_000

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

/** Reads the log messages of HTTPS requests. Their matches are on disk when `take` resolves. */
export class HttpLogs {
  readonly intake: Intake
  readonly #options: HttpLogsOptions
  readonly #authenticator: TokenAuthenticator
  /** Storing that has begun, and the one that follows it. */
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  /** Why storing waits; '' if it does not. */
  #waitsBecause = ''

  constructor(options: HttpLogsOptions) {
    const { store, known, tokenRate, accounting } = options
    this.#options = options
    this.#authenticator = new TokenAuthenticator(store, systemClock)
    this.intake = new Intake(new Uint8Array(MESSAGE_BYTES_MAX + SCRATCH_BYTES), known, this.#authenticator, {
      tokenRate,
      sources: accounting.sources,
      noteUnauthorized: () => {},
    })
  }

  /**
   * Reads the messages of a body: lines, or JSON objects with or without line feeds between them.
   */
  async take(body: Buffer, token: string, address: string): Promise<LogsOutcome> {
    if (this.#waitsBecause !== '') return { kind: 'busy', why: this.#waitsBecause }
    const text = Buffer.from(token)
    const known = this.#authenticator.find(text, 0, text.length)
    if (known === undefined) return { kind: 'removed' }
    const origin = new Origin('https', address, 0, known)
    const taken = await this.#read(body, origin)
    await this.#store()
    const { accounting, store } = this.#options
    accounting.add({ sources: [], rejects: this.intake.takeRejects(), candidates: this.intake.candidates.take() })
    const isRemoved = taken.counts.unauthorized > 0 || !store.organizations.exists(known.organizationId)
    return isRemoved ? { kind: 'removed' } : taken
  }

  async #read(body: Buffer, origin: Origin): Promise<LogsTaken> {
    const { intake } = this
    const records = new LogRecords(body, MESSAGE_BYTES_MAX)
    const counts = new Float64Array(Object.keys(Outcome).length)
    const lateMs = Date.now() + RATE_WAIT_MS
    let messages = 0
    let isOverRate = false
    while (!isOverRate && records.next(body.length, true)) {
      if (records.start === records.end) continue
      // Other bodies use the buffer while this one waits.
      while (!this.#takeMessage(body, records, origin)) {
        await this.#store()
        if (this.#takeMessage(body, records, origin)) break
        isOverRate = Date.now() > lateMs
        if (isOverRate) break
        await sleep(RATE_RETRY_MS)
      }
      if (isOverRate) break
      counts[intake.outcome] = (counts[intake.outcome] ?? 0) + 1
      if (++messages % MESSAGES_PER_TURN === 0) await setImmediate()
    }
    const named = Object.entries(Outcome).map(([name, index]) => [name, counts[index] ?? 0])
    return { kind: 'taken', messages, counts: Object.fromEntries(named), isOverRate }
  }

  #takeMessage(body: Buffer, { start, end }: LogRecords, origin: Origin): boolean {
    const { line } = this.intake
    body.copy(line.bytes, 0, start, end)
    line.referenceMs = Date.now()
    return this.intake.take(0, end - start, origin)
  }

  /** Stores all pending events. Bodies that wait at the same time share a transaction. */
  #store(): Promise<void> {
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined
        this.#running = this.#storePending()
        return this.#running
      })
    return this.#next
  }

  async #storePending(): Promise<void> {
    for (const batch of this.intake.takeBatches(true)) {
      while (!(await this.#storeBatch(batch))) await sleep(RETRY_AFTER_SECONDS * SECOND_MS)
      this.#waitsBecause = ''
    }
  }

  async #storeBatch(batch: OutgoingBatch): Promise<boolean> {
    const { organizationId, bytes, deduplicate, reports } = batch
    const outcome = await this.#options.acceptor.acceptPacked(organizationId, bytes, { deduplicate, reports })
    if (outcome.kind === 'retry') {
      this.#waitsBecause = outcome.why
      return false
    }
    if (outcome.kind === 'malformed') throw new Error(`internal error: malformed batch: ${outcome.why}`)
    this.intake.settled(batch, outcome.kind === 'removed' ? 'all' : unstoredPlaces(outcome))
    return true
  }
}
