import type { AccessKind } from '../../registry/contact.ts'
import type { Purpose, Role } from '../../registry/platform.ts'
import type { Method } from '../kernel/event/event.ts'
import { SOURCES_PER_DAY_MAX } from '../store/event-source.ts'
import { type DayEvidence, NAMES_PER_DAY_MAX } from '../store/evidence.ts'
import type { ClientSketches, EvidenceReader, PackedCounts } from '../store/packed-evidence.ts'
import { DistinctClients } from './distinct-clients.ts'

/** Earliest and latest of some times. */
class Span {
  firstMs = Number.MAX_SAFE_INTEGER
  lastMs = 0

  add(firstMs: number, lastMs: number): void {
    this.firstMs = Math.min(this.firstMs, firstMs)
    this.lastMs = Math.max(this.lastMs, lastMs)
  }
}

/**
 * A part of the clients. Most platforms are used in one way, so the part is all of the clients
 * until one is added that is not in it: merging a second sketch takes as long as the first.
 */
class PartOfClients {
  readonly #all: DistinctClients
  #own: DistinctClients | undefined

  constructor(all: DistinctClients) {
    this.#all = all
  }

  get clients(): DistinctClients {
    return this.#own ?? this.#all
  }

  /** The part as a sketch of its own. Required before other clients are added to all. */
  #separate(): DistinctClients {
    this.#own ??= this.#all.clone()
    return this.#own
  }

  /** Adds those of the clients `all`, which are then added to all. undefined: none. */
  merge<Clients extends Uint8Array | DistinctClients>(part: Clients | undefined, all: Clients): void {
    if (part === all && this.#own === undefined) return
    const own = this.#separate()
    if (part instanceof DistinctClients) own.merge(part)
    else if (part !== undefined) own.mergeBytes(part)
  }

  /** The bytes of the part, if it is not all of the clients. */
  toBytes(): Uint8Array | undefined {
    return this.#own === undefined || this.#own.isAllOf(this.#all) ? undefined : this.#own.toBytes()
  }
}

/** Clients, and those of them that used a site or app, or the API. undefined: none. */
export interface ClientsByAccess {
  readonly all: DistinctClients
  readonly interactive: DistinctClients | undefined
  readonly api: DistinctClients | undefined
}

/** The evidence of one platform: the sum of new events and stored days. */
export class Evidence {
  /** All: those that used, were blocked or only touched the platform (registry/contact.ts). */
  matches = 0
  used = 0
  blocked = 0
  otherNames = 0
  /** 0: no log has byte counts. */
  bytesSent = 0
  bytesReceived = 0
  domainStrength = 0
  specificity = 0
  /** Days with use. */
  days = 0
  readonly byMethod = new Map<Method, number>()
  readonly byRole = new Map<Role, number>()
  readonly byPurpose = new Map<Purpose, number>()
  readonly byAccess = new Map<AccessKind, number>()
  readonly byName = new Map<string, number>()
  readonly bySource = new Map<string, number>()
  readonly clients = new DistinctClients()
  readonly #interactive = new PartOfClients(this.clients)
  readonly #api = new PartOfClients(this.clients)
  readonly #use = new Span()
  /** Of the other matches, for days without use. */
  readonly #other = new Span()
  #namesMax: number

  constructor(namesMax = NAMES_PER_DAY_MAX) {
    this.#namesMax = namesMax
  }

  /** Of `clients`, those that used a site or app. */
  get interactive(): DistinctClients {
    return this.#interactive.clients
  }

  /** Of `clients`, those that used the API. */
  get api(): DistinctClients {
    return this.#api.clients
  }

  get touched(): number {
    return this.matches - this.used - this.blocked
  }

  get firstSeenMs(): number {
    return this.#times.firstMs
  }

  get lastSeenMs(): number {
    return this.#times.lastMs
  }

  get #times(): Span {
    return this.used > 0 ? this.#use : this.#other
  }

  /** Adds the times of used matches. */
  addSpan(firstSeenMs: number, lastSeenMs: number): void {
    this.#use.add(firstSeenMs, lastSeenMs)
  }

  addOtherSpan(firstSeenMs: number, lastSeenMs: number): void {
    this.#other.add(firstSeenMs, lastSeenMs)
  }

  addClients({ all, interactive, api }: ClientsByAccess): void {
    this.#interactive.merge(interactive, all)
    this.#api.merge(api, all)
    this.clients.merge(all)
  }

  /** Adds matches of one name. */
  addName(name: string, count: number): void {
    if (this.byName.has(name) || this.byName.size < this.#namesMax) increase(this.byName, name, count)
    else this.otherNames += count
  }

  /** Adds matches of a source, unless there are too many sources. */
  addSource(source: string, count: number): void {
    if (this.bySource.has(source) || this.bySource.size < SOURCES_PER_DAY_MAX) increase(this.bySource, source, count)
  }

  addDay(day: DayEvidence): void {
    if (day.used > 0) this.addSpan(day.firstSeenMs, day.lastSeenMs)
    else this.addOtherSpan(day.firstSeenMs, day.lastSeenMs)
    this.matches += day.matches
    this.used += day.used
    this.blocked += day.blocked
    addCounts(this.byMethod, day.byMethod)
    addCounts(this.byRole, day.byRole)
    addCounts(this.byPurpose, day.byPurpose)
    addCounts(this.byAccess, day.byAccess)
    for (const name in day.byName) this.addName(name, day.byName[name] ?? 0)
    for (const source in day.bySource) this.addSource(source, day.bySource[source] ?? 0)
    this.#addBytes(day)
    this.otherNames += day.otherNames
    this.domainStrength = Math.max(this.domainStrength, day.domainStrength)
    this.specificity = Math.max(this.specificity, day.specificity)
    if (day.used === 0) return
    const { interactive, api } = clientsByAccess(day)
    this.#interactive.merge(interactive, day.clients)
    this.#api.merge(api, day.clients)
    this.clients.mergeBytes(day.clients)
    this.days++
  }

  /** Adds a record, like addDay. */
  addReadDay(day: EvidenceReader): void {
    this.matches += day.matches
    this.used += day.used
    this.blocked += day.blocked
    addPacked(this.byMethod, day.byMethod)
    addPacked(this.byRole, day.byRole)
    addPacked(this.byAccess, day.byAccess)
    for (const [index, name] of day.byName.keys.entries()) this.addName(name, day.byName.counts[index] ?? 0)
    for (const [index, source] of day.bySource.keys.entries()) this.addSource(source, day.bySource.counts[index] ?? 0)
    this.#addBytes(day)
    this.otherNames += day.otherNames
    this.domainStrength = Math.max(this.domainStrength, day.domainStrength)
    this.specificity = Math.max(this.specificity, day.specificity)
    addPacked(this.byPurpose, day.byPurpose)
    if (day.used === 0) return this.addOtherSpan(day.firstSeenMs, day.lastSeenMs)
    this.addSpan(day.firstSeenMs, day.lastSeenMs)
    const { byAccess, clients = NO_CLIENTS, interactiveClients = clients, apiClients = clients } = day
    const isInteractive = byAccess.keys.includes('web') || byAccess.keys.includes('app')
    this.#interactive.merge(isInteractive ? interactiveClients : undefined, clients)
    this.#api.merge(byAccess.keys.includes('api') ? apiClients : undefined, clients)
    this.clients.mergeBytes(clients)
    this.days++
  }

  /** Adds another sum that is the evidence of one day, like addDay. */
  addSumOfDay(day: Evidence): void {
    this.matches += day.matches
    this.used += day.used
    this.blocked += day.blocked
    for (const [method, count] of day.byMethod) increase(this.byMethod, method, count)
    for (const [role, count] of day.byRole) increase(this.byRole, role, count)
    for (const [purpose, count] of day.byPurpose) increase(this.byPurpose, purpose, count)
    for (const [kind, count] of day.byAccess) increase(this.byAccess, kind, count)
    for (const [name, count] of day.byName) this.addName(name, count)
    for (const [source, count] of day.bySource) this.addSource(source, count)
    this.#addBytes(day)
    this.otherNames += day.otherNames
    this.domainStrength = Math.max(this.domainStrength, day.domainStrength)
    this.specificity = Math.max(this.specificity, day.specificity)
    if (day.used === 0) return this.addOtherSpan(day.firstSeenMs, day.lastSeenMs)
    this.addSpan(day.firstSeenMs, day.lastSeenMs)
    const isInteractive = day.byAccess.has('web') || day.byAccess.has('app')
    this.#interactive.merge(isInteractive ? day.interactive : undefined, day.clients)
    this.#api.merge(day.byAccess.has('api') ? day.api : undefined, day.clients)
    this.clients.merge(day.clients)
    this.days++
  }

  #addBytes({ bytesSent = 0, bytesReceived = 0 }: Pick<DayEvidence, 'bytesSent' | 'bytesReceived'>): void {
    this.bytesSent += bytesSent
    this.bytesReceived += bytesReceived
  }

  /** Makes this sum of one day the first day of a window, which has up to `namesMax` names. */
  beginWindow(namesMax: number): void {
    this.#namesMax = namesMax
    this.days = this.used > 0 ? 1 : 0
  }

  /** The sketches in the record of a day. */
  sketches(): ClientSketches {
    return { clients: this.clients.toBytes(), ...this.#parts() }
  }

  toDay(): DayEvidence {
    return {
      firstSeenMs: this.firstSeenMs,
      lastSeenMs: this.lastSeenMs,
      matches: this.matches,
      used: this.used,
      blocked: this.blocked,
      byMethod: Object.fromEntries(this.byMethod),
      bySource: Object.fromEntries(this.bySource),
      byRole: Object.fromEntries(this.byRole),
      byPurpose: Object.fromEntries(this.byPurpose),
      byAccess: Object.fromEntries(this.byAccess),
      byName: Object.fromEntries(this.byName),
      otherNames: this.otherNames,
      ...(this.bytesSent > 0 ? { bytesSent: this.bytesSent } : {}),
      ...(this.bytesReceived > 0 ? { bytesReceived: this.bytesReceived } : {}),
      domainStrength: this.domainStrength,
      specificity: this.specificity,
      ...this.sketches(),
    }
  }

  /** Most days have neither part, because all or none of their clients are in it. */
  #parts(): Pick<DayEvidence, 'interactiveClients' | 'apiClients'> {
    const isInteractive = this.byAccess.has('web') || this.byAccess.has('app')
    const interactiveClients = isInteractive ? this.#interactive.toBytes() : undefined
    const apiClients = this.byAccess.has('api') ? this.#api.toBytes() : undefined
    return {
      ...(interactiveClients === undefined ? {} : { interactiveClients }),
      ...(apiClients === undefined ? {} : { apiClients }),
    }
  }
}

/** The sketch of no clients. */
const NO_CLIENTS = new DistinctClients().toBytes()

/** The sketches of the clients of a day that used a site or app, and of those that used the API. */
function clientsByAccess({ byAccess, clients, interactiveClients = clients, apiClients = clients }: DayEvidence) {
  const { web = 0, app = 0, api = 0 } = byAccess
  return { interactive: web + app > 0 ? interactiveClients : undefined, api: api > 0 ? apiClients : undefined }
}

function addCounts<K extends string>(sums: Map<K, number>, counts: Readonly<Partial<Record<K, number>>>): void {
  for (const key in counts) increase(sums, key, counts[key] ?? 0)
}

function addPacked<K extends string>(sums: Map<K, number>, { keys, counts }: PackedCounts): void {
  for (let index = 0; index < keys.length; index++) increase(sums, keys[index] as K, counts[index] ?? 0)
}

export function increase<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by)
}
