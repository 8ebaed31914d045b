import type { Environment } from '../lmdb/environment.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes, uuidText } from './keys.ts'

/*
 * The states of a scan:
 *
 *   (none)  -- requested by an administrator -->              pending
 *   (none)  -- due by the schedule or a full buffer -->       running
 *   pending -- its turn has come -->                          running
 *   running -- its transaction is on disk -->                 completed
 *   running -- what made it fail, or `interrupted` -->        failed
 *
 * completed and failed are final.
 */
export const SCAN_STATUSES = ['pending', 'running', 'completed', 'failed'] as const
export type ScanStatus = (typeof SCAN_STATUSES)[number]

/** What made a scan start. */
export type ScanTrigger = 'schedule' | 'buffer' | 'administrator'

export interface Scan {
  readonly id: string
  readonly organizationId: string
  readonly status: ScanStatus
  readonly trigger: ScanTrigger
  readonly domain: string
  /** When it was requested: milliseconds since 1970. Part of its key. */
  readonly requestedAtMs: number
  /** 0 while it is pending. */
  readonly startedAtMs: number
  /** 0 until the scan has ended. */
  readonly completedAtMs: number
  readonly eventsFolded: number
  /** Among them those whose name no platform of the organization's registry has. They wait. */
  readonly eventsUnmatched: number
  /** Events that could not be read any more, and were let go. */
  readonly eventsDamaged: number
  /** Events of days that had left the window before they came: they are counted nowhere else. */
  readonly eventsTooOld: number
  /** Events that wait for a registry that has their name. Absent in scans of releases that kept none. */
  readonly waiting?: WaitingEvents
  readonly summary: ScanSummary
  /** Why it failed; empty otherwise. */
  readonly failure: string
}

/** waiting = waiting before + eventsUnmatched - rematched - expired - dropped - damaged ones. */
export interface WaitingEvents {
  /** How many wait after the scan. */
  readonly count: number
  /** Waiting events that the scan added to the evidence, because the registry changed. */
  readonly rematched: number
  /** Waiting events that left the evidence window. */
  readonly expired: number
  /** The oldest, removed by UNMATCHED_EVENTS_MAX. */
  readonly dropped: number
}

export interface ScanSummary {
  readonly platformsDiscovered: number
  readonly shadowAiCount: number
  /** 0 to 100. */
  readonly overallRiskScore: number
}

/** A scan that waits for its turn. */
export interface ScanRequest {
  readonly scanId: string
  readonly requestedAtMs: number
}

/** The scans of each organization, in the order in which they were asked for, and those that wait. */
export class Scans {
  readonly #records: Family<Scan>
  readonly #requests: Family<ScanRequest>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('scans'), 'scan')
    this.#requests = new Family(environment.table('scan-requests'), 'scan request')
  }

  /** Inside a transaction of the caller. */
  put(scan: Scan): void {
    this.#records.put(keyOf(scan), scan)
  }

  /** A pending scan. Inside a transaction of the caller, who knows that none is pending yet. */
  request(scan: Scan): void {
    this.put(scan)
    this.#requests.put(uuidBytes(scan.organizationId), { scanId: scan.id, requestedAtMs: scan.requestedAtMs })
  }

  /** The organization's scan that waits for its turn. */
  pending(organizationId: string): Scan | undefined {
    const request = this.#requests.get(uuidBytes(organizationId))
    if (request === undefined) return undefined
    return this.#records.get(scanKey(organizationId, request.requestedAtMs, request.scanId))
  }

  /** Organizations of which a scan is pending. Usually there are none. */
  organizationsWaiting(): string[] {
    return Array.from(this.#requests.keys(Buffer.alloc(0)), uuidText)
  }

  /** Its turn has come. Inside a transaction of the caller. */
  removeRequest(organizationId: string): void {
    this.#requests.remove(uuidBytes(organizationId))
  }

  /** The scan that stands there. */
  at(
    organizationId: string,
    { id, requestedAtMs }: { readonly id: string; readonly requestedAtMs: number },
  ): Scan | undefined {
    return this.#records.get(scanKey(organizationId, requestedAtMs, id))
  }

  /** The scan as it is now. */
  current(scan: Scan): Scan | undefined {
    return this.#records.get(keyOf(scan))
  }

  /** Oldest first. */
  ofOrganization(organizationId: string): Scan[] {
    return [...this.#records.range(uuidBytes(organizationId))].map(({ value }) => value)
  }

  last(organizationId: string, wanted: (scan: Scan) => boolean): Scan | undefined {
    return this.#records.last(uuidBytes(organizationId), wanted)
  }

  /**
   * Removes the oldest that have ended: at most `countMax`, and those asked for before `beforeMs`. The last one completed stays, since it is what the API
   * shows. Inside a transaction of the caller. Answers how many went.
   */
  removeOldest(organizationId: string, countMax: number, beforeMs = Number.POSITIVE_INFINITY): number {
    if (countMax <= 0) return 0
    const shown = this.last(organizationId, ({ status }) => status === 'completed')?.id
    const leaving: Buffer[] = []
    for (const { key, value } of this.#records.range(uuidBytes(organizationId))) {
      if (leaving.length >= countMax || value.requestedAtMs >= beforeMs) break
      if (value.id !== shown && (value.status === 'completed' || value.status === 'failed')) leaving.push(key)
    }
    for (const key of leaving) this.#records.remove(key)
    return leaving.length
  }
}

function keyOf(scan: Scan): Buffer {
  return scanKey(scan.organizationId, scan.requestedAtMs, scan.id)
}

function scanKey(organizationId: string, timeMs: number, id: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u64Bytes(timeMs), uuidBytes(id)])
}
