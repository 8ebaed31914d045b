import { type Catalog, catalogOf, loadCatalog, mergeChanges } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { type Matcher, NameMatcher } from '../../registry/match.ts'
import { OwnMatcher } from '../../registry/own-matcher.ts'
import { OWN_RULES_KEPT_MAX, OWN_SETS_KEPT_MAX } from '../limits.ts'
import { SERVICE_WIDE } from './own-platforms.ts'
import type { Store } from './store.ts'

/** The registry that every organization has, compiled once for all threads. */
export interface CompiledRegistry {
  /** The service-wide version (own-platforms.ts) that it was compiled from. */
  readonly version: number
  readonly trie: SharedArrayBuffer
}

/** Which matcher an organization's names are matched with. */
export interface Registries {
  matcherOf(organizationId: string): Matcher
}

/** Whether a host belongs to a platform of an organization's registry. */
export interface KnownHosts {
  knows(organizationId: string, view: DataView, start: number, end: number): boolean
}

/** An organization's own set, as it was read. */
interface OwnSet {
  readonly version: number
  /** undefined if the organization has none. */
  readonly matcher: OwnMatcher | undefined
  /** The turn of the event loop in which the version was last compared. */
  checkedTurn: number
}

/**
 * The built-in registry with the operator's changes, and over it each organization's own platforms,
 * as the store has them now. One belongs to one thread. What it keeps is compared with the versions
 * in the store before each use, so a change of any process applies at once: to the next scan, and
 * to messages from the next turn of the event loop on.
 */
export class RegistryInForce implements Registries, KnownHosts {
  readonly #store: Store
  #shared: CompiledRegistry | undefined
  /**
   * Made when it is needed: a thread that only asks whether hosts are known needs the trie alone.
   */
  #matcher: NameMatcher | undefined
  #trie: DomainTrie | undefined
  readonly #own = new Map<string, OwnSet>()
  #ownRules = 0
  #turn = 0
  #turnEnds = false
  /** The organization asked for last in this turn, and its matcher if it has own platforms. */
  #lastId = ''
  #lastMatcher: OwnMatcher | undefined
  readonly #endTurn = (): void => {
    this.#turn++
    this.#turnEnds = false
    this.#lastId = ''
  }

  /** @param compiled from the thread that started this one */
  constructor(store: Store, compiled?: CompiledRegistry) {
    this.#store = store
    this.#shared = compiled
  }

  /** Organizations whose sets are kept. */
  get kept(): number {
    return this.#own.size
  }

  /** What other threads start with. */
  get compiled(): CompiledRegistry {
    this.#checkShared()
    return this.#sharedRegistry()
  }

  matcherOf(organizationId: string): Matcher {
    this.#checkShared()
    return this.#ownSet(organizationId).matcher ?? this.#sharedMatcher()
  }

  /** Platforms and rules that an organization has; of SERVICE_WIDE: that every organization has. */
  catalogOf(organizationId: string): Catalog {
    this.#checkShared()
    const shared = this.#sharedMatcher().catalog
    const changes = this.#store.ownPlatforms.changes(organizationId)
    const isChanged = organizationId !== SERVICE_WIDE && changes.platforms.length + changes.disable.length > 0
    return isChanged ? catalogOf(mergeChanges(shared.platforms, changes)) : shared
  }

  /**
   * Per message: allocates nothing unless the organization replaced domains of a shared platform.
   */
  knows(organizationId: string, view: DataView, start: number, end: number): boolean {
    if (organizationId !== this.#lastId) this.#checkInTurn(organizationId)
    const own = this.#lastMatcher
    if (own !== undefined) return own.matchBytes(view, start, end) !== undefined
    return this.#trie !== undefined && this.#trie.matchDotted(view, start, end) !== NO_MATCH
  }

  #checkInTurn(organizationId: string): void {
    this.#store.environment.readInTurn(() => {
      if (!this.#turnEnds) {
        this.#turnEnds = true
        setImmediate(this.#endTurn)
        this.#checkShared()
        this.#trie ??= new DomainTrie(this.#sharedRegistry().trie)
      }
      const known = this.#own.get(organizationId)
      this.#lastMatcher = (known?.checkedTurn === this.#turn ? known : this.#ownSet(organizationId)).matcher
      this.#lastId = organizationId
    })
  }

  /** Forgets everything if the service-wide changes are others now. */
  #checkShared(): void {
    const version = this.#store.ownPlatforms.version(SERVICE_WIDE)
    if (this.#shared?.version === version) return
    this.#shared = undefined
    this.#matcher = undefined
    this.#trie = undefined
    this.#forgetOwn()
  }

  #sharedRegistry(): CompiledRegistry {
    if (this.#shared === undefined) {
      const version = this.#store.ownPlatforms.version(SERVICE_WIDE)
      const catalog = this.#sharedCatalog()
      this.#shared = { version, trie: compileTrie(catalog.rules) }
      this.#matcher = new NameMatcher(catalog, this.#shared.trie)
    }
    return this.#shared
  }

  #sharedMatcher(): NameMatcher {
    const { trie } = this.#sharedRegistry()
    this.#matcher ??= new NameMatcher(this.#sharedCatalog(), trie)
    return this.#matcher
  }

  #sharedCatalog(): Catalog {
    const builtIn = loadCatalog()
    const changes = this.#store.ownPlatforms.changes(SERVICE_WIDE)
    const isChanged = changes.platforms.length + changes.disable.length > 0
    return isChanged ? catalogOf(mergeChanges(builtIn.platforms, changes)) : builtIn
  }

  /** The organization's own set, read again if its version changed. */
  #ownSet(organizationId: string): OwnSet {
    const version = this.#store.ownPlatforms.version(organizationId)
    const known = this.#own.get(organizationId)
    if (known !== undefined && known.version === version) {
      known.checkedTurn = this.#turn
      return known
    }
    if (known !== undefined) this.#forget(organizationId, known)
    const changes = this.#store.ownPlatforms.changes(organizationId)
    const isEmpty = changes.platforms.length + changes.disable.length === 0
    const matcher = isEmpty ? undefined : new OwnMatcher(this.#sharedMatcher(), changes)
    const set: OwnSet = { version, matcher, checkedTurn: this.#turn }
    this.#own.set(organizationId, set)
    this.#ownRules += matcher?.rules ?? 0
    // The oldest are read again when their organizations send again.
    for (const [id, oldest] of this.#own) {
      if (id === organizationId) break
      if (this.#own.size <= OWN_SETS_KEPT_MAX && this.#ownRules <= OWN_RULES_KEPT_MAX) break
      this.#forget(id, oldest)
    }
    return set
  }

  #forget(organizationId: string, { matcher }: OwnSet): void {
    this.#own.delete(organizationId)
    this.#ownRules -= matcher?.rules ?? 0
  }

  #forgetOwn(): void {
    this.#own.clear()
    this.#ownRules = 0
    this.#lastId = ''
  }
}
