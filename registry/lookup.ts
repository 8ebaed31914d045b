import type { Catalog, Rule } from './catalog.ts'
import { compileTrie } from './compile-trie.ts'
import { DomainTrie, NO_MATCH } from './domain-trie.ts'
import { ruleOfName } from './infer-role.ts'
import { MATCH_KINDS, type MatchKind, type Platform, PURPOSES, type Purpose, ROLES, type Role } from './platform.ts'
import { PLATFORM_TYPES, type PlatformType } from './platform-type.ts'

/**
 * Queries of `posture-admin registry ...`. Strings are acceptable here, because no query runs per
 * packet.
 */
export class Lookup {
  readonly #catalog: Catalog
  readonly #trie: DomainTrie

  constructor(catalog: Catalog) {
    this.#catalog = catalog
    this.#trie = new DomainTrie(compileTrie(catalog.rules))
  }

  /**
   * Returns the rule that the collector would match, with the role of the name (infer-role.ts), or
   * undefined for names without a platform and invalid host names.
   */
  check(name: string): Rule | undefined {
    const bytes = Buffer.from(name, 'utf8')
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const index = this.#trie.matchDotted(view, 0, bytes.byteLength)
    const rule = this.#catalog.rules[index]
    return index === NO_MATCH || rule === undefined ? undefined : ruleOfName(rule, name)
  }

  /** Returns the platform with this ID, or undefined. */
  show(id: string): Platform | undefined {
    return this.#catalog.platforms.find((platform) => platform.id === id)
  }

  /**
   * Returns platforms that contain the text, in any case, in ID, name, vendor, type, category or a
   * domain. Those that begin with the text come first.
   */
  search(text: string): Platform[] {
    const wanted = text.trim().toLowerCase()
    if (wanted === '') return []
    const found = this.#catalog.platforms
      .map((platform) => ({ platform, rank: matchRank(platform, wanted) }))
      .filter(({ rank }) => rank < NOWHERE)
    return found.sort((a, b) => a.rank - b.rank).map(({ platform }) => platform)
  }
}

/** Totals of a catalog. */
export interface CatalogStats {
  readonly platforms: number
  readonly domains: number
  readonly vendors: number
  readonly byType: Readonly<Record<PlatformType, { platforms: number; domains: number }>>
  readonly byMatch: Readonly<Record<MatchKind, number>>
  readonly byRole: Readonly<Record<Role, number>>
  readonly byPurpose: Readonly<Record<Purpose, number>>
}

export function catalogStats({ platforms, rules }: Catalog): CatalogStats {
  const byType = Object.fromEntries(
    Object.keys(PLATFORM_TYPES).map((type) => [type, { platforms: 0, domains: 0 }]),
  ) as Record<PlatformType, { platforms: number; domains: number }>
  const byMatch = zeros(MATCH_KINDS)
  const byRole = zeros(ROLES)
  const byPurpose = zeros(PURPOSES)
  for (const { platformType } of platforms) byType[platformType].platforms++
  for (const { platform, match, role, purpose } of rules) {
    byType[platform.platformType].domains++
    byMatch[match]++
    byRole[role]++
    byPurpose[purpose]++
  }
  const vendors = new Set(platforms.map(({ vendor }) => vendor)).size
  return { platforms: platforms.length, domains: rules.length, vendors, byType, byMatch, byRole, byPurpose }
}

function zeros<Key extends string>(keys: readonly Key[]): Record<Key, number> {
  return Object.fromEntries(keys.map((key) => [key, 0])) as Record<Key, number>
}

const NOWHERE = 3

/**
 * Returns 0 if the ID or name begins with the text, 1 if they or the vendor contain it, 2 if type,
 * category or a domain does.
 */
function matchRank(platform: Platform, wanted: string): number {
  const { id, name, vendor, platformType, category, domains } = platform
  const names = [id, name.toLowerCase()]
  if (names.some((text) => text.startsWith(wanted))) return 0
  if ([...names, vendor.toLowerCase()].some((text) => text.includes(wanted))) return 1
  const others = [platformType, category.toLowerCase(), ...domains.map(({ domain }) => domain)]
  return others.some((text) => text.includes(wanted)) ? 2 : NOWHERE
}
