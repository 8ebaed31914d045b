import type { Role } from '../../registry/platform.ts'
import type { Method } from '../event/event.ts'
import { type DayEvidence, NAMES_PER_DAY_MAX } from '../store/evidence.ts'
import { DistinctClients } from './distinct-clients.ts'

/** The evidence of one platform: the sum of new events and stored days. */
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

  addSpan(firstSeenMs: number, lastSeenMs: number): void {
    this.firstSeenMs = Math.min(this.firstSeenMs, firstSeenMs)
    this.lastSeenMs = Math.max(this.lastSeenMs, lastSeenMs)
  }

  /** Adds matches of one name. */
  addName(name: string, count: number): void {
    if (this.byName.has(name) || this.byName.size < this.#namesMax) increase(this.byName, name, count)
    else this.otherNames += count
  }

  addDay(day: DayEvidence): void {
    this.addSpan(day.firstSeenMs, day.lastSeenMs)
    this.matches += day.matches
    this.blocked += day.blocked
    for (const method in day.byMethod) increase(this.byMethod, method as Method, day.byMethod[method as Method] ?? 0)
    for (const role in day.byRole) increase(this.byRole, role as Role, day.byRole[role as Role] ?? 0)
    for (const name in day.byName) this.addName(name, day.byName[name] ?? 0)
    this.otherNames += day.otherNames
    this.clients.mergeBytes(day.clients)
    this.domainStrength = Math.max(this.domainStrength, day.domainStrength)
    this.days++
  }

  toDay(): DayEvidence {
    return {
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      matches: this.matches,
      blocked: this.blocked,
      byMethod: Object.fromEntries(this.byMethod),
      byRole: Object.fromEntries(this.byRole),
      byName: Object.fromEntries(this.byName),
      otherNames: this.otherNames,
      domainStrength: this.domainStrength,
      clients: this.clients.toBytes(),
    }
  }
}

export function increase<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by)
}
