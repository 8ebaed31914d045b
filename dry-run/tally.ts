import { isIP } from 'node:net'
import { type LineMatch, MatchTally } from '../engine/kernel/event/match-tally.ts'
import type { Matcher } from '../registry/match.ts'
import {
  PLATFORM_NAMES_LISTED_MAX,
  PLATFORM_NAMES_MAX,
  PLATFORMS_LISTED_MAX,
  UNMATCHED_LISTED_MAX,
  UNMATCHED_NAMES_MAX,
} from './limits.ts'
import type { FileReport, TriedPlatform } from './report.ts'

/** The part of a report that captures and logs share. */
type Found = Pick<Exclude<FileReport, { kind: 'refused' }>, 'platforms' | 'platformsTotal' | 'unmatchedNames'>

/** Adds up the names of a file: by platform, and those of no platform by frequency. */
export class FileTally {
  readonly #matcher: Matcher
  readonly #matches: MatchTally
  readonly #names = new Map<string, NameCounts>()
  readonly #unmatched = new NameCounts(UNMATCHED_NAMES_MAX)

  constructor(matcher: Matcher) {
    this.#matcher = matcher
    this.#matches = new MatchTally(matcher)
  }

  /** Returns whether the name belongs to a platform. */
  add(match: LineMatch): boolean {
    const name = match.name.toLowerCase()
    const rule = this.#matcher.match(name)
    const platform = rule && this.#matcher.platform(rule.platform.id)
    if (platform === undefined) {
      this.addUnmatched(match)
      return false
    }
    this.#matches.add(match)
    let names = this.#names.get(platform.id)
    if (names === undefined) {
      names = new NameCounts(PLATFORM_NAMES_MAX)
      this.#names.set(platform.id, names)
    }
    names.add(name, match.count)
    return true
  }

  /** Addresses and names of reverse lookups are not counted: no platform could have them. */
  addUnmatched({ name, count }: Pick<LineMatch, 'name' | 'count'>): void {
    const text = name.toLowerCase().replace(/\.$/, '')
    if (text !== '' && isIP(text) === 0 && !text.endsWith('.arpa')) this.#unmatched.add(text, count)
  }

  get found(): Found {
    const { platforms } = this.#matches
    return {
      platforms: platforms.slice(0, PLATFORMS_LISTED_MAX).map(
        ({ platformId: id, platformName: name, ...counts }): TriedPlatform => ({
          ...{ id, name, ...counts },
          names:
            this.#names
              .get(id)
              ?.top(PLATFORM_NAMES_LISTED_MAX)
              .map((each) => each.name) ?? [],
        }),
      ),
      platformsTotal: platforms.length,
      unmatchedNames: this.#unmatched.top(UNMATCHED_LISTED_MAX),
    }
  }
}

/** Counts names up to a number of distinct ones. Further names are not counted. */
class NameCounts {
  readonly #counts = new Map<string, number>()
  readonly #namesMax: number

  constructor(namesMax: number) {
    this.#namesMax = namesMax
  }

  add(name: string, count: number): void {
    const before = this.#counts.get(name)
    if (before !== undefined || this.#counts.size < this.#namesMax) this.#counts.set(name, (before ?? 0) + count)
  }

  top(max: number): { readonly name: string; readonly count: number }[] {
    return [...this.#counts]
      .map(([name, count]) => ({ name, count }))
      .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
      .slice(0, max)
  }
}
