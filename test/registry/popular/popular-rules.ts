import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rule } from '../../../registry/catalog.ts'
import type { NameMatcher } from '../../../registry/match.ts'
import { USE_SPECIFICITY_MIN } from '../../../registry/platform-type.ts'
import { REPOSITORY } from '../../support/programs.ts'

/*
 * rules.tsv: how many names of public lists of popular names each rule of the registry matches. The
 * file has our own rules and counts, and no name of a list: not every license of a list allows
 * that, and hashes of popular names are as readable as the names.
 */
export const POPULAR_RULES_FILE = join(REPOSITORY, 'test/registry/popular/rules.tsv')
export const UPDATE_COMMAND = 'npm run registry:popular -- LIST...'

export interface PopularRule {
  readonly domain: string
  /** Matched names of the lists for which no narrower rule exists. */
  readonly names: number
  /** Why a rule for use of AI may match popular names. */
  readonly reason: string
}

/** The rules that were compared with the lists. */
export function readPopularRules(text = readFileSync(POPULAR_RULES_FILE, 'utf8')): Map<string, PopularRule> {
  const rows = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    rows.map((row) => {
      const [domain = '', names = '', reason = ''] = row.split('\t')
      return [domain, { domain, names: Number(names), reason }]
    }),
  )
}

/** The names that each rule matches, of a catalog with these rules. */
export function namesByRule(matcher: NameMatcher, names: Iterable<string>): Map<string, string[]> {
  const found = new Map<string, string[]>(matcher.catalog.rules.map(({ domain }) => [domain, []]))
  for (const name of new Set(names)) {
    const rule = matcher.match(name)
    if (rule !== undefined) found.get(rule.domain)?.push(name)
  }
  return found
}

/** A popular name at this specificity is reported as use of AI, so a false match accuses many. */
export function needsReason({ specificity, purpose }: Pick<Rule, 'specificity' | 'purpose'>, names: number): boolean {
  return names > 0 && purpose === 'use' && specificity >= USE_SPECIFICITY_MIN
}

/** Why the rules do not agree with the stored comparison: one line for each rule. */
export function popularFaults(
  rules: readonly Pick<Rule, 'domain' | 'specificity' | 'purpose'>[],
  stored: ReadonlyMap<string, PopularRule>,
): string[] {
  return rules.flatMap((rule) => {
    const row = stored.get(rule.domain)
    const isUse = needsReason(rule, 1)
    if (row === undefined)
      return isUse ? [`${rule.domain}: not compared with popular names; run ${UPDATE_COMMAND}`] : []
    if (!needsReason(rule, row.names) || row.reason !== '') return []
    return [`${rule.domain}: matches ${row.names} popular names as use of AI; write a reason in its row`]
  })
}
