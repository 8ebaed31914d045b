import { createHash } from 'node:crypto'
import type { Catalog, Rule } from './catalog.ts'
import { compileTrie } from './compile-trie.ts'
import { DomainTrie, NO_MATCH } from './domain-trie.ts'
import type { Platform } from './platform.ts'

/**
 * Names are ASCII, and names longer than RFC 1035 §2.3.4 allows never match, so one small scratch
 * buffer fits every name.
 */
const SCRATCH_BYTES = 256

/** Matches names in logs and batches. */
export class NameMatcher {
  readonly #trie: DomainTrie
  readonly #rules: readonly Rule[]
  readonly #platforms: ReadonlyMap<string, Platform>
  readonly #catalog: Catalog
  #fingerprint = ''
  readonly #scratch = Buffer.alloc(SCRATCH_BYTES)
  readonly #view: DataView

  constructor(catalog: Catalog) {
    this.#trie = new DomainTrie(compileTrie(catalog.rules))
    this.#catalog = catalog
    this.#rules = catalog.rules
    this.#platforms = new Map(catalog.platforms.map((platform) => [platform.id, platform]))
    this.#view = new DataView(this.#scratch.buffer, this.#scratch.byteOffset, SCRATCH_BYTES)
  }

  /** Returns the narrowest rule for a dotted name in any case. */
  match(name: string): Rule | undefined {
    if (name.length > SCRATCH_BYTES) return undefined
    // 'latin1' would map U+0141 to 'A'. UTF-8 turns every non-ASCII character into bytes that no
    // host name contains.
    const length = this.#scratch.write(name, 0, 'utf8')
    const index = this.#trie.matchDotted(this.#view, 0, length)
    return index === NO_MATCH ? undefined : this.#rules[index]
  }

  /** The same for bytes [start, end) of a batch. They are ASCII if a rule is found. */
  matchBytes(view: DataView, start: number, end: number): Rule | undefined {
    const index = this.#trie.matchDotted(view, start, end)
    return index === NO_MATCH ? undefined : this.#rules[index]
  }

  /** Changes whenever the registry does. */
  get fingerprint(): string {
    this.#fingerprint ||= createHash('sha256').update(JSON.stringify(this.#catalog.platforms)).digest('hex')
    return this.#fingerprint
  }

  platform(id: string): Platform | undefined {
    return this.#platforms.get(id)
  }
}
