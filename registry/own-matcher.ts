import { createHash } from 'node:crypto'
import { type Catalog, changedPlatform, type Rule } from './catalog.ts'
import { compareNarrowness } from './compile-trie.ts'
import { type Matcher, NameMatcher } from './match.ts'
import type { MatchKind, Platform } from './platform.ts'
import type { RegistryFile } from './registry-file.ts'

/** Which kind of rule takes precedence: lower first. */
const PRECEDENCE: Readonly<Record<MatchKind, number>> = { exact: 0, pattern: 1, suffix: 2 }
/** Names are ASCII, and none is longer (RFC 1035 §2.3.4). */
const SCRATCH_BYTES = 256

/**
 * A registry with one organization's changes. The changes are a small trie of their own beside the
 * shared one, so that an organization costs what it adds, and those without changes cost nothing.
 *
 * It answers what a NameMatcher of the merged registry would answer (mergeChanges), with one
 * difference: a platform that the organization disables keeps its rules and is only not shown. Its
 * evidence is there when it is enabled again.
 */
export class OwnMatcher implements Matcher {
  readonly fingerprint: string
  /** How many rules the organization has of its own. */
  readonly rules: number
  readonly #base: NameMatcher
  readonly #own: NameMatcher
  readonly #disabled: ReadonlySet<string>
  /** Platforms of the shared registry whose domains the organization replaced. */
  readonly #replaced = new Set<string>()
  /** Domains that the organization gave to a platform. */
  readonly #taken = new Set<string>()
  readonly #scratch = Buffer.alloc(SCRATCH_BYTES)
  readonly #view = new DataView(this.#scratch.buffer, this.#scratch.byteOffset, SCRATCH_BYTES)
  readonly #isHidden = ({ domain, platform }: Rule): boolean =>
    this.#taken.has(domain) || this.#replaced.has(platform.id)

  constructor(base: NameMatcher, changes: RegistryFile) {
    const catalog = this.#catalogOf(base, changes)
    this.#base = base
    this.#own = new NameMatcher(catalog)
    this.#disabled = new Set(changes.disable)
    this.rules = catalog.rules.length
    this.fingerprint = createHash('sha256').update(base.fingerprint).update(JSON.stringify(changes)).digest('hex')
  }

  get version(): string {
    return this.#base.version
  }

  match(name: string): Rule | undefined {
    if (name.length > SCRATCH_BYTES) return undefined
    return this.matchBytes(this.#view, 0, this.#scratch.write(name, 0, 'utf8'))
  }

  matchBytes(view: DataView, start: number, end: number): Rule | undefined {
    let shared = this.#base.matchBytes(view, start, end)
    if (shared !== undefined && this.#isHidden(shared)) {
      const name = Buffer.from(view.buffer, view.byteOffset + start, end - start).toString('latin1')
      shared = this.#base.visibleMatch(name, this.#isHidden)
    }
    return narrower(this.#own.matchBytes(view, start, end), shared)
  }

  platform(id: string): Platform | undefined {
    if (this.#disabled.has(id)) return undefined
    return this.#own.platform(id) ?? this.#base.platform(id)
  }

  /**
   * Platforms that the organization adds or changes, and the rules of the domains that it gives
   * them.
   */
  #catalogOf(base: NameMatcher, changes: RegistryFile): Catalog {
    const platforms: Platform[] = []
    const rules: Rule[] = []
    for (const entry of changes.platforms) {
      const known = base.platform(entry.id)
      const platform = changedPlatform(known, entry)
      if (platform === undefined) continue
      platforms.push(platform)
      if (entry.domains === undefined) continue
      if (known !== undefined) this.#replaced.add(known.id)
      for (const { domain, match, role, specificity, purpose } of entry.domains) {
        if (this.#taken.has(domain)) continue
        this.#taken.add(domain)
        rules.push({ domain, match, role, specificity, purpose, platform })
      }
    }
    return { version: '', platforms, rules }
  }
}

/**
 * The rule that takes precedence. They are of different domains: one that is the organization's
 * hides the shared one.
 */
function narrower(own: Rule | undefined, shared: Rule | undefined): Rule | undefined {
  if (own === undefined || shared === undefined) return own ?? shared
  const order = PRECEDENCE[own.match] - PRECEDENCE[shared.match]
  if (order !== 0) return order < 0 ? own : shared
  if (own.match === 'pattern') return compareNarrowness(own.domain, shared.domain) < 0 ? own : shared
  return own.domain.length > shared.domain.length ? own : shared
}
