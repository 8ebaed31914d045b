import type { Rule } from '../../registry/catalog.ts'
import type { Role } from '../../registry/platform.ts'
import type { Event, Method } from '../event.ts'
import { domainStrength } from './confidence.ts'
import { DistinctClients } from './distinct-clients.ts'

/** Names that one platform keeps for one day, and that a finding shows. More are counted, not kept. */
export const NAMES_PER_DAY_MAX = 64

/** What an organization knows of one platform on one day (UTC), as it is stored. */
export interface DayEvidence {
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly matches: number
  /** Matches that were blocked by the device that logged them. Absent where none was, as in what earlier releases stored. */
  readonly blocked?: number
  readonly byMethod: Readonly<Partial<Record<Method, number>>>
  readonly byRole: Readonly<Partial<Record<Role, number>>>
  readonly byName: Readonly<Record<string, number>>
  /** Matches of names beyond NAMES_PER_DAY_MAX. */
  readonly otherNames: number
  /** The strongest rule that matched: specificity times the weight of its role (confidence.ts). */
  readonly domainStrength: number
  /** DistinctClients.toBytes. */
  readonly clients: Uint8Array
}

/** The evidence of one platform, gathered from events and from stored days. */
export class Evidence {
  firstSeenMs = Number.MAX_SAFE_INTEGER
  lastSeenMs = 0
  matches = 0
  blocked = 0
  otherNames = 0
  domainStrength = 0
  days = 0
  readonly byMethod = new Map<Method, number>()
  readonly byRole = new Map<Role, number>()
  readonly byName = new Map<string, number>()
  readonly clients = new DistinctClients()
  readonly #namesMax: number

  constructor(namesMax = NAMES_PER_DAY_MAX) {
    this.#namesMax = namesMax
  }

  addEvent(event: Event, rule: Rule): void {
    this.#addSpan(event.firstSeenMs, event.lastSeenMs)
    this.matches += event.count
    this.blocked += event.blocked ?? 0
    increase(this.byMethod, event.method, event.count)
    increase(this.byRole, rule.role, event.count)
    this.#addName(event.name, event.count)
    this.clients.add(event.client)
    this.domainStrength = Math.max(this.domainStrength, domainStrength(rule.specificity, rule.role))
  }

  addDay(day: DayEvidence): void {
    this.#addSpan(day.firstSeenMs, day.lastSeenMs)
    this.matches += day.matches
    this.blocked += day.blocked ?? 0
    for (const [method, count] of Object.entries(day.byMethod)) increase(this.byMethod, method as Method, count)
    for (const [role, count] of Object.entries(day.byRole)) increase(this.byRole, role as Role, count)
    for (const [name, count] of Object.entries(day.byName)) this.#addName(name, count)
    this.otherNames += day.otherNames
    this.clients.merge(DistinctClients.fromBytes(day.clients))
    this.domainStrength = Math.max(this.domainStrength, day.domainStrength)
    this.days++
  }

  toDay(): DayEvidence {
    return {
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      matches: this.matches,
      ...(this.blocked > 0 ? { blocked: this.blocked } : {}),
      byMethod: Object.fromEntries(this.byMethod),
      byRole: Object.fromEntries(this.byRole),
      byName: Object.fromEntries(this.byName),
      otherNames: this.otherNames,
      domainStrength: this.domainStrength,
      clients: this.clients.toBytes(),
    }
  }

  #addSpan(firstSeenMs: number, lastSeenMs: number): void {
    this.firstSeenMs = Math.min(this.firstSeenMs, firstSeenMs)
    this.lastSeenMs = Math.max(this.lastSeenMs, lastSeenMs)
  }

  #addName(name: string, count: number): void {
    if (this.byName.has(name) || this.byName.size < this.#namesMax) increase(this.byName, name, count)
    else this.otherNames += count
  }
}

function increase<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by)
}
