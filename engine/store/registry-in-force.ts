import { builtInData } from '../../registry/built-in.ts'
import { type Catalog, catalogOf, mergeChanges } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { DomainTrie, NO_MATCH } from '../../registry/domain-trie.ts'
import { type Matcher, NameMatcher } from '../../registry/match.ts'
import { OwnMatcher } from '../../registry/own-matcher.ts'
import { dataOf, UpdateFileError } from '../../registry/signed-release.ts'
import { BoundedMap } from '../kernel/process/bounded-map.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { OWN_CATALOGS_KEPT_MAX, OWN_RULES_KEPT_MAX, OWN_SETS_KEPT_MAX } from '../limits.ts'
import { SERVICE_WIDE } from './own-platforms.ts'
import type { RegistryReleases } from './registry-releases.ts'
import type { Store } from './store.ts'

/** The registry that all organizations share, compiled once for all threads. */
export interface CompiledRegistry {
  /** The service-wide version (own-platforms.ts) from which it was compiled. */
  readonly version: number
  readonly trie: SharedArrayBuffer
}

/** Provides the matcher of an organization. */
export interface Registries {
  matcherOf(organizationId: string): Matcher
}

/** Whether a host belongs to a platform of an organization's registry. */
export interface KnownHosts {
  knows(organizationId: string, view: DataView, start: number, end: number): boolean
}

/** The custom platforms of an organization, as last read. */
interface OwnSet {
  readonly version: number
  /** undefined if the organization has no custom platforms. */
  readonly matcher: OwnMatcher | undefined
  /** The turn of the event loop in which the version was last checked. */
  checkedTurn: number
}

/**
 * The current registry: the built-in platforms or an installed release of them, with the operator's
 * changes, and each organization's custom platforms in addition. Each thread has an instance. It
 * compares what it cached with the versions in the store before each use. So a change by any
 * process applies to the next scan, and to messages from the next turn of the event loop on.
 */
export class RegistryInForce implements Registries, KnownHosts {
  readonly #store: Store
  /** The service-wide version of everything that is cached. */
  #version: number | undefined
  #shared: CompiledRegistry | undefined
  /**
   * Created on first use. A thread that only checks whether hosts are known needs only the trie.
   */
  #matcher: NameMatcher | undefined
  #base: Catalog | undefined
  /** Platforms and rules, which need no trie: pages and commands need only lookups of platforms. */
  #catalog: Catalog | undefined
  /** Of organizations with custom platforms, the least recently used first. */
  readonly #ownCatalogs = new BoundedMap<string, { readonly version: number; readonly catalog: Catalog }>(
    OWN_CATALOGS_KEPT_MAX,
  )
  #trie: DomainTrie | undefined
  readonly #own = new Map<string, OwnSet>()
  #ownRules = 0
  #turn = 0
  #turnEnds = false
  /** The organization of the last call in this turn, and its matcher if it has custom platforms. */
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
    this.#version = compiled?.version
  }

  /** Number of organizations whose custom platforms are cached. */
  get kept(): number {
    return this.#own.size
  }

  /** The compiled registry for other threads to start with. */
  get compiled(): CompiledRegistry {
    this.#checkShared()
    return this.#sharedRegistry()
  }

  matcherOf(organizationId: string): Matcher {
    this.#checkShared()
    return this.#ownSet(organizationId).matcher ?? this.#sharedMatcher()
  }

  /** The built-in registry or the installed release of its data, without changes. */
  get base(): Catalog {
    this.#checkShared()
    this.#base ??= dataInForce(this.#store.registryReleases)
    return this.#base
  }

  /**
   * All platforms and rules of an organization. SERVICE_WIDE: those that all organizations share.
   */
  catalogOf(organizationId: string): Catalog {
    this.#checkShared()
    const shared = this.#sharedCatalog()
    if (organizationId === SERVICE_WIDE) return shared
    const version = this.#store.ownPlatforms.version(organizationId)
    const kept = this.#ownCatalogs.get(organizationId)
    this.#ownCatalogs.delete(organizationId)
    const next = kept?.version === version ? kept : { version, catalog: this.#mergedCatalog(shared, organizationId) }
    if (next.catalog !== shared) this.#ownCatalogs.set(organizationId, next)
    return next.catalog
  }

  #mergedCatalog(shared: Catalog, organizationId: string): Catalog {
    const changes = this.#store.ownPlatforms.changes(organizationId)
    const isChanged = changes.platforms.length + changes.disable.length > 0
    return isChanged ? catalogOf(mergeChanges(shared.platforms, changes), shared.version) : shared
  }

  /**
   * Called for each message. Allocates nothing, unless the organization replaced domains of a
   * shared platform.
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

  /** Clears the caches if the service-wide changes have another version. */
  #checkShared(): void {
    const version = this.#store.ownPlatforms.version(SERVICE_WIDE)
    if (this.#version === version) return
    this.#version = version
    this.#shared = undefined
    this.#matcher = undefined
    this.#base = undefined
    this.#catalog = undefined
    this.#trie = undefined
    this.#ownCatalogs.clear()
    this.#forgetOwn()
  }

  #sharedRegistry(): CompiledRegistry {
    if (this.#shared === undefined) {
      const catalog = this.#sharedCatalog()
      this.#shared = { version: this.#version ?? 0, trie: compileTrie(catalog.rules) }
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
    if (this.#catalog === undefined) {
      this.#catalog = this.#mergedCatalog(this.base, SERVICE_WIDE)
    }
    return this.#catalog
  }

  /** The organization's custom platforms, read again if their version changed. */
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
    // An evicted set is read again with the next message of its organization.
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

/** The registry in force, without changes of the operator and of organizations. */
export function dataInForce(releases: RegistryReleases): Catalog {
  const release = releases.inForce
  if (release === undefined) return builtIn()
  try {
    const { platforms, version } = dataOf(release)
    return catalogOf(platforms, version)
  } catch (error) {
    if (!(error instanceof UpdateFileError)) throw error
    const why = `the installed registry ${release.version} cannot be used: ${error.message}`
    throw new Fault('STORE_DAMAGED', `${why}; run posture-admin registry rollback`, { cause: error })
  }
}

let loaded: Catalog | undefined

function builtIn(): Catalog {
  if (loaded === undefined) {
    const { platforms, version } = builtInData()
    loaded = catalogOf(platforms, version)
  }
  return loaded
}
