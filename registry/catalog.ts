import { builtInData } from './built-in.ts'
import { type MatchKind, type Platform, type Purpose, platformOf, type Role } from './platform.ts'
import { PLATFORM_TYPES } from './platform-type.ts'
import {
  type ChangedEntry,
  completeEntry,
  isCompleteEntry,
  type RegistryFile,
  RegistryFileError,
  readRegistryFile,
} from './registry-file.ts'
import type { ReleasedData } from './released-data.ts'

export interface Rule {
  readonly domain: string
  readonly match: MatchKind
  readonly role: Role
  readonly specificity: number
  readonly purpose: Purpose
  readonly platform: Platform
}

/**
 * The trie returns the index of a rule in `rules`, so equal data and files must give equal order.
 */
export interface Catalog {
  /** The version of the registry's data (data-version.ts), before changes of the operator. */
  readonly version: string
  readonly platforms: readonly Platform[]
  readonly rules: readonly Rule[]
}

export interface CatalogOptions {
  /** The operator's registry file. */
  readonly file?: string
  /** See readRegistryFile(). */
  readonly read?: (file: string) => string
  /** The data that the file changes. Without it, the built-in data. */
  readonly data?: ReleasedData
}

/** Applies the operator's file to the data. @throws RegistryFileError for an invalid file. */
export function loadCatalog({ file, read, data = builtInData() }: CatalogOptions = {}): Catalog {
  if (file === undefined) return catalogOf(data.platforms, data.version)
  return catalogOf(applyFile(data.platforms, file, readRegistryFile(file, read)), data.version)
}

/**
 * Like loadCatalog, for a program that must continue: if the file is invalid, the data without it
 * is used and `fault` has the reason.
 */
export function loadCatalogOrBuiltIn(options: CatalogOptions): { catalog: Catalog; fault?: RegistryFileError } {
  try {
    return { catalog: loadCatalog(options) }
  } catch (error) {
    if (!(error instanceof RegistryFileError)) throw error
    return { catalog: loadCatalog(options.data === undefined ? {} : { data: options.data }), fault: error }
  }
}

/** Pages and commands need only the platforms, so the rules are created on first use. */
export function catalogOf(platforms: readonly Platform[], version = ''): Catalog {
  let rules: readonly Rule[] | undefined
  return {
    version,
    platforms,
    get rules() {
      rules ??= rulesOf(platforms)
      return rules
    },
  }
}

/** In the order of the platforms and their domains. */
function rulesOf(platforms: readonly Platform[]): Rule[] {
  const rules: Rule[] = []
  for (const platform of platforms) {
    for (const { domain, match, role, specificity, purpose } of platform.domains) {
      rules.push({ domain, match, role, specificity, purpose, platform })
    }
  }
  return rules
}

/**
 * Applies a registry file to platforms.
 *
 * @throws RegistryFileError
 */
function applyFile(platforms: readonly Platform[], file: string, changes: RegistryFile): Platform[] {
  checkChanges(platforms, file, changes)
  return mergeChanges(platforms, changes)
}

/**
 * Checks changes against the platforms that they change: each ID and domain occurs once, disabled
 * platforms exist, and an entry with a new ID has every field. Errors name `file`. Platforms of
 * `builtIn` may be disabled again.
 *
 * @throws RegistryFileError
 */
export function checkChanges(
  platforms: readonly Platform[],
  file: string,
  changes: RegistryFile,
  builtIn: readonly Platform[] = platforms,
): void {
  const known = new Set(platforms.map(({ id }) => id))
  const disableable = new Set([...known, ...builtIn.map(({ id }) => id)])
  const disabled = new Set(changes.disable)
  changes.disable.forEach((id, index) => {
    if (!disableable.has(id))
      throw new RegistryFileError(file, id, `disable[${index}]`, 'no built-in platform has this id')
  })
  const owners = new Map<string, string>()
  const seen = new Set<string>()
  for (const entry of changes.platforms) {
    if (seen.has(entry.id)) throw new RegistryFileError(file, entry.id, 'id', 'is in the file twice')
    if (disabled.has(entry.id)) throw new RegistryFileError(file, entry.id, 'id', 'is disabled by the same file')
    seen.add(entry.id)
    entry.domains?.forEach(({ domain }, index) => {
      const owner = owners.get(domain)
      if (owner !== undefined) {
        const field = `domains[${index}].domain`
        throw new RegistryFileError(file, entry.id, field, `${domain} is already listed under ${owner}`)
      }
      owners.set(domain, entry.id)
    })
    if (!known.has(entry.id)) completeEntry(file, entry)
  }
}

/**
 * Removes disabled platforms, changes others in place, and appends new ones in the order of the
 * changes. A domain that the changes assign to a platform is removed from the platform that had it.
 * Changes that were made for an earlier registry may name platforms that this one lacks. They are
 * ignored.
 */
export function mergeChanges(platforms: readonly Platform[], changes: RegistryFile): Platform[] {
  const merged = new Map(platforms.map((platform) => [platform.id, platform]))
  for (const id of changes.disable) merged.delete(id)
  const owners = new Map<string, string>()
  for (const entry of changes.platforms) {
    const platform = changedPlatform(merged.get(entry.id), entry)
    if (platform === undefined) continue
    merged.set(entry.id, platform)
    for (const { domain } of entry.domains ?? []) owners.set(domain, entry.id)
  }
  return [...merged.values()].map((platform) => {
    const domains = platform.domains.filter(({ domain }) => (owners.get(domain) ?? platform.id) === platform.id)
    return domains.length === platform.domains.length ? platform : { ...platform, domains }
  })
}

/**
 * Applies an entry to the known platform. undefined if the entry changes a platform that is not
 * known.
 */
export function changedPlatform(known: Platform | undefined, entry: ChangedEntry): Platform | undefined {
  if (known === undefined) return isCompleteEntry(entry) ? platformOf(entry) : undefined
  const platformType = entry.platform_type ?? known.platformType
  return {
    id: known.id,
    name: entry.name ?? known.name,
    vendor: entry.vendor ?? known.vendor,
    platformType,
    category: PLATFORM_TYPES[platformType].category,
    url: entry.url ?? known.url,
    risk: entry.risk ?? known.risk,
    source: entry.source ?? known.source,
    domains: entry.domains ?? known.domains,
  }
}
