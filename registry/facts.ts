import { z } from 'zod'
import { isoDay, line, platformId, webAddress } from './schema-parts.ts'

/**
 * Whether content of users trains models: never; only if they agree; unless they object; always.
 */
export const TRAINING = ['no', 'opt_in', 'opt_out', 'yes'] as const

const yes = z.literal('yes')

/** What vendors publish about data and security, by kind. */
const factValues = z
  .strictObject({
    trains_on_content: z.enum(TRAINING),
    /** Days that content is kept after its use; 0 is not at all. */
    retention_days: z.int().min(0).max(36_500),
    /** A country code, or EU. */
    hosting_country: z.string().regex(/^[A-Z]{2}$/),
    soc2: yes,
    iso27001: yes,
    iso42001: yes,
    fedramp: yes,
    /** A data processing agreement. */
    dpa: yes,
    enterprise_tier: yes,
    sso: yes,
    /** The HTTP header by which a proxy allows only the accounts of its organization. */
    tenant_restriction: line(80),
    minimum_age: z.int().min(0).max(21),
  })
  .partial()
type FactValues = z.infer<typeof factValues>
export type FactKind = keyof FactValues
export const FACT_KINDS = Object.keys(factValues.shape) as readonly FactKind[]

export interface Fact {
  readonly kind: FactKind
  readonly value: string | number
  /** The plans that the fact is about. Absent: all. */
  readonly plan?: string
  /** The vendor's page. */
  readonly source: string
  /** The dated record in which the page was read, if not the page itself. */
  readonly via?: string
  readonly date: string
}

/** An entry of registry/facts/*.yaml: what one page states about one platform or several. */
export const factEntry = z.strictObject({
  platforms: z.array(platformId).min(1),
  plan: line(80).optional(),
  source: webAddress,
  via: webAddress.optional(),
  date: isoDay,
  facts: factValues.refine((facts) => Object.keys(facts).length > 0, 'needs at least one fact'),
})
export type FactEntry = z.infer<typeof factEntry>

/** The facts of each platform, in the order of the kinds. */
export function factsByPlatform(entries: readonly FactEntry[]): Map<string, Fact[]> {
  const found = new Map<string, Fact[]>()
  for (const kind of FACT_KINDS) {
    for (const { platforms, plan, source, via, date, facts } of entries) {
      const value = facts[kind]
      if (value === undefined) continue
      const fact = { kind, value, ...(plan && { plan }), source, ...(via && { via }), date }
      for (const id of platforms) found.set(id, [...(found.get(id) ?? []), fact])
    }
  }
  return found
}
