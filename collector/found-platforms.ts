import type { Catalog } from '../registry/catalog.ts'

/** The AI platforms of all matches of a run, whatever registry they were matched by. */
export class FoundPlatforms {
  readonly #names = new Set<string>()
  #catalog: Catalog
  /** Those whose platforms are in the set. */
  #matches = 0

  constructor(catalog: Catalog) {
    this.#catalog = catalog
  }

  /** How many platforms there are. `rules` are those that matched so far; they are read only where there are more matches than before. */
  count(matches: number, rules: () => readonly number[]): number {
    if (matches !== this.#matches) this.#add(rules())
    this.#matches = matches
    return this.#names.size
  }

  /** Rules are those of another registry from now on. `rules` matched by the one before. */
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
