import { BoundedMap } from '../../engine/kernel/process/bounded-map.ts'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { clientOf } from '../../engine/kernel/process/network.ts'
import type { CheckResult } from '../metrics.ts'

export const WINDOW_MS = 15 * MINUTE_MS
/**
 * Maximum failed attempts per window: for one account from all untrusted browsers together, and
 * from each trusted browser.
 */
const ACCOUNT_FAILURES_MAX = 5
/** Maximum failed attempts per window from one IPv4 address or IPv6 /64, for all accounts. */
export const NETWORK_FAILURES_MAX = 20
/**
 * Maximum sign-ins with a provider per window that one IPv4 address or IPv6 /64 began and did not
 * finish. Higher than for passwords: people of one office share an address, and each is at the
 * provider for a while.
 */
const NETWORK_PROVIDER_STARTS_MAX = 50
/**
 * Maximum number of names that no account has, and of networks, with failures. At the limit, the
 * entry with the oldest failure is removed.
 */
const REMEMBERED_MAX = 100_000

export interface Attempt {
  /** The name as typed. */
  readonly name: string
  /** What has this name. */
  readonly of: 'account' | 'unknown name' | 'unknown passkey'
  readonly address: string
  /**
   * SHA-256 of the cookie of a browser that this account trusts; undefined for any other browser.
   */
  readonly trustedBrowser: string | undefined
}

export type Verdict =
  | { readonly allowed: true; readonly succeeded: () => void }
  | { readonly allowed: false; readonly retryAfterSeconds: number }

interface Limit {
  readonly failures: Failures
  readonly key: string
  readonly max: number
}

/**
 * Limits password guesses. An attempt counts as failed until it succeeds, so that parallel attempts
 * count, too. A browser that signed in before has an allowance of its own, so guesses from other
 * browsers cannot lock out the owner. The counters of accounts that exist cannot be displaced by
 * those of names and networks that an attacker makes up. The counters are in memory and start at
 * zero with the service.
 */
export class SignInAttempts {
  /** Accounts, their passkeys and their trusted browsers: no more than the store has. */
  readonly #accounts = new Failures(Number.POSITIVE_INFINITY)
  readonly #unknownNames = new Failures(REMEMBERED_MAX)
  /** Apart, because they cost no hash: displacing a name would reveal that it is unknown. */
  readonly #unknownPasskeys = new Failures(REMEMBERED_MAX)
  readonly #networks = new Failures(REMEMBERED_MAX)
  readonly #note: (result: CheckResult) => void
  readonly #limitsNetworks: boolean

  /**
   * @param note called for each attempt that is not allowed
   * @param limitsNetworks false if all clients have the address of a proxy. A limit by address
   *   would then lock out everyone.
   */
  constructor(note: (result: CheckResult) => void = () => {}, limitsNetworks = true) {
    this.#note = note
    this.#limitsNetworks = limitsNetworks
  }

  begin({ name, of, address, trustedBrowser }: Attempt, nowMs: number): Verdict {
    const max = ACCOUNT_FAILURES_MAX
    if (trustedBrowser !== undefined) {
      return this.#begin([{ failures: this.#accounts, key: `browser ${trustedBrowser}`, max }], nowMs)
    }
    const unknown = of === 'unknown name' ? this.#unknownNames : this.#unknownPasskeys
    const failures = of === 'account' ? this.#accounts : unknown
    const ofName = { failures, key: `account ${name.toLowerCase().slice(0, 255)}`, max }
    return this.#begin([ofName, ...this.#ofNetwork('network', address, NETWORK_FAILURES_MAX)], nowMs)
  }

  /** Counts a secret that is not valid. There is no account that it belongs to. */
  beginFromNetwork(address: string, nowMs: number): Verdict {
    return this.#begin(this.#ofNetwork('network', address, NETWORK_FAILURES_MAX), nowMs)
  }

  /** Counts a sign-in with a provider as failed until finishAtProvider(). */
  beginAtProvider(address: string, nowMs: number): Verdict {
    return this.#begin(this.#ofNetwork('provider', address, NETWORK_PROVIDER_STARTS_MAX), nowMs)
  }

  /** A sign-in with a provider that began at this time succeeded. */
  finishAtProvider(address: string, startedAtMs: number): void {
    for (const { failures, key } of this.#ofNetwork('provider', address, NETWORK_PROVIDER_STARTS_MAX)) {
      failures.remove(key, startedAtMs)
    }
  }

  #ofNetwork(what: 'network' | 'provider', address: string, max: number): readonly Limit[] {
    return this.#limitsNetworks ? [{ failures: this.#networks, key: `${what} ${clientOf(address)}`, max }] : []
  }

  #begin(limits: readonly Limit[], nowMs: number): Verdict {
    let waitMs = 0
    for (const { failures, key, max } of limits) {
      const times = failures.recent(key, nowMs)
      const [oldest] = times.slice(-max)
      if (times.length >= max && oldest !== undefined) waitMs = Math.max(waitMs, oldest + WINDOW_MS - nowMs)
    }
    if (waitMs > 0) {
      this.#note('rate_limited')
      return { allowed: false, retryAfterSeconds: Math.ceil(waitMs / 1000) }
    }
    for (const { failures, key } of limits) failures.add(key, nowMs)
    return {
      allowed: true,
      succeeded: () => {
        for (const { failures, key } of limits) failures.remove(key, nowMs)
      },
    }
  }
}

/** The times of failures in the window, by key. The key with the oldest last failure is first. */
class Failures {
  readonly #times: Map<string, number[]>

  constructor(keysMax: number) {
    this.#times = new BoundedMap(keysMax)
  }

  recent(key: string, nowMs: number): number[] {
    // The absolute difference, because the clock may have been set back.
    return (this.#times.get(key) ?? []).filter((timeMs) => Math.abs(nowMs - timeMs) < WINDOW_MS)
  }

  add(key: string, nowMs: number): void {
    const times = [...this.recent(key, nowMs), nowMs]
    this.#times.set(key, times)
    const [oldest = key] = this.#times.keys()
    if (this.recent(oldest, nowMs).length === 0) this.#times.delete(oldest)
  }

  remove(key: string, timeMs: number): void {
    const times = this.#times.get(key) ?? []
    const at = times.lastIndexOf(timeMs)
    if (at >= 0) times.splice(at, 1)
    if (times.length === 0) this.#times.delete(key)
  }
}
