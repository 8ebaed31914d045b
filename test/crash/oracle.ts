import { writeFileSync } from 'node:fs'
import { Evidence } from '../../engine/scan/evidence.ts'
import { ClientSum } from '../../engine/store/client-sum.ts'
import type { Store } from '../../engine/store/store.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'
import type { Random } from '../fuzz/random.ts'
import { ipFrame, udp } from '../support/packets.ts'
import { dnsQuery } from '../support/packets-dns.ts'
import { framesAt, pcapFile } from '../support/packets-pcap.ts'

const AI_DOMAINS = ['chatgpt.com', 'claude.ai', 'gemini.google.com', 'chat.deepseek.com', 'perplexity.ai', 'openai.com']
/**
 * Less than the limits for names per platform and day and for exact client counts, so the evidence
 * identifies each client.
 */
const CLIENTS = 50
/**
 * A name that only one client looks up: `c7.claude.ai`. The count of the name is the count of its
 * client.
 */
const nameOf = (client: number, domain: string): string => `c${client}.${domain}`

/** Number of lookups per name: platform ID -> name -> matches. */
export type Matches = ReadonlyMap<string, ReadonlyMap<string, number>>

/** Writes capture files and records the expected matches. */
export class Oracle {
  queries = 0
  matches = 0
  readonly #frames: readonly {
    readonly bytes: Buffer
    readonly name: string
    readonly platformId: string | undefined
  }[]
  readonly #expected = new Map<string, Map<string, number>>()

  constructor() {
    const matcher = new NameMatcher(loadCatalog())
    this.#frames = Array.from({ length: CLIENTS }, (_client, client) => {
      const domains = [...AI_DOMAINS, ...AI_DOMAINS.map((domain) => `${domain}.example.org`)]
      return domains.map((domain) => {
        const name = nameOf(client, domain)
        const packet = udp({ sourcePort: 2000 + client, destinationPort: 53 }, dnsQuery([name]))
        const bytes = ipFrame({ source: `10.1.0.${client + 1}`, destination: '10.9.0.2' }, packet)
        return { bytes, name, platformId: matcher.match(name)?.platform.id }
      })
    }).flat()
    const unmatched = this.#frames.filter(({ platformId }) => platformId === undefined).length
    if (unmatched !== this.#frames.length / 2)
      throw new Error('the registry must match exactly half of the names of the oracle')
  }

  get expected(): Matches {
    return this.#expected
  }

  /**
   * Writes DNS queries, one per millisecond, from random clients for random names. About half of
   * them match.
   */
  writeCapture(path: string, random: Random, queries: number, startMs: number): void {
    const asked = Array.from({ length: queries }, () => random.of(this.#frames))
    for (const { name, platformId } of asked) {
      if (platformId === undefined) continue
      this.matches++
      const names = this.#expected.get(platformId) ?? new Map<string, number>()
      names.set(name, (names.get(name) ?? 0) + 1)
      this.#expected.set(platformId, names)
    }
    this.queries += queries
    const frames = asked.map(({ bytes }) => bytes)
    writeFileSync(path, pcapFile(framesAt(startMs, frames)))
  }
}

/** The matches in an organization's evidence, over all days. */
export function matchesInScans(store: Store, organizationId: string): Matches {
  const found = new Map<string, Evidence>()
  for (const { platformId, evidence: day } of store.evidence.since(organizationId, 0)) {
    const evidence = found.get(platformId) ?? new Evidence(Number.POSITIVE_INFINITY)
    evidence.addDay(day)
    found.set(platformId, evidence)
  }
  return new Map(
    [...found].map(([platformId, { byName, matches }]) => {
      // Matches of a platform without a name are listed as name ''. The oracle expects none.
      const named = [...byName.values()].reduce((sum, count) => sum + count, 0)
      return [platformId, matches === named ? byName : new Map([...byName, ['', matches - named]])]
    }),
  )
}

/** The same matches by client: each name is that of one client. */
export function byClient(matches: Matches): Matches {
  return new Map(
    [...matches].map(([platformId, names]) => {
      const clients = new Map<string, number>()
      for (const [name, count] of names) {
        const client = `10.1.0.${Number(/^c(\d+)\./.exec(name)?.[1]) + 1}`
        clients.set(client, (clients.get(client) ?? 0) + count)
      }
      return [platformId, clients]
    }),
  )
}

/** The matches in an organization's client records, over all days. */
export function clientsInScans(store: Store, organizationId: string): Matches {
  const found = new Map<string, ClientSum>()
  for (const record of store.clientDays.since(organizationId, 0)) {
    const sum = found.get(record.platformId) ?? new ClientSum()
    sum.add(record)
    found.set(record.platformId, sum)
  }
  return new Map(
    [...found].map(([platformId, sum]) => {
      return [platformId, new Map(sum.clients().map(({ client, matches }) => [client, matches]))]
    }),
  )
}

/** One line per platform and name with a wrong count. */
export function differencesOf(expected: Matches, found: Matches): string[] {
  const platforms = new Set([...expected.keys(), ...found.keys()])
  return [...platforms].flatMap((platform) => {
    const names = new Set([...(expected.get(platform)?.keys() ?? []), ...(found.get(platform)?.keys() ?? [])])
    return [...names].flatMap((name) => {
      const put = expected.get(platform)?.get(name) ?? 0
      const counted = found.get(platform)?.get(name) ?? 0
      return put === counted ? [] : [`${platform} ${name}: ${put} matches expected, ${counted} in scans`]
    })
  })
}
