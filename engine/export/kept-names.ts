import type { Rule } from '../../registry/catalog.ts'
import { globOf } from '../../registry/glob.ts'
import type { Platform } from '../../registry/platform.ts'

/**
 * Names that a block list must not cover: those that the registry gives to platforms that the list
 * does not block.
 */
export class KeptNames {
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
export function parentOf(domain: string): string {
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
