import { changedPlatform, checkChanges, mergeChanges } from './catalog.ts'
import type { Platform, PlatformDomain } from './platform.ts'
import { qualityReport } from './quality.ts'
import { lineOfError, type RegistryFile, RegistryFileError, readRegistryEntries } from './registry-file.ts'

/** A problem in a registry file. An error rejects the file, a warning does not. */
export interface FileProblem {
  readonly severity: 'error' | 'warning'
  /** From 1; undefined if the problem has no line. */
  readonly line: number | undefined
  /** A platform's ID or position; '' if the problem is in the whole file. */
  readonly entry: string
  /** Such as `domains[0].match`, or a domain. */
  readonly field: string
  readonly problem: string
}

/** The differences that one entry of a file makes to the registry. */
export interface EntryDifference {
  readonly platformId: string
  readonly name: string
  readonly change: 'added' | 'changed' | 'disabled' | 'domain lost' | 'removed'
  /** The field, or `domains`. */
  readonly field: string
  readonly before: string
  readonly after: string
}

/**
 * All problems of a registry file that changes `platforms`. Warnings are those of the quality
 * report about platforms that the file names. They appear only in a file without errors.
 */
export function fileProblems(file: string, text: string, platforms: readonly Platform[]): FileProblem[] {
  const { changes, errors } = readRegistryEntries(file, text)
  const problemOf = (error: RegistryFileError): FileProblem => {
    const { entry, field, problem } = error
    return { severity: 'error', line: lineOfError(text, error), entry, field, problem }
  }
  if (changes === undefined) return errors.map(problemOf)
  try {
    checkChanges(platforms, file, changes)
  } catch (error) {
    if (error instanceof RegistryFileError) return [problemOf(error)]
    throw error
  }
  const named = new Set(changes.platforms.map(({ id }) => id))
  return qualityReport(mergeChanges(platforms, changes), () => false)
    .filter(({ platform }) => named.has(platform))
    .map(({ platform, domain, finding }) => {
      const line = lineOfError(text, new RegistryFileError(file, platform, '', finding))
      return { severity: 'warning', line, entry: platform, field: domain, problem: finding }
    })
}

/** What a checked file changes. Domains that a platform loses to another one are a difference. */
export function fileDifferences(platforms: readonly Platform[], changes: RegistryFile): EntryDifference[] {
  const known = new Map(platforms.map((platform) => [platform.id, platform]))
  const named = new Set(changes.platforms.map(({ id }) => id))
  const disabled = changes.disable.flatMap((id): EntryDifference[] => {
    const platform = known.get(id)
    return platform === undefined
      ? []
      : [difference(platform, 'disabled', 'domains', domainsText(platform.domains), '')]
  })
  const changed = changes.platforms.flatMap((entry): EntryDifference[] => {
    const before = known.get(entry.id)
    const after = changedPlatform(before, entry)
    if (after === undefined) return []
    if (before === undefined) return [difference(after, 'added', 'domains', '', domainsText(after.domains))]
    return FIELDS.flatMap((field) => {
      const [was, is] = [fieldText(before, field), fieldText(after, field)]
      return was === is ? [] : [difference(after, 'changed', field, was, is)]
    })
  })
  const lost = mergeChanges(platforms, changes).flatMap((after): EntryDifference[] => {
    const before = known.get(after.id)
    if (before === undefined || named.has(after.id) || before.domains.length === after.domains.length) return []
    const kept = new Set(after.domains.map(({ domain }) => domain))
    const gone = before.domains.filter(({ domain }) => !kept.has(domain))
    return [difference(after, 'domain lost', 'domains', domainsText(gone), '')]
  })
  return [...disabled, ...changed, ...lost]
}

/** What another release of the registry's data changes. */
export function dataDifferences(before: readonly Platform[], after: readonly Platform[]): EntryDifference[] {
  const present = new Set(after.map(({ id }) => id))
  const disable = before.filter(({ id }) => !present.has(id)).map(({ id }) => id)
  const platforms = after.map(({ platformType: platform_type, source, domains, id, name, vendor, url, risk }) => {
    return { id, name, vendor, platform_type, url, risk, source: [...source], domains: [...domains] }
  })
  return fileDifferences(before, { platforms, disable }).map((difference) => {
    return difference.change === 'disabled' ? { ...difference, change: 'removed' } : difference
  })
}

const FIELDS = ['name', 'vendor', 'platformType', 'url', 'risk', 'source', 'domains'] as const

function difference(
  { id: platformId, name }: Platform,
  change: EntryDifference['change'],
  field: string,
  before: string,
  after: string,
): EntryDifference {
  return { platformId, name, change, field, before, after }
}

function fieldText(platform: Platform, field: (typeof FIELDS)[number]): string {
  switch (field) {
    case 'risk':
      return `${platform.risk.score}: ${platform.risk.why}`
    case 'source':
      return platform.source.join(', ')
    case 'domains':
      return domainsText(platform.domains)
    default:
      return platform[field]
  }
}

function domainsText(domains: readonly PlatformDomain[]): string {
  return domains
    .map(({ domain, match, role, specificity, purpose }) => {
      return `${domain} (${[match, role, specificity, ...(purpose === 'use' ? [] : [purpose])].join(', ')})`
    })
    .join(', ')
}
