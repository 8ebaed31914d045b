import type { Allowance } from './allowance.ts'
import { monotonicMs } from './key-table.ts'
import { HASH_BYTES, keyName, PERMIT_MS, REFUSED, RETRY_SECONDS, UNAVAILABLE, VERDICT_BYTES } from './protocol.ts'
import type { RateVerdict } from './rate-limit.ts'

/** Permits that a thread has not asked for yet. Beyond it, requests get 503. */
export const PERMITS_WAITING_MAX = 4096
const BATCH_PERMITS_MAX = 1024
/** Beyond the first: more permits wait for a full batch, so that each message has many. */
const BATCHES_IN_FLIGHT_MAX = 4
const FULL_BATCH_PERMITS = 256
const CHECK_EVERY_MS = 100
/** Refused keys that a thread remembers, so that a flood of one key costs no messages. */
const REFUSED_KEYS_MAX = 10_000

/** The home did not grant or refuse: the client should try again. */
export interface NoVerdict {
  readonly retrySeconds: number
}

export type Verdict = RateVerdict | NoVerdict

/** A message of an API thread to the main thread: hashes of keys. */
export interface AskPermits {
  readonly kind: 'permits'
  readonly batch: number
  readonly hashes: Uint8Array
}

/** The answer. */
export interface PermitVerdicts {
  readonly kind: 'verdicts'
  readonly batch: number
  readonly verdicts: Uint8Array
}

/** Shared with other threads. */
type ThreadAllowance = Pick<Allowance, 'take' | 'countPermits'>

type Done = (verdict: Verdict) => void

interface Waiting {
  readonly keyHash: Buffer
  readonly done: Done
}

interface InFlight {
  readonly sentMs: number
  readonly permits: readonly Waiting[]
}

const NO_VERDICT: NoVerdict = { retrySeconds: RETRY_SECONDS }

/**
 * The permits of an API thread: asks for those of one turn of the event loop together, unless they
 * are within the allowance of the node.
 */
export class Permits {
  readonly #post: (message: AskPermits) => void
  readonly #allowance: ThreadAllowance
  readonly #nowMs: () => number
  #waiting: Waiting[] = []
  readonly #inFlight = new Map<number, InFlight>()
  /** Keys that are refused, and until when, in order of insertion. */
  readonly #refused = new Map<string, { readonly untilMs: number; readonly freeMs: number }>()
  #batches = 0
  #isScheduled = false
  #timer: NodeJS.Timeout | undefined

  constructor(post: (message: AskPermits) => void, allowance: ThreadAllowance, nowMs: () => number = monotonicMs) {
    this.#post = post
    this.#allowance = allowance
    this.#nowMs = nowMs
  }

  /** Counts a request if this node knows the verdict. undefined: ask(). */
  take(keyHash: Buffer): Verdict | undefined {
    const refusal = this.#refused.size === 0 ? undefined : this.#rememberedRefusal(keyHash)
    return refusal ?? this.#allowance.take(keyHash)
  }

  /** Calls `done` later, within about 2 s. Or returns the verdict if too many permits wait. */
  ask(keyHash: Buffer, done: Done): Verdict | undefined {
    if (this.#waiting.length >= PERMITS_WAITING_MAX) {
      this.#allowance.countPermits(0, 1)
      return NO_VERDICT
    }
    this.#waiting.push({ keyHash, done })
    this.#schedule()
    return undefined
  }

  /** Receives the answer of the main thread. */
  receive({ batch, verdicts }: PermitVerdicts): void {
    const flying = this.#inFlight.get(batch)
    if (flying === undefined) return
    this.#inFlight.delete(batch)
    this.#schedule()
    const isLate = this.#nowMs() - flying.sentMs >= PERMIT_MS
    let answered = 0
    for (const [index, { keyHash, done }] of flying.permits.entries()) {
      const state = verdicts[index * VERDICT_BYTES] ?? UNAVAILABLE
      const seconds = verdicts[index * VERDICT_BYTES + 1] ?? RETRY_SECONDS
      if (state === REFUSED) this.#remember(keyHash, flying.sentMs, seconds)
      if (!isLate && state !== UNAVAILABLE) answered++
      done(isLate ? NO_VERDICT : verdictOf(state, seconds))
    }
    this.#allowance.countPermits(answered, flying.permits.length - answered)
  }

  #schedule(): void {
    const { size } = this.#inFlight
    const isDue = this.#waiting.length >= (size === 0 ? 1 : FULL_BATCH_PERMITS) && size < BATCHES_IN_FLIGHT_MAX
    if (this.#isScheduled || !isDue) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#send()
    })
  }

  #send(): void {
    const permits = this.#waiting.slice(0, BATCH_PERMITS_MAX)
    this.#waiting = this.#waiting.slice(BATCH_PERMITS_MAX)
    const hashes = new Uint8Array(permits.length * HASH_BYTES)
    for (const [index, { keyHash }] of permits.entries())
      hashes.set(keyHash.subarray(0, HASH_BYTES), index * HASH_BYTES)
    const batch = ++this.#batches
    // Before it is sent: a permit is valid for PERMIT_MS from now on.
    this.#inFlight.set(batch, { sentMs: this.#nowMs(), permits })
    this.#post({ kind: 'permits', batch, hashes })
    this.#timer ??= setTimeout(() => this.#expire(), CHECK_EVERY_MS)
    this.#schedule()
  }

  #expire(): void {
    this.#timer = undefined
    const nowMs = this.#nowMs()
    for (const [batch, { sentMs, permits }] of this.#inFlight) {
      if (nowMs - sentMs < PERMIT_MS) continue
      this.#inFlight.delete(batch)
      this.#allowance.countPermits(0, permits.length)
      for (const { done } of permits) done(NO_VERDICT)
    }
    this.#schedule()
    if (this.#inFlight.size > 0) this.#timer ??= setTimeout(() => this.#expire(), CHECK_EVERY_MS)
  }

  #rememberedRefusal(keyHash: Buffer): RateVerdict | undefined {
    const key = keyName(keyHash)
    const refusal = this.#refused.get(key)
    if (refusal === undefined) return undefined
    const nowMs = this.#nowMs()
    if (nowMs < refusal.untilMs) return refused(Math.ceil((refusal.freeMs - nowMs) / 1000))
    this.#refused.delete(key)
    return undefined
  }

  /** The seconds are rounded up, so the key may be free one second earlier. */
  #remember(keyHash: Buffer, sentMs: number, seconds: number): void {
    const untilMs = sentMs + (seconds - 1) * 1000
    if (untilMs <= this.#nowMs()) return
    const key = keyName(keyHash)
    this.#refused.delete(key)
    this.#refused.set(key, { untilMs, freeMs: sentMs + seconds * 1000 })
    if (this.#refused.size <= REFUSED_KEYS_MAX) return
    const [first] = this.#refused.keys()
    if (first !== undefined) this.#refused.delete(first)
  }
}

function refused(resetSeconds: number): RateVerdict {
  return { allowed: false, remaining: 0, resetSeconds }
}

function verdictOf(state: number, seconds: number): Verdict {
  if (state === UNAVAILABLE) return { retrySeconds: seconds }
  return state === REFUSED ? refused(seconds) : { allowed: true, remaining: state, resetSeconds: seconds }
}
