import { readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { BUILT_IN_FILE } from './built-in.ts'
import { type Fact, factEntry, factsByPlatform } from './facts.ts'
import { type Platform, platformOf } from './platform.ts'
import { PLATFORM_TYPES } from './platform-type.ts'
import {
  type Provenance,
  type Repositories,
  repositoryEntry,
  siteOf,
  sourceOf,
  type Vendors,
  vendorEntry,
} from './provenance.ts'
import { type BuiltInEntry, RegistryFileError, readList, readPlatformFile } from './registry-file.ts'
import { type DataRelease, readReleases } from './releases.ts'
import { riskTerms, sumOf } from './risk-sum.ts'

/**
 * registry/platforms/*.yaml, sources.yaml, vendors.yaml, facts/*.yaml and releases.yaml ->
 * catalog.json next to the compiled files, so that a start reads JSON (4 ms) instead of YAML (500
 * ms). `npm run build` runs it as `node dist/registry/build.js`. Paths are relative to this file.
 */
const REGISTRY_DIR = new URL('../../registry/', import.meta.url)
export const PLATFORMS_DIR = new URL('platforms/', REGISTRY_DIR)
const FACTS_DIR = new URL('facts/', REGISTRY_DIR)

interface Tables {
  readonly repositories: Repositories
  readonly vendors: Vendors
  readonly facts: ReadonlyMap<string, Fact[]>
}

/**
 * Reads all built-in platforms: types in the order of PLATFORM_TYPES, IDs in alphabetical order.
 */
export function readPlatforms(): Platform[] {
  const tables = readTables()
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
    const built = entries.map((entry) => builtIn(name, entry, tables))
    platforms.push(...built.sort((a, b) => (a.id < b.id ? -1 : 1)))
  }
  for (const name of files) throw new RegistryFileError(name, '', '', 'no platform type has this name')
  for (const id of tables.facts.keys()) {
    if (!owners.has(id)) throw new RegistryFileError('facts', id, 'platforms', 'no platform has this id')
  }
  return platforms
}

/** All releases of the data, newest first. The first one is that of readPlatforms(). */
export function dataReleases(): readonly [DataRelease, ...DataRelease[]] {
  return readReleases(fileURLToPath(new URL('releases.yaml', REGISTRY_DIR)))
}

function readTables(): Tables {
  const pathOf = (name: string, directory: URL) => fileURLToPath(new URL(name, directory))
  const facts = readdirSync(FACTS_DIR).flatMap((name) => readList(pathOf(name, FACTS_DIR), factEntry))
  const repositories = readList(pathOf('sources.yaml', REGISTRY_DIR), repositoryEntry)
  const vendors = readList(pathOf('vendors.yaml', REGISTRY_DIR), vendorEntry)
  return {
    repositories: new Map(repositories.map((entry) => [entry.repository, entry])),
    vendors: new Map(vendors.map((entry) => [entry.vendor, entry])),
    facts: factsByPlatform(facts),
  }
}

/** Adds what the other files state about the platform. */
function builtIn(file: string, entry: BuiltInEntry, { repositories, vendors, facts }: Tables): Platform {
  const own = facts.get(entry.id)
  const risk = { ...entry.risk, score: sumOf(riskTerms(entry.risk.class, own ?? [])) }
  return {
    ...platformOf({ ...entry, risk }),
    provenance: provenanceOf(file, entry, repositories, vendors),
    ...(own && { facts: own }),
  }
}

function provenanceOf(file: string, entry: BuiltInEntry, repositories: Repositories, vendors: Vendors): Provenance {
  const { id, vendor, url, source, status, status_note: note, checked } = entry
  const sources = source.map((text, index) => {
    const found = sourceOf(text, repositories)
    const expected = 'expected owner/name:path of a repository in sources.yaml, or https://... YYYY-MM-DD'
    if (found === undefined) throw new RegistryFileError(file, id, `source[${index}]`, expected)
    return found
  })
  const known = vendors.get(vendor)
  const country = known?.country
  const vendorUrl = known?.url ?? siteOf(url)
  return { status, ...(note && { note }), checked, vendorUrl, ...(country && { country }), sources }
}

/** IDs have no dot and domains have one, so one map holds both. */
function claim(owners: Map<string, string>, key: string, file: string, entry: string, field: string): void {
  const owner = owners.get(key)
  if (owner !== undefined) throw new RegistryFileError(file, entry, field, `${key} is already listed under ${owner}`)
  owners.set(key, entry)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [{ version }] = dataReleases()
  writeFileSync(BUILT_IN_FILE, JSON.stringify({ version, platforms: readPlatforms() }))
}
