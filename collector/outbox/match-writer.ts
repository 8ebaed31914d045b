import { isFault } from '../../engine/kernel/process/error-codes.ts'
import { NO_MATCH } from '../../registry/domain-trie.ts'
import type { Candidates } from '../candidates.ts'
import {
  METHOD_NAMES,
  type MethodName,
  rowIsRefusal,
  rowMethod,
  rowName,
  rowRule,
  rowTimeMs,
} from '../decode/name-rows.ts'
import type { Position, RowConsumer } from '../decode/row-consumer.ts'
import { AGGREGATE_REWRITE_MS, AGGREGATE_WRITE_EVENTS, AGGREGATE_WRITE_MS, FULL_DISK_RETRY_MS } from '../limits.ts'
import type { Aggregate } from './aggregate.ts'
import type { Outbox } from './outbox.ts'

export interface MatchWriterOptions {
  /** Identity of the capture file. Undefined for a source that is not read again. */
  readonly source: string | undefined
  /** Number of rules in the registry. Each match names a rule. */
  readonly rules: number
  /** Called each time that the disk becomes full. */
  readonly onFull: (why: string) => void
  /** Called when further events in the outbox may have become final. */
  readonly onWritten: () => void
  /**
   * Called when there is something to write after there was nothing. tick() must follow within
   * AGGREGATE_WRITE_MS, if the caller uses it.
   */
  readonly onBusy?: () => void
  /** Counts names that no rule matches. */
  readonly candidates?: Candidates | undefined
}

/**
 * Takes matches from the rows to the outbox. Matches are counted in the aggregate and written at
 * most AGGREGATE_WRITE_MS later, events and position in one transaction. While the disk is full no
 * rows are taken, so a source that can wait does.
 */
export class MatchWriter implements RowConsumer {
  readonly #aggregate: Aggregate
  readonly #outbox: () => Outbox
  readonly #options: MatchWriterOptions
  /** 1 for each rule that matched. */
  #matched: Uint8Array
  readonly #byMethod = new Float64Array(METHOD_NAMES.length)
  /** Time of the latest match, in milliseconds since 1970; 0 before the first. */
  lastMatchMs = 0
  /** Whether the disk was full at the last attempt. */
  full = false
  #framesDone = 0
  #writtenMs = 0
  #rewrittenMs = 0
  #unsaved = false
  #openSequence = Number.NaN
  #writing: Promise<void> | undefined
  #stopped = false

  constructor(aggregate: Aggregate, outbox: () => Outbox, options: MatchWriterOptions) {
    this.#aggregate = aggregate
    this.#outbox = outbox
    this.#options = options
    this.#matched = new Uint8Array(options.rules)
  }

  /** Whether a tick would have work to do. */
  get busy(): boolean {
    return this.#unsaved || this.#aggregate.busy
  }

  row(view: DataView, bytes: Buffer, at: number): void {
    if (rowIsRefusal(view, at)) {
      this.#unsaved = this.#aggregate.refuse(view, at) || this.#unsaved
      return
    }
    if (rowRule(view, at) === NO_MATCH) {
      this.#options.candidates?.count(rowName(view, bytes, at))
      return
    }
    if (!this.#unsaved && !this.#aggregate.busy) this.#options.onBusy?.()
    this.#aggregate.take(view, at)
    this.#matched[rowRule(view, at)] = 1
    const method = rowMethod(view, at)
    this.#byMethod[method] = (this.#byMethod[method] ?? 0) + 1
    this.lastMatchMs = Math.max(this.lastMatchMs, rowTimeMs(view, at))
    this.#unsaved = true
  }

  delivered({ framesDone }: Position): void | Promise<void> {
    if (framesDone !== this.#framesDone) {
      this.#framesDone = framesDone
      if (this.#options.source !== undefined) this.#unsaved = true
    }
    return this.#writeWhenDue()
  }

  /**
   * For a live source: closes the windows that have ended by the monotonic clock, and writes what
   * is due.
   */
  tick(nowMs: number): void | Promise<void> {
    this.#aggregate.closeOpenedBefore(nowMs)
    return this.#writeWhenDue()
  }

  /** Closes all windows and writes all events. */
  async finish(): Promise<void> {
    this.#aggregate.closeAll()
    await this.#write()
  }

  /**
   * Stops waiting for disk space. Events that cannot be written after this are lost, and the write
   * fails.
   */
  stop(): void {
    this.#stopped = true
  }

  /**
   * Returns the rules that matched so far, and starts counting for a registry with `rules` rules.
   */
  takeMatchedRules(rules: number): number[] {
    const matched = this.matchedRules
    this.#matched = new Uint8Array(rules)
    return matched
  }

  get matchesByMethod(): Readonly<Record<MethodName, number>> {
    return Object.fromEntries(METHOD_NAMES.map((name, method) => [name, this.#byMethod[method] ?? 0])) as Record<
      MethodName,
      number
    >
  }

  get matchedRules(): number[] {
    return Array.from(this.#matched.keys()).filter((rule) => this.#matched[rule] === 1)
  }

  #writeWhenDue(): void | Promise<void> {
    if (this.#writing !== undefined) return this.#writing
    const elapsedMs = Math.abs(performance.now() - this.#writtenMs)
    if (elapsedMs < AGGREGATE_WRITE_MS && this.#aggregate.unwritten < AGGREGATE_WRITE_EVENTS) return
    return this.#write()
  }

  /** Tries to write at once. Returns a promise only if the disk is full. */
  #write(): void | Promise<void> {
    if (this.#writing !== undefined) return this.#writing.then(() => this.#write())
    this.#writtenMs = performance.now()
    if (this.#tryWrite()) return
    this.#writing = this.#writeWhenThereIsSpace().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #writeWhenThereIsSpace(): Promise<void> {
    do await new Promise((resolve) => setTimeout(resolve, FULL_DISK_RETRY_MS))
    while (!this.#tryWrite())
  }

  /** Returns false if the disk is full. */
  #tryWrite(): boolean {
    const aggregate = this.#aggregate
    const { source } = this.#options
    try {
      if (this.#unsaved) {
        // A position requires that every earlier match is counted in the outbox. Without a
        // position, the figures of open events may be slightly outdated.
        const nowMs = performance.now()
        const openToo = source !== undefined || nowMs - this.#rewrittenMs >= AGGREGATE_REWRITE_MS
        const { added, changed } = aggregate.pending(openToo)
        const position = source === undefined ? undefined : { source, framesDone: this.#framesDone }
        if (added.length > 0 || changed.length > 0 || position !== undefined) {
          aggregate.written(this.#outbox().write({ added, changed, ...(position ? { position } : {}) }), openToo)
          aggregate.closeThrough(this.#outbox().firstSequence - 1)
        }
        if (openToo) {
          this.#rewrittenMs = nowMs
          this.#unsaved = false
        }
      }
      const { openSequence } = aggregate
      if (openSequence !== this.#openSequence) {
        this.#openSequence = openSequence
        this.#outbox().holdFrom(openSequence)
        this.#options.onWritten()
      }
      this.full = false
      return true
    } catch (error) {
      if (!isFault(error, 'STORE_FULL') || this.#stopped) throw error
      if (!this.full) this.#options.onFull(error.message)
      this.full = true
      return false
    }
  }
}
