import { type AccessKind, accessOf } from '../../registry/contact.ts'
import { ruleOfName } from '../../registry/infer-role.ts'
import type { Matcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import { DistinctClients } from './distinct-clients.ts'
import type { Evidence } from './evidence.ts'

/** Maximum names that a finding shows as the evidence of each kind of access. */
export const ACCESS_NAMES_MAX = 3
/** Names of a platform that are looked up for it, those with the most matches. */
const NAMES_READ_MAX = 64

/** A kind of access to a platform, with the matches and names that show it. */
export interface FoundAccess {
  readonly kind: AccessKind
  readonly matches: number
  /** The most frequent ones. */
  readonly names: readonly string[]
}

/** How a platform was used. Most matches first. */
export function accessFound(platform: Platform, { byAccess, byName }: Evidence, matcher: Matcher): FoundAccess[] {
  const found = mostFrequent(byAccess).map(([kind, matches]) => ({ kind, matches, names: [] as string[] }))
  let left = found.length * ACCESS_NAMES_MAX
  let read = 0
  for (const [name] of mostFrequent(byName)) {
    if (left === 0 || read++ === NAMES_READ_MAX) break
    const kind = accessOfName(platform, name, matcher)
    const names = found.find((access) => access.kind === kind)?.names
    if (names === undefined || names.length === ACCESS_NAMES_MAX) continue
    names.push(name)
    left--
  }
  return found
}

function accessOfName(platform: Platform, name: string, matcher: Matcher): AccessKind | undefined {
  const rule = matcher.match(name)
  // The name may be another platform's since the evidence was stored.
  return rule?.platform.id === platform.id ? accessOf(ruleOfName(rule, name)) : undefined
}

export function mostFrequent<K extends string>(counts: ReadonlyMap<K, number>): (readonly [K, number])[] {
  const entries = [...counts]
  // Most platforms have one name. Even then sort() would copy.
  return entries.length < 2 ? entries : entries.sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
}

/**
 * The number of clients that used the API of a platform, and no site or app of its vendor: programs
 * without a person at a browser. By the id of each platform whose API was used.
 */
export function programmaticClients(evidence: ReadonlyMap<Platform, Evidence>): Map<string, number> {
  const vendors = new Set([...evidence].flatMap(([{ vendor }, { byAccess }]) => (byAccess.has('api') ? vendor : [])))
  const interactive = new Map<string, DistinctClients>()
  for (const [{ vendor }, found] of evidence) {
    if (!vendors.has(vendor)) continue
    const sum = interactive.get(vendor) ?? new DistinctClients()
    sum.merge(found.interactive)
    interactive.set(vendor, sum)
  }
  const counts = new Map<string, number>()
  for (const [{ id, vendor }, { api, byAccess }] of evidence) {
    if (!byAccess.has('api')) continue
    const others = interactive.get(vendor) ?? new DistinctClients()
    const all = others.clone()
    all.merge(api)
    // Of estimates, the difference may be greater than the part.
    counts.set(id, Math.max(0, Math.min(api.estimate, all.estimate - others.estimate)))
  }
  return counts
}
