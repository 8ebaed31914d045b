import { domainToASCII } from 'node:url'
import type { Rule } from '../../registry/catalog.ts'
import { isUseOfAi } from '../../registry/contact.ts'
import { hostNameFault } from '../../registry/domain-name.ts'
import { globOf } from '../../registry/glob.ts'
import type { Matcher } from '../../registry/match.ts'
import type { Platform } from '../../registry/platform.ts'
import { USE_SPECIFICITY_MIN } from '../../registry/platform-type.ts'
import { BACKGROUND_HOSTS, SHARED_HOSTS } from '../../registry/quality.ts'
import { BLOCK_LIST_ENTRIES_MAX } from '../limits.ts'
import type { DecisionsInForce } from '../store/decisions.ts'
import type { Organization } from '../store/organizations.ts'
import { SERVICE_WIDE } from '../store/own-platforms.ts'
import type { RegistryInForce } from '../store/registry-in-force.ts'
import type { BlockListSelection } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'

/**
 * Names that a block list must not cover: those that the registry gives to platforms that the list
 * does not block.
 */
class KeptNames {
  /** By the domain of each kept rule, and by each name above one: up to two platforms. */
  readonly #at = new Map<string, Platform[]>()
  readonly #above = new Map<string, Platform[]>()
  /** By the last label, which has no `*`. */
  readonly #patterns = new Map<
    string,
    { readonly labels: readonly ((label: string) => boolean)[]; readonly platform: Platform }[]
  >()
  /** The suffix rules, kept or not, by domain. A kept one has its platform. */
  readonly #suffixes = new Map<string, Platform | undefined>()

  constructor(rules: readonly Rule[], isKept: (rule: Rule) => boolean) {
    for (const rule of rules) {
      const { domain, match, platform } = rule
      const kept = isKept(rule)
      if (match === 'suffix') this.#suffixes.set(domain, kept ? platform : undefined)
      if (!kept) continue
      if (match === 'pattern') this.#addPattern(domain, platform)
      else this.#addName(domain, platform)
    }
  }

  /** Another platform than the given one with a name that is `domain` or below it, if any. */
  otherInTree(domain: string, than: Platform): Platform | undefined {
    return otherOf(this.#at.get(domain), than) ?? this.#namedBelow(domain, 0, than)
  }

  /**
   * Another platform than the given one with a name below `domain`, if any. Unlike a suffix rule,
   * an exact rule or a pattern does not own the names below: a suffix rule at or above `domain`
   * does.
   */
  otherBelow(domain: string, than: Platform): Platform | undefined {
    return this.#namedBelow(domain, 1, than) ?? otherOf(this.#nearestSuffix(domain), than)
  }

  #namedBelow(domain: string, labelsMore: number, than: Platform): Platform | undefined {
    const labels = domain.split('.').reverse()
    const patterns = this.#patterns.get(labels[0] ?? '') ?? []
    const pattern = patterns.find(
      (each) =>
        each.platform.id !== than.id &&
        each.labels.length >= labels.length + labelsMore &&
        labels.every((label, at) => each.labels[at]?.(label)),
    )
    return otherOf(this.#above.get(domain), than) ?? pattern?.platform
  }

  #nearestSuffix(domain: string): Platform[] {
    for (let name = domain; name !== ''; name = parentOf(name)) {
      if (!this.#suffixes.has(name)) continue
      const platform = this.#suffixes.get(name)
      return platform === undefined ? [] : [platform]
    }
    return []
  }

  #addName(domain: string, platform: Platform): void {
    note(this.#at, domain, platform)
    for (let name = parentOf(domain); name !== ''; name = parentOf(name)) note(this.#above, name, platform)
  }

  #addPattern(pattern: string, platform: Platform): void {
    const labels = pattern.split('.').reverse()
    const last = labels[0] ?? ''
    const patterns = this.#patterns.get(last) ?? []
    patterns.push({ labels: labels.map(globOf), platform })
    this.#patterns.set(last, patterns)
  }
}

/** The name without its first label; '' for a single label. */
function parentOf(domain: string): string {
  const dot = domain.indexOf('.')
  return dot < 0 ? '' : domain.slice(dot + 1)
}

/** Two platforms are enough to know whether one is another than a given one. */
function note(index: Map<string, Platform[]>, name: string, platform: Platform): void {
  const known = index.get(name)
  if (known === undefined) index.set(name, [platform])
  else if (known.length < 2 && known[0]?.id !== platform.id) known.push(platform)
}

function otherOf(platforms: readonly Platform[] | undefined, { id }: Platform): Platform | undefined {
  return platforms?.find((each) => each.id !== id)
}

/**
 * Names that an entry of a list blocks. exact: the name. tree: the name and all below it. below:
 * all below it.
 */
export type EntryKind = 'exact' | 'tree' | 'below'

export interface Entry {
  readonly kind: EntryKind
  readonly domain: string
  readonly platform: Platform
}

/** What a format can express. */
export interface FormatReach {
  /** Which entries there are. Where `exact` is missing, an exact rule becomes a tree. */
  readonly kinds: ReadonlySet<EntryKind>
  /** The maximum characters of a name. */
  readonly nameCharsMax: number
}

/** Why a rule for use of a blocked platform is not in the list. */
export const LEFT_OUT = {
  'other-platform': 'would also block a platform that is not to be blocked',
  'shared-host': 'serves many purposes and many customers',
  'own-domain': "would block the organization's own domain",
  pattern: 'is a pattern, which the format cannot express',
  'too-long': 'is too long for the format',
  'invalid-name': 'is not a valid host name',
  limit: `is beyond the ${BLOCK_LIST_ENTRIES_MAX} entries of a list`,
} as const
type LeftOutReason = keyof typeof LEFT_OUT

export interface LeftOutRule {
  readonly rule: Rule
  readonly reason: LeftOutReason
  /** The platform that would be blocked, too. */
  readonly other?: Platform
}

export interface BlockList {
  /** Ordered by domain. */
  readonly entries: readonly Entry[]
  /** The number of platforms to block, whether they have an entry or not. */
  readonly platforms: number
  /** Ordered by domain. */
  readonly leftOut: readonly LeftOutRule[]
  /** Rules for a domain and all names below it of which only the first names are in the list. */
  readonly incomplete: number
}

export interface BlockListSource {
  /** All rules of the organization's registry. */
  readonly rules: readonly Rule[]
  /** Rules of platforms that the organization or the operator removed from the registry. */
  readonly disabledRules: readonly Rule[]
  readonly matcher: Matcher
  readonly decisions: Pick<DecisionsInForce, 'states'>
  /** The domain of the organization. */
  readonly ownDomain: string
}

/** Everything that a list of an organization depends on, from one snapshot of the store. */
export function blockListSource(
  store: Store,
  registry: RegistryInForce,
  { id, domain }: Organization,
  nowMs: number,
): BlockListSource {
  return store.environment.read(() => {
    const { platforms, rules } = registry.catalogOf(id)
    const present = new Set(platforms.map((platform) => platform.id))
    const isDisabled = ({ platform }: Rule): boolean => !present.has(platform.id)
    const disabledRules = [...registry.catalogOf(SERVICE_WIDE).rules, ...registry.base.rules].filter(isDisabled)
    const decisions = store.decisions.inForce(id, nowMs)
    return { rules, disabledRules, matcher: registry.matcherOf(id), decisions, ownDomain: domain }
  })
}

/**
 * The entries of a block list: rules that indicate use of the blocked platforms, and cover no name
 * of another platform, no shared host and not the organization's own domain.
 */
export function blockListOf(source: BlockListSource, selection: BlockListSelection, format: FormatReach): BlockList {
  const { rules, disabledRules, decisions } = source
  const ai = new Set(rules.filter(isUseOfAi).map(({ platform }) => platform))
  const isBlocked = (platform: Platform): boolean => {
    const state = decisions.states.get(platform.id) ?? 'waiting'
    // Software with AI features needs no approval.
    const isChosen = selection.blocks === 'rejected' ? state === 'rejected' : state !== 'approved' && ai.has(platform)
    return isChosen && platform.risk.score >= selection.riskMin
  }
  const blocked = new Map<Platform, boolean>()
  for (const { platform } of rules) if (!blocked.has(platform)) blocked.set(platform, isBlocked(platform))
  const domains = new Set(rules.map(({ domain }) => domain))
  const kept = new KeptNames(
    [...rules, ...disabledRules.filter(({ domain }) => !domains.has(domain))],
    (rule) => blocked.get(rule.platform) !== true || hasOtherUses(rule),
  )
  const maker = new EntryMaker(source, kept, format)
  const wanted = rules.filter((rule) => blocked.get(rule.platform) && isUseOfAi(rule))
  for (const rule of wanted) maker.add(rule)
  return { ...maker.result(), platforms: [...blocked.values()].filter((each) => each).length }
}

/** Whether people need the host who do not use the platform. Nobody needs a pixel. */
function hasOtherUses({ specificity, purpose }: Rule): boolean {
  return specificity < USE_SPECIFICITY_MIN && purpose !== 'pixel' && purpose !== 'background'
}

class EntryMaker {
  readonly #source: BlockListSource
  readonly #kept: KeptNames
  readonly #format: FormatReach
  readonly #entries = new Map<string, { readonly entry: Entry; readonly rule: Rule }>()
  readonly #leftOut: LeftOutRule[] = []
  #incomplete = 0

  constructor(source: BlockListSource, kept: KeptNames, format: FormatReach) {
    this.#source = source
    this.#kept = kept
    this.#format = format
  }

  add(rule: Rule): void {
    const { domain, platform } = rule
    const name = rule.match === 'pattern' ? parentOfWildcard(domain) : domain
    const kind = this.#kindOf(rule)
    if (name === undefined || kind === undefined) return this.#leave(rule, 'pattern')
    if (!isSafeName(name)) return this.#leave(rule, 'invalid-name')
    const reason = this.#reasonAgainst(name, kind)
    if (reason !== undefined) return this.#leave(rule, reason)
    if (kind === 'exact') return this.#addExact(rule)
    const other =
      rule.match === 'suffix' ? this.#kept.otherInTree(name, platform) : this.#kept.otherBelow(name, platform)
    if (other !== undefined) return this.#leave(rule, 'other-platform', other)
    this.#put(rule, { kind, domain: name, platform })
  }

  #addExact(rule: Rule): void {
    const { domain: name, platform } = rule
    // An exact rule takes precedence. Names of a suffix rule may be those of a narrower one.
    const names = rule.match === 'exact' ? [name] : [name, `www.${name}`]
    const own = names.filter((each) => this.#source.matcher.match(each)?.platform.id === platform.id)
    if (own.length === 0) return this.#leave(rule, 'other-platform', this.#source.matcher.match(name)?.platform)
    if (rule.match !== 'exact') this.#incomplete++
    for (const each of own) {
      if (this.#reasonAgainst(each, 'exact') === undefined) this.#put(rule, { kind: 'exact', domain: each, platform })
    }
  }

  /** The kind of entry that covers the names of a rule. undefined: the format has none. */
  #kindOf({ match }: Rule): EntryKind | undefined {
    const { kinds } = this.#format
    if (match === 'pattern') return kinds.has('below') ? 'below' : undefined
    if (match === 'suffix') return kinds.has('tree') ? 'tree' : 'exact'
    return kinds.has('exact') ? 'exact' : 'tree'
  }

  #reasonAgainst(name: string, kind: EntryKind): LeftOutReason | undefined {
    if (name.length > this.#format.nameCharsMax) return 'too-long'
    const covers = (host: string): boolean =>
      kind === 'exact' ? host === name : host.endsWith(`.${name}`) || (kind === 'tree' && host === name)
    if (covers(this.#source.ownDomain)) return 'own-domain'
    // All names below a shared host belong to somebody, but a part of them may be one platform.
    if (SHARED_HOSTS.has(name) || BACKGROUND_HOSTS.has(name)) return 'shared-host'
    if (kind !== 'exact' && SHARED_PARENTS.has(name)) return 'shared-host'
    return undefined
  }

  #put(rule: Rule, entry: Entry): void {
    this.#entries.set(`${entry.domain} ${entry.kind}`, { entry, rule })
  }

  #leave(rule: Rule, reason: LeftOutReason, other?: Platform): void {
    this.#leftOut.push({ rule, reason, ...(other === undefined ? {} : { other }) })
  }

  result(): Omit<BlockList, 'platforms'> {
    // Programs complain about names below a name that is listed with all names below it.
    const needed = [...this.#entries.values()].filter(({ entry }) => !this.#isCovered(entry))
    if (needed.length > BLOCK_LIST_ENTRIES_MAX) {
      needed.sort((a, b) => b.entry.platform.risk.score - a.entry.platform.risk.score || byDomain(a.entry, b.entry))
      for (const { rule } of needed.splice(BLOCK_LIST_ENTRIES_MAX)) this.#leave(rule, 'limit')
    }
    return {
      entries: needed.map(({ entry }) => entry).sort(byDomain),
      leftOut: this.#leftOut.sort((a, b) => byDomain(a.rule, b.rule)),
      incomplete: this.#incomplete,
    }
  }

  #isCovered({ domain, kind }: Entry): boolean {
    if (kind !== 'tree' && this.#entries.has(`${domain} tree`)) return true
    for (let name = parentOf(domain); name !== ''; name = parentOf(name)) {
      if (this.#entries.has(`${name} tree`) || this.#entries.has(`${name} below`)) return true
    }
    return false
  }
}

/** The parents of shared hosts and of hosts that programs request in the background. */
const SHARED_PARENTS: ReadonlySet<string> = new Set([...SHARED_HOSTS, ...BACKGROUND_HOSTS].flatMap(parentsOf))

function parentsOf(domain: string): string[] {
  const parent = parentOf(domain)
  return parent === '' ? [] : [parent, ...parentsOf(parent)]
}

/** `hf.space` of the pattern `*.hf.space`. undefined for every other pattern. */
function parentOfWildcard(pattern: string): string | undefined {
  const parent = pattern.startsWith('*.') ? pattern.slice(2) : undefined
  return parent?.includes('*') ? undefined : parent
}

/**
 * The text is part of other programs' configurations, so the check is made again where it is
 * written: letters, digits and hyphens in labels, and A-labels that decode (RFC 5891 §4.4).
 */
function isSafeName(name: string): boolean {
  return hostNameFault(name) === undefined && (!name.includes('xn--') || domainToASCII(name) === name)
}

function byDomain(a: { readonly domain: string }, b: { readonly domain: string }): number {
  return a.domain < b.domain ? -1 : a.domain > b.domain ? 1 : 0
}
