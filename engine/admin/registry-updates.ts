import type { KeyObject } from 'node:crypto'
import { type Catalog, catalogOf } from '../../registry/catalog.ts'
import { compareVersions, dayOfVersion } from '../../registry/data-version.ts'
import { dataOf, type SignedRelease, UpdateFileError, verifiedRelease } from '../../registry/signed-release.ts'
import { DAY_MS, isoDay } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { faultPoint } from '../kernel/process/fault-point.ts'
import { SERVICE_WIDE } from '../store/own-platforms.ts'
import { dataInForce } from '../store/registry-in-force.ts'
import type { RegistryReleases } from '../store/registry-releases.ts'
import { AuditedChanges } from './audited-changes.ts'

/** How many releases rollback can restore, one after the other. */
const PREVIOUS_MAX = 3

/** The registry before and after a change, without changes of the operator. */
export interface RegistryChange {
  readonly before: Catalog
  readonly after: Catalog
}

/** Installs releases of the registry's data, for all organizations. */
export class RegistryUpdates extends AuditedChanges {
  /**
   * What an update file would change. Verifies everything, and stores nothing.
   *
   * @throws Fault REGISTRY_UPDATE, NOT_ALLOWED
   */
  preview(bytes: Uint8Array, roots: readonly KeyObject[]): RegistryChange & { readonly release: SignedRelease } {
    this.assertOperator('registry.update')
    const { store } = this
    const release = this.#verified(bytes, roots)
    const before = dataInForce(store.registryReleases)
    this.#isInstalled(release)
    const { platforms, version } = refused(() => dataOf(release))
    return { release, before, after: catalogOf(platforms, version) }
  }

  /**
   * Installs the release of an update file. All threads of a running service use it from their next
   * use of the registry on. Does nothing if the release is installed.
   *
   * @throws Fault REGISTRY_UPDATE, NOT_ALLOWED, STORE_FULL
   */
  update(bytes: Uint8Array, roots: readonly KeyObject[]): RegistryChange {
    const { release, ...change } = this.preview(bytes, roots)
    const { store, clock } = this
    if (this.#isInstalled(release)) return change
    faultPoint('registry:verified')
    return this.audited('registry.update', SERVICE_WIDE, () => {
      // Another process may have installed a release meanwhile.
      if (this.#isInstalled(release)) throw new Fault('CONFLICT', `${release.version} was installed meanwhile`)
      const { registryReleases: releases, ownPlatforms } = store
      const { state, version: before, inForce } = releases
      releases.put({ ...release, installedAtMs: clock.nowMs() })
      releases.setState({
        installed: release.version,
        previous: [inForce?.version ?? '', ...state.previous].slice(0, PREVIOUS_MAX),
        keyNumber: Math.max(state.keyNumber, release.keyNumber),
        isRolledBack: false,
      })
      ownPlatforms.raiseVersion(SERVICE_WIDE)
      faultPoint('registry:stored')
      const details = { before, sha256: release.sha256, key: release.keyNumber }
      return { organizationId: SERVICE_WIDE, subject: release.version, details, result: change }
    })
  }

  /**
   * Restores what was in force before the last update.
   *
   * @throws Fault CONFLICT if there was none, NOT_ALLOWED, STORE_FULL
   */
  rollback(): RegistryChange {
    this.assertOperator('registry.rollback')
    const { store } = this
    const before = inForceOrDamaged(store.registryReleases)
    return this.audited('registry.rollback', SERVICE_WIDE, () => {
      const { registryReleases: releases, ownPlatforms } = store
      const { installed, previous, keyNumber } = releases.state
      if (installed === '') throw new Fault('CONFLICT', 'no update is installed; the built-in registry is in use')
      const [wanted = '', ...others] = previous
      releases.setState({ installed: wanted, previous: wanted === '' ? [] : others, keyNumber, isRolledBack: true })
      ownPlatforms.raiseVersion(SERVICE_WIDE)
      const after = dataInForce(releases)
      const details = { before: installed }
      return {
        organizationId: SERVICE_WIDE,
        subject: after.version,
        details,
        result: { before: before ?? after, after },
      }
    })
  }

  #verified(bytes: Uint8Array, roots: readonly KeyObject[]): SignedRelease {
    if (roots.length === 0) {
      const how = 'name the public root key of the signer of your updates with --registry-root or REGISTRY_ROOT'
      throw new Fault('REGISTRY_UPDATE', `no root key is pinned; ${how}`)
    }
    const release = refused(() => verifiedRelease(bytes, roots))
    const tomorrow = isoDay(this.clock.nowMs() + DAY_MS)
    if (dayOfVersion(release.version) <= tomorrow) return release
    // It would prevent all updates until that day.
    throw new Fault('REGISTRY_UPDATE', `the version ${release.version} is in the future; check the clock of this host`)
  }

  /** @throws Fault REGISTRY_UPDATE if it is older, or another file of the same version */
  #isInstalled({ version, sha256, keyNumber }: SignedRelease): boolean {
    const { registryReleases: releases } = this.store
    const { inForce, state, version: current } = releases
    if (inForce?.version === version && inForce.sha256 === sha256) return true
    const order = compareVersions(version, current)
    if (order < 0) {
      const how = 'posture-admin registry rollback restores the release before'
      throw new Fault('REGISTRY_UPDATE', `${version} is older than ${current}, which is in use; ${how}`)
    }
    if (order === 0 && inForce !== undefined) {
      throw new Fault(
        'REGISTRY_UPDATE',
        `another file of version ${version} is installed; its SHA-256 is ${inForce.sha256}`,
      )
    }
    if (order === 0) return true
    if (keyNumber >= state.keyNumber) return false
    const why = `release key ${keyNumber} signed it, which key ${state.keyNumber} has replaced`
    throw new Fault('REGISTRY_UPDATE', `${version} is refused: ${why}`)
  }
}

/** undefined if the release in force is damaged, which rollback repairs. */
function inForceOrDamaged(releases: RegistryReleases): Catalog | undefined {
  try {
    return dataInForce(releases)
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

function refused<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof UpdateFileError)) throw error
    throw new Fault('REGISTRY_UPDATE', `the update is refused: ${error.message}`, { cause: error })
  }
}
