import type { Platform } from '../../registry/platform.ts'
import { type ChangedEntry, isCompleteEntry, type RegistryFile } from '../../registry/registry-file.ts'

/**
 * The service-wide changes and an organization's own ones as one registry file, which a collector
 * applies to its built-in registry. Where both change a platform, the organization's fields take
 * precedence, and so do the domains that it gives to a platform.
 */
export function registryFileOf(
  builtIn: readonly Platform[],
  serviceWide: RegistryFile,
  own: RegistryFile,
): { platforms: ChangedEntry[]; disable: string[] } {
  const known = new Set(builtIn.map(({ id }) => id))
  const disabled = new Set([...serviceWide.disable, ...own.disable])
  const entries = new Map<string, ChangedEntry>()
  const taken = new Set(own.platforms.flatMap((entry) => (entry.domains ?? []).map(({ domain }) => domain)))
  for (const entry of serviceWide.platforms) {
    const domains = entry.domains?.filter(({ domain }) => !taken.has(domain))
    entries.set(entry.id, domains === undefined ? entry : { ...entry, domains })
  }
  for (const entry of own.platforms) {
    disabled.delete(entry.id)
    entries.set(entry.id, { ...entries.get(entry.id), ...entry })
  }
  for (const [id, entry] of entries) {
    // A platform that lost every domain is none.
    if (entry.domains?.length === 0) disabled.add(id)
    // What changed a platform of an earlier registry changes nothing now.
    else if (!known.has(id) && !isCompleteEntry(entry)) entries.delete(id)
  }
  const platforms = [...entries.values()].filter(({ id }) => !disabled.has(id))
  return { platforms, disable: [...disabled].filter((id) => known.has(id)).sort() }
}
