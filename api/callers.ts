import { hash } from 'node:crypto'
import { BoundedMap } from '../engine/kernel/process/bounded-map.ts'
import { type Clock, systemClock } from '../engine/kernel/process/clock.ts'
import { isApiKey } from '../engine/store/access-key.ts'
import { uuidBytes } from '../engine/store/keys.ts'
import { firstBodyKey, gzipBodyKey, PublishedList } from '../engine/store/published.ts'
import { SCOPES, type Scope } from '../engine/store/secrets.ts'
import type { Store } from '../engine/store/store.ts'
import type { BodyCache, ListState } from './body-cache.ts'

/**
 * Maximum number of keys, and of organizations, that a thread caches, about 0.5 KB each. Beyond it,
 * the oldest entries are evicted and read again on use.
 */
const CACHED_MAX = 50_000

/** An organization as read at this version (store/api-versions.ts). */
export interface CallersOrganization {
  readonly id: string
  readonly key: Buffer
  readonly version: number
  /** The version of all organizations at which this organization's version was last checked. */
  versionOfAll: number
  readonly isEnterprise: boolean
  /** Its published lists, by list number. Undefined until requested. */
  readonly lists: (ListState | undefined)[]
}

export interface Caller {
  readonly keyId: string
  /** The 8 digits of the key that may be shown. */
  readonly visible: string
  /** SHA-256 of the raw key. */
  readonly keyHash: Buffer
  /** In ms since 1970; infinite where it does not expire. */
  readonly expiresAtMs: number
  /** A bit for each of SCOPES. */
  readonly scopes: number
  readonly organization: CallersOrganization
  /** When its last use was recorded; 0 if never. See key-uses.ts. */
  usedMs: number
}

/** The entity tag of a list that was never published. */
const EMPTY_TAG = '0'.repeat(32)

/**
 * Authenticates callers. A key and its organization are cached while the organization's version is
 * unchanged, which every request checks. A revoked key or a changed plan therefore takes effect at
 * the next request in every thread.
 */
export class Callers {
  readonly #store: Store
  readonly #callers = new BoundedMap<string, Caller>(CACHED_MAX)
  readonly #organizations = new BoundedMap<string, CallersOrganization>(CACHED_MAX)
  readonly #bodies: BodyCache
  readonly #clock: Clock
  #turn = 0
  #versionOfAll = -1

  constructor(store: Store, bodies: BodyCache, clock: Clock = systemClock) {
    this.#store = store
    this.#bodies = bodies
    this.#clock = clock
  }

  /**
   * Returns the caller for an active key, or undefined. Any invalid text costs one hash and one
   * lookup, so that the response time reveals nothing. Must run within Environment.readInTurn.
   */
  find(text: string): Caller | undefined {
    const digest = hash('sha256', text)
    const known = this.#callers.get(digest)
    const caller = known !== undefined && this.#isCurrent(known.organization) ? known : this.#read(text, digest)
    return caller === undefined || this.#hasExpired(caller) ? undefined : caller
  }

  /** Returns the state of a list that the caller's organization has published. */
  listOf({ organization }: Caller, list: PublishedList): ListState {
    const known = organization.lists[list]
    if (known !== undefined) return known
    const head = this.#store.published.head(organization.id, list)
    const tag = head?.tag ?? EMPTY_TAG
    const state: ListState = {
      etag: `"${tag}"`,
      gzipEtag: `"${tag}-gzip"`,
      count: head?.count ?? 0,
      // Copied, because a view would keep the whole record in memory.
      headText: head && Buffer.from(head.text),
      first: { key: firstBodyKey(organization.id, list), isChecked: false, bytes: undefined },
      firstGzip: { key: gzipBodyKey(organization.id, list, 0), isChecked: false, bytes: undefined },
    }
    organization.lists[list] = state
    return state
  }

  /**
   * Reads the version of all organizations once per turn, and an organization's own version only
   * after a change of the former.
   */
  #isCurrent(organization: CallersOrganization): boolean {
    const { environment, apiVersions } = this.#store
    if (this.#turn !== environment.turn) {
      this.#turn = environment.turn
      this.#versionOfAll = apiVersions.ofAll()
    }
    if (organization.versionOfAll === this.#versionOfAll) return true
    if (apiVersions.get(organization.key) !== organization.version) return false
    organization.versionOfAll = this.#versionOfAll
    return true
  }

  /** Asks for the time only where it matters: few keys expire. */
  #hasExpired({ expiresAtMs }: Caller): boolean {
    return expiresAtMs !== Number.POSITIVE_INFINITY && expiresAtMs <= this.#clock.nowMs()
  }

  #read(text: string, digest: string): Caller | undefined {
    const keyHash = Buffer.from(digest, 'hex')
    const key = this.#store.apiKeys.byHash(keyHash)
    if (key === undefined || !isApiKey(text)) {
      this.#callers.delete(digest)
      return undefined
    }
    const caller: Caller = {
      keyId: key.id,
      visible: key.visible,
      keyHash,
      expiresAtMs: key.expiresAtMs ?? Number.POSITIVE_INFINITY,
      scopes: key.scopes.reduce((bits, scope) => bits | scopeBit(scope), 0),
      organization: this.#organization(key.organizationId),
      usedMs: 0,
    }
    this.#callers.set(digest, caller)
    return caller
  }

  #organization(id: string): CallersOrganization {
    const known = this.#organizations.get(id)
    if (known !== undefined && this.#isCurrent(known)) return known
    for (const state of known?.lists ?? []) {
      if (state === undefined) continue
      this.#bodies.drop(state.first)
      this.#bodies.drop(state.firstGzip)
    }
    const key = uuidBytes(id)
    const version = this.#store.apiVersions.get(key)
    const isEnterprise = this.#store.organizations.get(id)?.plan === 'enterprise'
    // Not checked yet: the next request does.
    const organization = { id, key, version, versionOfAll: -1, isEnterprise, lists: noLists() }
    this.#organizations.set(id, organization)
    return organization
  }
}

/** An array element for each list, so that reading one is an element access. */
function noLists(): undefined[] {
  return new Array(1 + Math.max(...Object.values(PublishedList))).fill(undefined)
}

export function scopeBit(scope: Scope): number {
  return 1 << SCOPES.indexOf(scope)
}
