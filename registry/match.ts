import { createHash } from 'node:crypto'
import type { Catalog, Rule } from './catalog.ts'
import { compareNarrowness, compileTrie } from './compile-trie.ts'
import { DomainTrie, NO_MATCH } from './domain-trie.ts'
import { globOf } from './glob.ts'
import type { Platform } from './platform.ts'

/**
 * Names are ASCII, and names longer than RFC 1035 §2.3.4 allows never match, so one small scratch
 * buffer fits every name.
 */
const SCRATCH_BYTES = 256

/** Matches names with a registry, or with one that an organization changed (own-matcher.ts). */
export interface Matcher {
  /** Returns the narrowest rule for a dotted name in any case. */
  match(name: string): Rule | undefined
  /** The same for bytes [start, end) of a batch. They are ASCII if a rule is found. */
  matchBytes(view: DataView, start: number, end: number): Rule | undefined
  /** Changes whenever the registry does. */
  readonly fingerprint: string
  /** The version of the registry's data, before changes. */
  readonly version: string
  /** Returns the platform with this ID, with its current name and risk. */
  platform(id: string): Platform | undefined
}

/** Matches names in logs and batches. */
export class NameMatcher implements Matcher {
  readonly #trie: DomainTrie
  readonly #rules: readonly Rule[]
  readonly #platforms: ReadonlyMap<string, Platform>
  readonly catalog: Catalog
  /** Made when visibleMatch() is first called. */
  #index: RuleIndex | undefined
  #fingerprint = ''
  readonly #scratch = Buffer.alloc(SCRATCH_BYTES)
  readonly #view: DataView

  /** @param compiled the catalog's rules, where they were compiled before */
  constructor(catalog: Catalog, compiled: SharedArrayBuffer = compileTrie(catalog.rules)) {
    this.#trie = new DomainTrie(compiled)
    this.catalog = catalog
    this.#rules = catalog.rules
    this.#platforms = new Map(catalog.platforms.map((platform) => [platform.id, platform]))
    this.#view = new DataView(this.#scratch.buffer, this.#scratch.byteOffset, SCRATCH_BYTES)
  }

  match(name: string): Rule | undefined {
    if (name.length > SCRATCH_BYTES) return undefined
    // 'latin1' would map U+0141 to 'A'. UTF-8 turns every non-ASCII character into bytes that no
    // host name contains.
    const length = this.#scratch.write(name, 0, 'utf8')
    const index = this.#trie.matchDotted(this.#view, 0, length)
    return index === NO_MATCH ? undefined : this.#rules[index]
  }

  matchBytes(view: DataView, start: number, end: number): Rule | undefined {
    const index = this.#trie.matchDotted(view, start, end)
    return index === NO_MATCH ? undefined : this.#rules[index]
  }

  get version(): string {
    return this.catalog.version
  }

  get fingerprint(): string {
    this.#fingerprint ||= createHash('sha256').update(JSON.stringify(this.catalog.platforms)).digest('hex')
    return this.#fingerprint
  }

  platform(id: string): Platform | undefined {
    return this.#platforms.get(id)
  }

  /**
   * The narrowest rule for a name, which matches one, when some rules are hidden. The slow path: it
   * tries every pattern.
   */
  visibleMatch(name: string, isHidden: (rule: Rule) => boolean): Rule | undefined {
    this.#index ??= new RuleIndex(this.#rules)
    return this.#index.match(name, isHidden)
  }
}

/** Rules by their domains, as text. */
class RuleIndex {
  readonly #byDomain = new Map<string, Rule>()
  /** Narrowest first. */
  readonly #patterns: readonly { readonly rule: Rule; readonly fits: (name: string) => boolean }[]

  constructor(rules: readonly Rule[]) {
    for (const rule of rules) this.#byDomain.set(rule.domain, rule)
    this.#patterns = rules
      .filter(({ match }) => match === 'pattern')
      .sort((a, b) => compareNarrowness(a.domain, b.domain))
      .map((rule) => ({ rule, fits: patternOf(rule.domain) }))
  }

  match(text: string, isHidden: (rule: Rule) => boolean): Rule | undefined {
    const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase()
    const exact = this.#byDomain.get(name)
    if (exact?.match === 'exact' && !isHidden(exact)) return exact
    const pattern = this.#patterns.find(({ rule, fits }) => fits(name) && !isHidden(rule))
    if (pattern !== undefined) return pattern.rule
    for (let domain = name; domain !== ''; domain = parentOf(domain)) {
      const rule = this.#byDomain.get(domain)
      if (rule?.match === 'suffix' && !isHidden(rule)) return rule
    }
    return undefined
  }
}

/** A `*` is one or more characters within one label. */
function patternOf(pattern: string): (name: string) => boolean {
  const globs = pattern.split('.').map(globOf)
  return (name) => {
    const labels = name.split('.')
    return labels.length === globs.length && globs.every((fits, index) => fits(labels[index] ?? ''))
  }
}

function parentOf(domain: string): string {
  const dot = domain.indexOf('.')
  return dot < 0 ? '' : domain.slice(dot + 1)
}
