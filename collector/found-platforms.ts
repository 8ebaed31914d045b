import type { Catalog } from '../registry/catalog.ts'

/** The AI platforms of all matches of a run, across changes of the registry. */
export class FoundPlatforms {
  readonly #names = new Set<string>()
  #catalog: Catalog
  /** Number of matches whose platforms are in the set. */
  #matches = 0

  constructor(catalog: Catalog) {
    this.#catalog = catalog
  }

  /**
   * Returns the number of platforms. `rules` returns the rules that matched so far. It is called
   * only if `matches` has changed.
   */
  count(matches: number, rules: () => readonly number[]): number {
    if (matches !== this.#matches) this.#add(rules())
    this.#matches = matches
    return this.#names.size
  }

  get catalog(): Catalog {
    return this.#catalog
  }

  /** Switches to another registry. `rules` are the rules that matched in the previous one. */
  useCatalog(catalog: Catalog, rules: readonly number[]): void {
    this.#add(rules)
    this.#catalog = catalog
  }

  #add(rules: readonly number[]): void {
    for (const rule of rules) {
      const platform = this.#catalog.rules[rule]?.platform.name
      if (platform !== undefined) this.#names.add(platform)
    }
  }
}
