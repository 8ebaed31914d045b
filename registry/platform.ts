import { z } from 'zod'
import { hostNameFault, patternFault } from './domain-name.ts'
import { PLATFORM_TYPES, type PlatformType } from './platform-type.ts'

/**
 * exact: only that host. pattern: `*` is one or more characters within one label. suffix: the name
 * and everything below it.
 */
export const MATCH_KINDS = ['exact', 'pattern', 'suffix'] as const
export type MatchKind = (typeof MATCH_KINDS)[number]

/**
 * The purpose of a host: site or app, API, assets and downloads, sign-in, telemetry, documentation.
 */
export const ROLES = ['web', 'api', 'cdn', 'auth', 'telemetry', 'docs'] as const
export type Role = (typeof ROLES)[number]

/**
 * listed: found in a source of the entry. vendor: the name contains the name of the platform or
 * vendor, or is below a listed domain.
 */
export const EVIDENCE = ['listed', 'vendor'] as const
export type Evidence = (typeof EVIDENCE)[number]

export interface PlatformDomain {
  readonly domain: string
  readonly match: MatchKind
  readonly role: Role
  /**
   * 0 to 1: how certainly a visit to this host is use of this platform. Below 0.6 the platform is
   * "AI-capable".
   */
  readonly specificity: number
  readonly evidence: Evidence
}

export interface Platform {
  readonly id: string
  readonly name: string
  readonly vendor: string
  readonly platformType: PlatformType
  /** Derived from the platform type and shown by the API. */
  readonly category: string
  readonly url: string
  readonly risk: { readonly score: number; readonly why: string }
  readonly source: readonly string[]
  readonly domains: readonly PlatformDomain[]
}

const line = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line without control characters')

const platformTypes = Object.keys(PLATFORM_TYPES) as [PlatformType, ...PlatformType[]]

const domainEntry = z
  .strictObject({
    domain: z.string(),
    match: z.enum(MATCH_KINDS),
    role: z.enum(ROLES),
    specificity: z.number().gt(0).max(1),
    evidence: z.enum(EVIDENCE).default('listed'),
  })
  .superRefine(({ domain, match }, context) => {
    const fault = match === 'pattern' ? patternFault(domain) : hostNameFault(domain)
    if (fault !== undefined)
      context.addIssue({ code: 'custom', path: ['domain'], message: `${JSON.stringify(domain)}: ${fault}` })
  })

/** The ID of a platform, also the key by which operators override or disable it. */
export const platformId = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be lower-case words joined by single hyphens')

/**
 * An entry of registry/platforms/*.yaml and of the operator's file
 * (docs/reference/registry-file.md).
 */
export const platformEntry = z.strictObject({
  id: platformId,
  name: line(80),
  vendor: line(80),
  platform_type: z.enum(platformTypes),
  url: z.url({ protocol: /^https?$/ }).max(2000),
  risk: z.strictObject({ score: z.int().min(0).max(100), why: line(300) }),
  source: z.array(line(300)).min(1),
  domains: z.array(domainEntry).min(1).max(100_000),
})
export type PlatformEntry = z.infer<typeof platformEntry>

export function platformOf(entry: PlatformEntry): Platform {
  const { id, name, vendor, url, risk, source, domains } = entry
  const { category } = PLATFORM_TYPES[entry.platform_type]
  return { id, name, vendor, platformType: entry.platform_type, category, url, risk, source, domains }
}
