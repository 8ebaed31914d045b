import { z } from 'zod'
import { hostNameFault, patternFault } from './domain-name.ts'
import type { Fact } from './facts.ts'
import { PLATFORM_TYPES, type PlatformType, USE_SPECIFICITY_MIN } from './platform-type.ts'
import type { Provenance } from './provenance.ts'
import type { RiskClass } from './risk-class.ts'
import { line, platformId, webAddress } from './schema-parts.ts'

/**
 * exact: only that host. pattern: `*` is one or more characters within one label. suffix: the name
 * and everything below it.
 */
export const MATCH_KINDS = ['exact', 'pattern', 'suffix'] as const
export type MatchKind = (typeof MATCH_KINDS)[number]

/**
 * What a host serves: a site, a desktop or mobile app, an API, assets and downloads, sign-in,
 * telemetry, documentation.
 */
export const ROLES = ['web', 'app', 'api', 'cdn', 'auth', 'telemetry', 'docs'] as const
export type Role = (typeof ROLES)[number]

/**
 * Why clients request a host:
 *
 *   use         someone uses the platform
 *   widget      a site of another company embeds it, such as a chat with its customers
 *   pixel       a site of another company loads it to measure advertising
 *   background  an operating system, browser or other program requests it without a user
 *   published   someone reads what a customer published with the platform
 *
 * Only `use` is evidence that the platform is in use.
 */
export const PURPOSES = ['use', 'widget', 'pixel', 'background', 'published'] as const
export type Purpose = (typeof PURPOSES)[number]

/** listed: found in a source of the entry. curator: in none; `why` has the reason. */
const EVIDENCE = ['listed', 'curator'] as const
type Evidence = (typeof EVIDENCE)[number]

export interface PlatformDomain {
  readonly domain: string
  readonly match: MatchKind
  readonly role: Role
  /**
   * 0 to 1: how certainly a visit to this host is use of this platform. Below 0.6 the platform is
   * "AI-capable".
   */
  readonly specificity: number
  readonly purpose: Purpose
  readonly evidence: Evidence
  /** The index of the source that lists the domain. Absent: the first. */
  readonly source?: number | undefined
  /** Why a curator added the domain. */
  readonly why?: string | undefined
}

export interface Platform {
  readonly id: string
  readonly name: string
  readonly vendor: string
  readonly platformType: PlatformType
  /** Derived from the platform type and shown by the API. */
  readonly category: string
  readonly url: string
  readonly risk: Risk
  readonly source: readonly string[]
  readonly domains: readonly PlatformDomain[]
  /** Only of built-in platforms. */
  readonly provenance?: Provenance
  /** What the vendor publishes about data and security. Only of built-in platforms. */
  readonly facts?: readonly Fact[]
}

interface Risk {
  /** 0 to 100. */
  readonly score: number
  readonly why: string
  /** Only of built-in platforms: their score is a sum (risk-sum.ts). */
  readonly class?: RiskClass
}

const platformTypes = Object.keys(PLATFORM_TYPES) as [PlatformType, ...PlatformType[]]

const domainEntry = z
  .strictObject({
    domain: z.string(),
    match: z.enum(MATCH_KINDS),
    role: z.enum(ROLES),
    specificity: z.number().gt(0).max(1),
    purpose: z.enum(PURPOSES).default('use'),
    evidence: z.enum(EVIDENCE).default('listed'),
    source: z.int().min(0).optional(),
    why: line(300).optional(),
  })
  .superRefine(({ domain, match, specificity, purpose }, context) => {
    const fault = match === 'pattern' ? patternFault(domain) : hostNameFault(domain)
    if (fault !== undefined)
      context.addIssue({ code: 'custom', path: ['domain'], message: `${JSON.stringify(domain)}: ${fault}` })
    if (purpose === 'use' || specificity < USE_SPECIFICITY_MIN) return
    const message = `expected less than ${USE_SPECIFICITY_MIN} for the purpose ${purpose}`
    context.addIssue({ code: 'custom', path: ['specificity'], message })
  })

/**
 * An entry of registry/platforms/*.yaml and of the operator's file
 * (docs/reference/registry.md).
 */
export const platformEntry = z.strictObject({
  id: platformId,
  name: line(80),
  vendor: line(80),
  platform_type: z.enum(platformTypes),
  url: webAddress,
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
