import { z } from 'zod'
import { compareVersions } from './data-version.ts'
import { dataVersion } from './data-version-schema.ts'
import { RegistryFileError, readList } from './registry-file.ts'
import { line } from './schema-parts.ts'

const releaseEntry = z.strictObject({ version: dataVersion, changes: z.array(line(300)).min(1).max(100) })
export type DataRelease = z.infer<typeof releaseEntry>

/** The releases in registry/releases.yaml, newest first. @throws RegistryFileError */
export function readReleases(file: string): readonly [DataRelease, ...DataRelease[]] {
  const [newest, ...older] = readList(file, releaseEntry)
  if (newest === undefined) throw new RegistryFileError(file, '', '', 'expected a release')
  let after = newest
  for (const release of older) {
    if (compareVersions(release.version, after.version) < 0) after = release
    else throw new RegistryFileError(file, '', 'version', `${release.version} is below ${after.version}`)
  }
  return [newest, ...older]
}
