import type { AccessKind } from '../../registry/contact.ts'
import type { Purpose, Role } from '../../registry/platform.ts'
import type { Method } from '../kernel/event/event.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { DAY_MS } from '../kernel/process/clock.ts'
import { Family, RECORD_VERSION, unpacked } from './family.ts'
import { dayTextKey, textKey, u32Bytes, uuidBytes } from './keys.ts'
import { type ClientSketches, EvidenceReader, type EvidenceToPack, packEvidence } from './packed-evidence.ts'

const DAY_OFFSET = 16
/** Maximum records removed per transaction, so that none is long. The next scan continues. */
const REMOVED_AT_ONCE_MAX = 20_000
const PLATFORM_OFFSET = 20

/**
 * Maximum names stored per platform and day, and shown in a finding. Further names are only
 * counted.
 */
export const NAMES_PER_DAY_MAX = 64

/**
 * The stored evidence of one platform on one day (UTC). Clients, and times unless there was no use,
 * are those of used matches. The counts are of all matches.
 */
export interface DayEvidence {
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly matches: number
  /** Matches that used the platform (registry/contact.ts). */
  readonly used: number
  /** Matches blocked by the device that logged them. Those that are neither only touched it. */
  readonly blocked: number
  readonly byMethod: Readonly<Partial<Record<Method, number>>>
  /** By source, see event-source.ts. Absent in records of early releases. */
  readonly bySource?: Readonly<Record<string, number>>
  readonly byRole: Readonly<Partial<Record<Role, number>>>
  readonly byPurpose: Readonly<Partial<Record<Purpose, number>>>
  /** Used matches, by how the platform was used. */
  readonly byAccess: Readonly<Partial<Record<AccessKind, number>>>
  readonly byName: Readonly<Record<string, number>>
  /** Matches of names beyond NAMES_PER_DAY_MAX. */
  readonly otherNames: number
  /**
   * The strongest rule that was used: specificity times the weight of the method (confidence.ts).
   * 0: the platform was not used.
   */
  readonly domainStrength: number
  /** The highest specificity of the rules that were used. */
  readonly specificity: number
  /** Of all matches, as far as logs count them. Absent: no log of the day has byte counts. */
  readonly bytesSent?: number
  readonly bytesReceived?: number
  /** DistinctClients.toBytes. */
  readonly clients: Uint8Array
  /**
   * Those that used a site or app. Absent if they are all of `clients`, or none because `byAccess`
   * has none.
   */
  readonly interactiveClients?: Uint8Array
  /** Those that used the API. Absent in the same cases. */
  readonly apiClients?: Uint8Array
}

export interface StoredDay {
  readonly day: number
  readonly platformId: string
  readonly evidence: DayEvidence
}

/** The evidence of each organization, by day and platform. */
export class EvidenceStore {
  readonly #days: Family<DayEvidence>
  readonly #detections: Family<Detection>

  constructor(environment: Environment) {
    this.#days = new Family(environment.table('evidence'), 'evidence')
    this.#detections = new Family(environment.table('detections'), 'detection')
  }

  day(organizationId: string, day: number, platformId: string): DayEvidence | undefined {
    const stored = this.#days.get(dayTextKey(organizationId, day, platformId))
    return stored && withUse(stored)
  }

  /**
   * Adds the evidence of a platform and day to a sum, without an object for it. Returns whether
   * there is any.
   */
  addDayTo(organizationId: string, day: number, platformId: string, sum: EvidenceSum): boolean {
    const payload = this.#days.view(dayTextKey(organizationId, day, platformId))
    if (payload === undefined) return false
    addTo(sum, payload)
    return true
  }

  /** Adds the evidence from `firstDay` to `lastDay` to the sums that `sumOf` returns, by day. */
  addSince(
    organizationId: string,
    firstDay: number,
    sumOf: (day: number, platformId: string) => EvidenceSum | undefined,
    lastDay = Number.POSITIVE_INFINITY,
  ): void {
    const prefix = uuidBytes(organizationId)
    for (const { key, payload } of this.#days.payloads(prefix, Buffer.concat([prefix, u32Bytes(firstDay)]))) {
      const day = key.readUInt32BE(DAY_OFFSET)
      if (day > lastDay) break
      const sum = sumOf(day, key.toString('utf8', PLATFORM_OFFSET))
      if (sum !== undefined) addTo(sum, payload)
    }
  }

  /** Stores evidence that packDay() packed. */
  putPackedDay(organizationId: string, day: number, platformId: string, packed: Buffer): void {
    this.#days.putSealed(dayTextKey(organizationId, day, platformId), packed)
  }

  putDay(organizationId: string, day: number, platformId: string, evidence: DayEvidence): void {
    this.#days.put(dayTextKey(organizationId, day, platformId), evidence)
  }

  /** The evidence from `firstDay` on, by day. */
  *since(organizationId: string, firstDay: number): Generator<StoredDay> {
    const prefix = uuidBytes(organizationId)
    for (const { key, value } of this.#days.range(prefix, Buffer.concat([prefix, u32Bytes(firstDay)]))) {
      yield {
        day: key.readUInt32BE(DAY_OFFSET),
        platformId: key.toString('utf8', PLATFORM_OFFSET),
        evidence: withUse(value),
      }
    }
  }

  /**
   * Up to `countMax` records from the key `from` (in hex) on, and the key of the next one. '': from
   * the first.
   */
  step(organizationId: string, from: string, countMax: number): { records: StoredDay[]; next: string | undefined } {
    const prefix = uuidBytes(organizationId)
    const records: StoredDay[] = []
    for (const { key, value } of this.#days.range(prefix, from === '' ? prefix : Buffer.from(from, 'hex'))) {
      if (records.length === countMax) return { records, next: key.toString('hex') }
      records.push({
        day: key.readUInt32BE(DAY_OFFSET),
        platformId: key.toString('utf8', PLATFORM_OFFSET),
        evidence: withUse(value),
      })
    }
    return { records, next: undefined }
  }

  /** Removes evidence before `firstDay`. */
  removeBefore(organizationId: string, firstDay: number): void {
    const old: Buffer[] = []
    for (const key of this.#days.keys(uuidBytes(organizationId))) {
      if (key.readUInt32BE(DAY_OFFSET) >= firstDay || old.length === REMOVED_AT_ONCE_MAX) break
      old.push(key)
    }
    for (const key of old) this.#days.remove(key)
  }

  /** Returns the first day with evidence in [firstDay, endDay), or undefined. */
  firstDayFrom(organizationId: string, firstDay: number, endDay: number): number | undefined {
    const prefix = uuidBytes(organizationId)
    const day = this.#days.firstKey(prefix, Buffer.concat([prefix, u32Bytes(firstDay)]))?.readUInt32BE(DAY_OFFSET)
    return day !== undefined && day < endDay ? day : undefined
  }

  /** The days with evidence from `firstDay` on, ascending. Finds each without reading records. */
  *daysFrom(organizationId: string, firstDay: number): Generator<number> {
    for (let from = firstDay; ; ) {
      const day = this.firstDayFrom(organizationId, from, Number.POSITIVE_INFINITY)
      if (day === undefined) return
      yield day
      from = day + 1
    }
  }

  /** What a count of clients needs of the evidence of one day. */
  *clientsOn(
    organizationId: string,
    day: number,
  ): Generator<Pick<DayEvidence, 'specificity' | 'clients'> & { readonly platformId: string }> {
    for (const { key, value } of this.#days.range(Buffer.concat([uuidBytes(organizationId), u32Bytes(day)]))) {
      const { specificity, clients } = withUse(value)
      yield { platformId: key.toString('utf8', PLATFORM_OFFSET), specificity, clients }
    }
  }

  /** The platform of each detection, by the id of the detection. */
  platformIds(organizationId: string): Map<string, string> {
    const prefix = uuidBytes(organizationId)
    return new Map(
      Array.from(this.#detections.range(prefix), ({ key, value }) => [value.id, key.toString('utf8', prefix.length)]),
    )
  }

  /** The record of a platform's first detection. */
  detection(organizationId: string, platformId: string): Detection | undefined {
    return this.#detections.get(textKey(organizationId, platformId))
  }

  putDetection(organizationId: string, platformId: string, detection: Detection): void {
    this.#detections.put(textKey(organizationId, platformId), detection)
  }
}

/** A sum of evidence of several days. Takes the values of the reader before the next read. */
export interface EvidenceSum {
  addDay(day: DayEvidence): void
  addReadDay(day: EvidenceReader): void
}

/**
 * The evidence with its used matches. Records of schema 1 do not have them: there, the blocked
 * matches may all have been of hosts that mean use, and the last ones, so that nobody is accused
 * without evidence.
 */
function withUse(day: DayEvidence | Omit<DayEvidence, 'used'>): DayEvidence {
  if ('used' in day) return day
  const { matches, blocked, byRole, byPurpose, byAccess, firstSeenMs } = day
  const { web = 0, app = 0, api = 0 } = byRole
  const used = Math.max(0, (byPurpose.use ?? 0) + web + app + api - matches - blocked)
  const isAccessKnown = Object.values(byAccess).reduce((sum, count) => sum + count, 0) <= used
  const lastSeenMs = blocked > 0 ? Math.max(firstSeenMs, day.lastSeenMs - (day.lastSeenMs % DAY_MS)) : day.lastSeenMs
  const strength = used > 0 ? {} : { domainStrength: 0, specificity: 0 }
  return { ...day, used, lastSeenMs, byAccess: isAccessKnown ? byAccess : {}, ...strength }
}

const reader = new EvidenceReader()

function addTo(sum: EvidenceSum, payload: Buffer): void {
  if (reader.read(payload)) sum.addReadDay(reader)
  // Unpacked byte strings are views of the payload, too.
  else sum.addDay(withUse(unpacked(payload)))
}

/** The record of evidence, for putPackedDay(). */
export function packDay(evidence: EvidenceToPack, sketches: ClientSketches): Buffer {
  return packEvidence(RECORD_VERSION, evidence, sketches)
}

/** The properties of a detected platform that never change. */
export interface Detection {
  readonly id: string
  readonly createdAtMs: number
  /** The version of the registry's data that found it. Absent in records of earlier programs. */
  readonly registry?: string
}
