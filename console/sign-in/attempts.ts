import { isIP } from 'node:net'
import { MINUTE_MS } from '../../engine/process/clock.ts'
import type { CheckResult } from '../metrics.ts'

export const WINDOW_MS = 15 * MINUTE_MS
/**
 * Maximum failed attempts per window: for one account from all untrusted browsers together, and
 * from each trusted browser.
 */
export const ACCOUNT_FAILURES_MAX = 5
/** Maximum failed attempts per window from one IPv4 address or IPv6 /64, for all accounts. */
export const NETWORK_FAILURES_MAX = 20
/**
 * Maximum sign-ins with a provider per window that one IPv4 address or IPv6 /64 began and did not
 * finish. Higher than for passwords: people of one office share an address, and each is at the
 * provider for a while.
 */
export const NETWORK_PROVIDER_STARTS_MAX = 50
/**
 * Maximum number of accounts, browsers and networks with failures. At the limit, the entry with the
 * oldest failure is removed.
 */
const REMEMBERED_MAX = 100_000

export interface Attempt {
  /** The name as typed. The account may not exist. */
  readonly name: string
  readonly address: string
  /**
   * SHA-256 of the cookie of a browser that this account trusts; undefined for any other browser.
   */
  readonly trustedBrowser: string | undefined
}

export type Verdict =
  | { readonly allowed: true; readonly succeeded: () => void }
  | { readonly allowed: false; readonly retryAfterSeconds: number }

type Limit = readonly [key: string, max: number]

/**
 * Limits password guesses. An attempt counts as failed until it succeeds, so that parallel attempts
 * count, too. A browser that signed in before has an allowance of its own, so guesses from other
 * browsers cannot lock out the owner. The counters are in memory and start at zero with the
 * service.
 */
export class SignInAttempts {
  readonly #failures = new Map<string, number[]>()
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

  begin({ name, address, trustedBrowser }: Attempt, nowMs: number): Verdict {
    const limits: readonly Limit[] =
      trustedBrowser === undefined
        ? [
            [`account ${name.toLowerCase().slice(0, 255)}`, ACCOUNT_FAILURES_MAX],
            ...this.#ofNetwork('network', address, NETWORK_FAILURES_MAX),
          ]
        : [[`browser ${trustedBrowser}`, ACCOUNT_FAILURES_MAX]]
    return this.#begin(limits, nowMs)
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
    for (const [key] of this.#ofNetwork('provider', address, NETWORK_PROVIDER_STARTS_MAX)) {
      this.#remove(key, startedAtMs)
    }
  }

  #ofNetwork(what: 'network' | 'provider', address: string, max: number): readonly Limit[] {
    return this.#limitsNetworks ? [[`${what} ${networkOf(address)}`, max]] : []
  }

  #begin(limits: readonly Limit[], nowMs: number): Verdict {
    let waitMs = 0
    for (const [key, max] of limits) {
      const times = this.#recent(key, nowMs)
      const [oldest] = times.slice(-max)
      if (times.length >= max && oldest !== undefined) waitMs = Math.max(waitMs, oldest + WINDOW_MS - nowMs)
    }
    if (waitMs > 0) {
      this.#note('rate_limited')
      return { allowed: false, retryAfterSeconds: Math.ceil(waitMs / 1000) }
    }
    for (const [key] of limits) this.#add(key, nowMs)
    return {
      allowed: true,
      succeeded: () => {
        for (const [key] of limits) this.#remove(key, nowMs)
      },
    }
  }

  #recent(key: string, nowMs: number): number[] {
    // The absolute difference, because the clock may have been set back.
    return (this.#failures.get(key) ?? []).filter((timeMs) => Math.abs(nowMs - timeMs) < WINDOW_MS)
  }

  #add(key: string, nowMs: number): void {
    const times = [...this.#recent(key, nowMs), nowMs]
    this.#failures.delete(key)
    this.#failures.set(key, times)
    if (this.#failures.size <= REMEMBERED_MAX) return
    const [oldest] = this.#failures.keys()
    if (oldest !== undefined) this.#failures.delete(oldest)
  }

  #remove(key: string, timeMs: number): void {
    const times = this.#failures.get(key) ?? []
    const at = times.lastIndexOf(timeMs)
    if (at >= 0) times.splice(at, 1)
    if (times.length === 0) this.#failures.delete(key)
  }
}

const GROUPS = 8
const GROUPS_OF_NETWORK = 4

/**
 * The address of an IPv4 client, also if written as IPv6; the /64 of an IPv6 client, which can use
 * any address in it.
 */
export function networkOf(address: string): string {
  const mapped = /^(?:::ffff:|(?:0{1,4}:){5}ffff:)(.+)$/i.exec(address)?.[1]
  if (mapped !== undefined && isIP(mapped) === 4) return mapped
  if (mapped !== undefined && /^[0-9a-f]{1,4}:[0-9a-f]{1,4}$/i.test(mapped)) {
    const [high = 0, low = 0] = mapped.split(':').map((group) => Number.parseInt(group, 16))
    return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  }
  if (isIP(address) !== 6) return address
  const [left = '', right] = address.toLowerCase().replace(/%.*$/, '').split('::')
  const before = left === '' ? [] : left.split(':')
  const after = right === undefined || right === '' ? [] : right.split(':')
  const zeros = right === undefined ? 0 : GROUPS - before.length - after.length
  const groups = [...before, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...after]
  return `${groups
    .slice(0, GROUPS_OF_NETWORK)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
