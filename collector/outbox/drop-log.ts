import type { Logger } from '../../engine/process/log.ts'

const LOG_EVERY_MS = 60_000

/** Logs events dropped from the outbox, at most once a minute. */
export class DropLog {
  readonly #log: Logger
  #logged = { dropped: 0, atMs: Number.NEGATIVE_INFINITY }

  constructor(log: Logger) {
    this.#log = log
  }

  /** Takes the totals so far, by reason. */
  note({ full, tooOld, damaged }: { readonly full: number; readonly tooOld: number; readonly damaged: number }): void {
    const nowMs = performance.now()
    const dropped = full + tooOld + damaged
    if (dropped === this.#logged.dropped || nowMs - this.#logged.atMs < LOG_EVERY_MS) return
    this.#logged = { dropped, atMs: nowMs }
    this.#log.error({ full, tooOld, damaged }, 'events were dropped from the outbox, total so far')
  }
}
