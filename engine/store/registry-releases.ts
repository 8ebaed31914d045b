import { builtInVersion } from '../../registry/built-in.ts'
import { compareVersions } from '../../registry/data-version.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'

/** A release of the registry's data that was verified and installed. */
export interface StoredRelease {
  readonly version: string
  /** Of the update file, in hexadecimal digits. */
  readonly sha256: string
  readonly keyNumber: number
  readonly installedAtMs: number
  /** The last day on which the release is valid; '' or absent: without an end. */
  readonly validUntil?: string
  /** The update file, which collectors verify themselves. */
  readonly bytes: Uint8Array
}

export interface ReleaseState {
  /** '' is the built-in registry. */
  readonly installed: string
  /** What rollback restores, the last one first. */
  readonly previous: readonly string[]
  /** The highest number of a release key. A lower one signs no further release. */
  readonly keyNumber: number
  /** Whether the last change was a rollback, which collectors then follow. */
  readonly isRolledBack?: boolean
}

const NOTHING: ReleaseState = { installed: '', previous: [], keyNumber: 0 }
const STATE_KEY = Buffer.from('state')

/*
 * The installed releases of the registry's data:
 *
 *   registry-releases   version     StoredRelease: the installed one, those of rollback
 *   registry-state      'state'     ReleaseState
 *
 * A change also raises the service-wide version of custom platforms, which all threads compare.
 */
export class RegistryReleases {
  readonly #releases: Family<StoredRelease>
  readonly #state: Family<ReleaseState>
  readonly #builtInVersion: () => string

  constructor(environment: Environment, versionOfBuiltIn = builtInVersion) {
    this.#releases = new Family(environment.table('registry-releases'), 'release of the registry')
    this.#state = new Family(environment.table('registry-state'), 'state of the registry')
    this.#builtInVersion = versionOfBuiltIn
  }

  get state(): ReleaseState {
    return this.#state.get(STATE_KEY) ?? NOTHING
  }

  get(version: string): StoredRelease | undefined {
    return version === '' ? undefined : this.#releases.get(Buffer.from(version))
  }

  /** The installed release, unless the built-in registry is as new. undefined: the built-in one. */
  get inForce(): StoredRelease | undefined {
    return this.get(this.#installedInForce())
  }

  /** The version in force. */
  get version(): string {
    return this.#installedInForce() || this.#builtInVersion()
  }

  #installedInForce(): string {
    const { installed } = this.state
    const isNewer = installed !== '' && compareVersions(installed, this.#builtInVersion()) > 0
    return isNewer && this.#releases.has(Buffer.from(installed)) ? installed : ''
  }

  put(release: StoredRelease): void {
    this.#releases.put(Buffer.from(release.version), release)
  }

  /** Sets the state, and removes releases that it does not name. */
  setState(state: ReleaseState): void {
    this.#state.put(STATE_KEY, state)
    const kept = new Set([state.installed, ...state.previous])
    const all = Array.from(this.#releases.keys(Buffer.alloc(0)))
    for (const key of all) if (!kept.has(key.toString())) this.#releases.remove(key)
  }
}
