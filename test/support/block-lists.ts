import type { BlockListSource } from '../../engine/export/block-list.ts'
import type { BlockListFormat } from '../../engine/export/block-list-text.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import { catalogOf } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { Platform, PlatformDomain } from '../../registry/platform.ts'

/** Whether a product with this list blocks a name, as its documentation says. */
export function blocks(format: BlockListFormat, text: string): (name: string) => boolean {
  const exact = new Set<string>()
  const below = new Set<string>()
  const add = (domain: string, ...sets: readonly Set<string>[]) => {
    for (const set of sets) set.add(domain)
  }
  for (const line of text.split('\n')) {
    const exactName = EXACT_LINE.exec(line)
      ?.slice(1)
      .find((each) => each !== undefined)
    if (exactName !== undefined) add(exactName, exact)
    const name = LINE_OF[format].exec(line)?.[1]
    if (name === undefined) continue
    const isWild = name.startsWith('*.')
    if (['rpz', 'edl', 'fortigate', 'pan'].includes(format)) add(isWild ? name.slice(2) : name, isWild ? below : exact)
    else if (format === 'hosts') add(name, exact)
    else if (format !== 'squid') add(name, exact, below)
    else if (name.startsWith('.')) add(name.slice(1), exact, below)
    else add(name, exact)
  }
  return (name) => {
    if (exact.has(name)) return true
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      if (below.has(name.slice(dot + 1))) return true
    }
    return false
  }
}

/** Of formats with other lines for a domain and all names below it. */
const EXACT_LINE = /^(?: {4}local-data: "([a-z0-9.-]+)\. A 0\.0\.0\.0"|host-record=([a-z0-9.-]+),0\.0\.0\.0,::)$/
const PLAIN = /^([*a-z0-9.][a-z0-9.-]*)$/
const LINE_OF: Readonly<Record<BlockListFormat, RegExp>> = {
  rpz: /^([*a-z0-9.-]+) CNAME \.$/,
  hosts: /^0\.0\.0\.0 ([a-z0-9.-]+)$/,
  unbound: /^ {4}local-zone: "([a-z0-9.-]+)\." always_nxdomain$/,
  dnsmasq: /^address=\/([a-z0-9.-]+)\/$/,
  squid: PLAIN,
  edl: PLAIN,
  adblock: /^\|\|([a-z0-9.-]+)\^$/,
  fortigate: PLAIN,
  pan: PLAIN,
}

/** A platform of a small registry. */
export function testPlatform(id: string, risk: number, domains: readonly Partial<PlatformDomain>[]): Platform {
  return {
    ...{ id, name: id.toUpperCase(), vendor: id, platformType: 'llm_chat', category: '', url: `https://${id}.example` },
    risk: { score: risk, why: 'a test' },
    source: ['a test'],
    domains: domains.map((domain) => {
      return {
        domain: '',
        match: 'suffix',
        role: 'web',
        specificity: 0.95,
        purpose: 'use',
        evidence: 'listed',
        ...domain,
      }
    }),
  }
}

/** What a list is made from: a small registry, and the decisions about its platforms. */
export function sourceOf(
  platforms: readonly Platform[],
  states: Readonly<Record<string, DecisionState>> = {},
  more: Partial<BlockListSource> = {},
): BlockListSource {
  const catalog = catalogOf(platforms)
  return {
    rules: catalog.rules,
    disabledRules: [],
    matcher: more.matcher ?? new NameMatcher(catalog),
    decisions: { states: new Map(Object.entries(states)) },
    ownDomain: 'acme.example',
    ...more,
  }
}
