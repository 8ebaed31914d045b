import type { Matcher } from '../../../registry/match.ts'
import { NO_CLIENT } from './client.ts'

/** What a message that names a platform says. */
export interface LineMatch {
  /** In any case. */
  readonly name: string
  /** Canonical address; NO_CLIENT where none is known. */
  readonly client: string
  readonly timeMs: number
  /** Matches that the message stands for. */
  readonly count: number
}

export interface PlatformTally {
  readonly platformId: string
  readonly platformName: string
  matches: number
  clients: number
  /** More clients than CLIENTS_MAX were seen, so that `clients` is a lower bound. */
  clientsIncomplete: boolean
  firstMs: number
  lastMs: number
}

/**
 * Clients of all platforms that are counted, about 100 bytes each. The report says if there are
 * more.
 */
const CLIENTS_MAX = 100_000

/** Adds up the matches of a file by platform. */
export class MatchTally {
  readonly #matcher: Matcher
  readonly #clientsMax: number
  readonly #platforms = new Map<string, PlatformTally>()
  readonly #clients = new Set<string>()

  constructor(matcher: Matcher, clientsMax = CLIENTS_MAX) {
    this.#matcher = matcher
    this.#clientsMax = clientsMax
  }

  add({ name, client, timeMs, count }: LineMatch): void {
    const rule = this.#matcher.match(name)
    const platform = rule && this.#matcher.platform(rule.platform.id)
    if (platform === undefined) return
    let tally = this.#platforms.get(platform.id)
    if (tally === undefined) {
      tally = {
        platformId: platform.id,
        platformName: platform.name,
        ...{ matches: 0, clients: 0, clientsIncomplete: false, firstMs: timeMs, lastMs: timeMs },
      }
      this.#platforms.set(platform.id, tally)
    }
    tally.matches += count
    tally.firstMs = Math.min(tally.firstMs, timeMs)
    tally.lastMs = Math.max(tally.lastMs, timeMs)
    const key = `${platform.id} ${client}`
    if (client === NO_CLIENT || this.#clients.has(key)) return
    if (this.#clients.size >= this.#clientsMax) {
      tally.clientsIncomplete = true
      return
    }
    this.#clients.add(key)
    tally.clients++
  }

  /** By number of matches, then by name. */
  get platforms(): PlatformTally[] {
    return [...this.#platforms.values()].sort(
      (a, b) => b.matches - a.matches || a.platformName.localeCompare(b.platformName),
    )
  }
}
