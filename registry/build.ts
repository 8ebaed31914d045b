import { readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BUILT_IN_FILE } from './catalog.ts'
import { type Platform, platformOf } from './platform.ts'
import { PLATFORM_TYPES } from './platform-type.ts'
import { RegistryFileError, readPlatformFile } from './registry-file.ts'

/**
 * registry/platforms/*.yaml -> catalog.json next to the compiled files, so that a start reads JSON
 * (4 ms) instead of YAML (500 ms). `npm run build` runs it as `node dist/registry/build.js`. Paths
 * are relative to this file.
 */
export const PLATFORMS_DIR = new URL('../../registry/platforms/', import.meta.url)

/**
 * Reads all built-in platforms: types in the order of PLATFORM_TYPES, IDs in alphabetical order.
 */
export function readPlatforms(): Platform[] {
  const files = new Set(readdirSync(PLATFORMS_DIR))
  const platforms: Platform[] = []
  const owners = new Map<string, string>()
  for (const type of Object.keys(PLATFORM_TYPES)) {
    const name = `${type}.yaml`
    if (!files.delete(name)) throw new RegistryFileError(name, '', '', 'the platform type has no file')
    const entries = readPlatformFile(fileURLToPath(new URL(name, PLATFORMS_DIR)))
    for (const entry of entries) {
      if (entry.platform_type !== type) throw new RegistryFileError(name, entry.id, 'platform_type', `expected ${type}`)
      claim(owners, entry.id, name, entry.id, 'id')
      for (const { domain } of entry.domains) claim(owners, domain, name, entry.id, 'domains')
    }
    platforms.push(...entries.map(platformOf).sort((a, b) => (a.id < b.id ? -1 : 1)))
  }
  for (const name of files) throw new RegistryFileError(name, '', '', 'no platform type has this name')
  return platforms
}

/** IDs have no dot and domains have one, so one map holds both. */
function claim(owners: Map<string, string>, key: string, file: string, entry: string, field: string): void {
  const owner = owners.get(key)
  if (owner !== undefined) throw new RegistryFileError(file, entry, field, `${key} is already listed under ${owner}`)
  owners.set(key, entry)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const platforms = readPlatforms()
  writeFileSync(BUILT_IN_FILE, JSON.stringify(platforms))
}
