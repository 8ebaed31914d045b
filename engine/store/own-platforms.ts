import type { ChangedEntry, RegistryFile } from '../../registry/registry-file.ts'
import type { Environment, Table } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { textKey, uuidBytes } from './keys.ts'
import { NO_ORGANIZATION } from './sources.ts'

/** Changes that apply to every organization are stored under this key. */
export const SERVICE_WIDE = NO_ORGANIZATION

/** A change of the registry: a platform that is added, changed or disabled. */
export interface OwnPlatform {
  /** An entry of a registry file; only the id if the platform is disabled. */
  readonly entry: ChangedEntry
  readonly disabled: boolean
  readonly addedAtMs: number
  /** Came from REGISTRY_FILE, and is removed when the file no longer has the entry. */
  readonly provisioned: boolean
}

/*
 * The changes that organizations make to the built-in registry, and the operator for all of them:
 *
 *   own-platforms       organization (16) + platform id OwnPlatform
 *   registry-versions   organization (16)               f64, little-endian; grows with a change
 *
 * Threads cache matchers, and compare the version before each use (registry-in-force.ts). A version
 * has no checksum: only equality with the cached version matters.
 */
const VERSION_BYTES = 8

export class OwnPlatforms {
  readonly #records: Family<OwnPlatform>
  readonly #versions: Table

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('own-platforms'), 'custom platform')
    this.#versions = environment.table('registry-versions')
  }

  get(organizationId: string, platformId: string): OwnPlatform | undefined {
    return this.#records.get(textKey(organizationId, platformId))
  }

  /** Ordered by platform id. */
  ofOrganization(organizationId: string): OwnPlatform[] {
    return Array.from(this.#records.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  /** The changes as a registry file. */
  changes(organizationId: string): RegistryFile {
    return changesOf(this.ofOrganization(organizationId))
  }

  /** 0 if there was no change. */
  version(organizationId: string): number {
    // As in ApiVersions: lmdb-js reuses these bytes in the next read, so there is no copy.
    const bytes = this.#versions.getBinaryFast(uuidBytes(organizationId))
    return bytes === undefined ? 0 : bytes.readDoubleLE(0)
  }

  put(organizationId: string, platform: OwnPlatform): void {
    this.#records.put(textKey(organizationId, platform.entry.id), platform)
    this.raiseVersion(organizationId)
  }

  remove(organizationId: string, platformId: string): void {
    this.#records.remove(textKey(organizationId, platformId))
    this.raiseVersion(organizationId)
  }

  /** Makes all threads read the registry again. */
  raiseVersion(organizationId: string): void {
    const next = Buffer.allocUnsafe(VERSION_BYTES)
    next.writeDoubleLE(this.version(organizationId) + 1)
    this.#versions.putSync(uuidBytes(organizationId), next)
  }
}

export function changesOf(platforms: readonly OwnPlatform[]): RegistryFile {
  return {
    platforms: platforms.filter(({ disabled }) => !disabled).map(({ entry }) => entry),
    disable: platforms.filter(({ disabled }) => disabled).map(({ entry }) => entry.id),
  }
}
