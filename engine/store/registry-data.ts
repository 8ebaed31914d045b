import { builtInData } from '../../registry/built-in.ts'
import { type Catalog, catalogOf } from '../../registry/catalog.ts'
import { dataOf, UpdateFileError } from '../../registry/signed-release.ts'
import { Fault } from '../process/error-codes.ts'
import type { RegistryReleases } from './registry-releases.ts'

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
