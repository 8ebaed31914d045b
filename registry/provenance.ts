import { z } from 'zod'
import { countryCode, isoDay, line, webAddress } from './schema-parts.ts'

/** active: in use. renamed: continues under another name or owner. ended: the service is closed. */
export const STATUSES = ['active', 'renamed', 'ended'] as const
type Status = (typeof STATUSES)[number]

/** A public page that names a host, and the day of the version that was read. */
export interface Source {
  readonly url: string
  readonly seen: string
}

/** Where the data of a built-in platform comes from. */
export interface Provenance {
  readonly status: Status
  /** What happened to a platform that is not active. */
  readonly note?: string
  /** The day on which the entry was compared with its sources. */
  readonly checked: string
  readonly vendorUrl: string
  /** The country of the legal entity. Absent if no source states it. */
  readonly country?: string
  /** In the order of the platform's `source`. */
  readonly sources: readonly Source[]
}

/** The fields of a built-in entry that an operator's file does not have. */
export const provenanceFields = {
  status: z.enum(STATUSES).default('active'),
  status_note: line(300).optional(),
  checked: isoDay,
  source: z.array(line(300)),
}

/** An entry of registry/sources.yaml: a repository that `source` names. */
export const repositoryEntry = z.strictObject({
  repository: z.string().regex(/^[\w.-]+\/[\w.-]+$/, 'must be owner/name'),
  commit: z.string().regex(/^[0-9a-f]{40}$/),
  seen: isoDay,
  license: line(40),
})
export type Repositories = ReadonlyMap<string, z.infer<typeof repositoryEntry>>

/**
 * An entry of registry/vendors.yaml: a vendor of several platforms, or one whose country is known.
 * `basis` is the page that states the country.
 */
export const vendorEntry = z
  .strictObject({
    vendor: line(80),
    url: webAddress.optional(),
    country: countryCode.optional(),
    basis: webAddress.optional(),
  })
  .refine(({ country, basis }) => (country === undefined) === (basis === undefined), 'a country needs a basis')
export type Vendors = ReadonlyMap<string, z.infer<typeof vendorEntry>>

const ADDRESS_AND_DAY = /^(https:\/\/\S+) (\d{4}-\d{2}-\d{2})$/
const REPOSITORY_AND_PATH = /^([\w.-]+\/[\w.-]+):(.+)$/

/**
 * The source that a line of `source` means: `https://vendor.example/page 2026-07-11`, or
 * `owner/name:path` of a repository in sources.yaml. undefined for any other line.
 */
export function sourceOf(text: string, repositories: Repositories): Source | undefined {
  const [, address, day] = ADDRESS_AND_DAY.exec(text) ?? []
  if (address !== undefined && day !== undefined) return { url: address, seen: day }
  const [, name, path] = REPOSITORY_AND_PATH.exec(text) ?? []
  const repository = name === undefined ? undefined : repositories.get(name)
  if (repository === undefined || path === undefined) return undefined
  const { commit, seen } = repository
  return { url: `https://github.com/${name}/blob/${commit}/${encodeURI(path)}`, seen }
}

/** The vendor's site if the file has none: the site of the platform. */
export function siteOf(url: string): string {
  return new URL(url).origin
}
