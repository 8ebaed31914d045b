import { z } from 'zod'
import { dataVersion } from './data-version-schema.ts'
import { FACT_KINDS, type Fact } from './facts.ts'
import { type Platform, platformEntry, platformOf } from './platform.ts'
import { type Provenance, STATUSES } from './provenance.ts'
import { riskClass } from './risk-class.ts'
import { riskTerms, sumOf } from './risk-sum.ts'
import { countryCode, isoDay, line, webAddress } from './schema-parts.ts'

/*
 * The schema of registry.json in the data package. Fields that this program does not know, and
 * facts of unknown kinds, are ignored. A type of platform or a field of a domain that it does not
 * know rejects the release: the form must change with these.
 */
export const DATA_FORM = 1
const PLATFORMS_MAX = 100_000

const provenance = z.object({
  status: z.enum(STATUSES),
  note: line(300).optional(),
  checked: isoDay,
  vendorUrl: webAddress,
  country: countryCode.optional(),
  sources: z.array(z.object({ url: webAddress, seen: isoDay })).max(100),
})

const fact = z.object({
  kind: line(40),
  value: z.union([line(300), z.number()]),
  plan: line(80).optional(),
  source: webAddress,
  via: webAddress.optional(),
  date: isoDay,
})

const { risk } = platformEntry.shape
const releasedPlatform = z
  .object({
    ...platformEntry.shape,
    source: z.array(line(300)).max(1000),
    /** Of a class that this program does not know, the score counts, without terms. */
    risk: z.object({ ...risk.shape, class: riskClass.optional().catch(undefined) }),
    provenance: provenance.optional(),
    facts: z.array(fact).max(1000).optional(),
  })
  .transform((entry): Platform => {
    const facts = entry.facts?.filter(({ kind }) => (FACT_KINDS as readonly string[]).includes(kind))
    const { score, why, class: known } = entry.risk
    return {
      ...platformOf(entry),
      risk: known ? { score: sumOf(riskTerms(known, (facts ?? []) as Fact[])), why, class: known } : { score, why },
      ...(entry.provenance && { provenance: entry.provenance as Provenance }),
      ...(facts && facts.length > 0 && { facts: facts as Fact[] }),
    }
  })

export const releasedData = z
  .object({
    form: z.literal(DATA_FORM, 'is a later form; update the program first'),
    version: dataVersion,
    platforms: z.array(releasedPlatform).min(1).max(PLATFORMS_MAX),
  })
  .superRefine(({ platforms }, context) => {
    const seen = new Set<string>()
    // IDs have no dot and domains have one, so one set holds both.
    for (const name of platforms.flatMap(({ id, domains }) => [id, ...domains.map(({ domain }) => domain)])) {
      if (seen.has(name)) context.addIssue({ code: 'custom', path: ['platforms'], message: `${name} occurs twice` })
      seen.add(name)
    }
  })

/** The platforms of a release of the registry, without the changes of the operator. */
export interface ReleasedData {
  readonly version: string
  readonly platforms: readonly Platform[]
}
