import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { u64Bytes, uuidBytes, uuidText } from './keys.ts'

/*
 * The states of a scan:
 *
 *   (none)  -- requested by an administrator -->          pending
 *   (none)  -- due by the schedule, a full buffer or the expiry of a decision -->   running
 *   pending -- its turn -->                               running
 *   running -- its transaction is on disk -->             completed
 *   running -- error, or `interrupted` -->                failed
 *
 * completed and failed are final.
 */
export const SCAN_STATUSES = ['pending', 'running', 'completed', 'failed'] as const
export type ScanStatus = (typeof SCAN_STATUSES)[number]

/** Why a scan started. */
export type ScanTrigger = 'schedule' | 'first' | 'buffer' | 'expiry' | 'administrator'

export interface Scan {
  readonly id: string
  readonly organizationId: string
  readonly status: ScanStatus
  readonly trigger: ScanTrigger
  readonly domain: string
  /** When the scan was requested, in milliseconds since 1970. Part of the key. */
  readonly requestedAtMs: number
  /** 0 while pending. */
  readonly startedAtMs: number
  /** 0 until ended. */
  readonly completedAtMs: number
  readonly eventsAdded: number
  /** Of these, events whose name no platform of the organization's registry has. They wait. */
  readonly eventsUnmatched: number
  /** Events that could not be read and were dropped. */
  readonly eventsDamaged: number
  /** Events of days before the evidence window. They are counted nowhere else. */
  readonly eventsTooOld: number
  /**
   * Events that wait for a registry that has their name. Absent in scans of releases that kept
   * none.
   */
  readonly waiting?: WaitingEvents
  readonly summary: ScanSummary
  /** The version of the registry's data. Absent until completed, and in older scans. */
  readonly registry?: string
  /** The error; empty unless failed. */
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

/** Of AI platforms that were used, except where another is named. */
export interface ScanSummary {
  readonly platformsDiscovered: number
  /** Software that was used in which AI is one part (registry/contact.ts). */
  readonly aiCapableCount: number
  /** Platforms of which all requests were blocked, or that were only touched. Absent in schema 1. */
  readonly blockedCount?: number
  readonly touchedCount?: number
  readonly shadowAiCount: number
  /** 0 to 100. */
  readonly overallRiskScore: number
}

/** A pending scan. */
export interface ScanRequest {
  readonly scanId: string
  readonly requestedAtMs: number
}

/** The scans of each organization in order of their requests, and the pending ones. */
export class Scans {
  readonly #records: Family<Scan>
  readonly #requests: Family<ScanRequest>

  constructor(environment: Environment) {
    this.#records = new Family(environment.table('scans'), 'scan')
    this.#requests = new Family(environment.table('scan-requests'), 'scan request')
  }

  put(scan: Scan): void {
    this.#records.put(keyOf(scan), scan)
  }

  /** Stores a pending scan. The organization must not have another one. */
  request(scan: Scan): void {
    this.put(scan)
    this.#requests.put(uuidBytes(scan.organizationId), { scanId: scan.id, requestedAtMs: scan.requestedAtMs })
  }

  /** The organization's pending scan. */
  pending(organizationId: string): Scan | undefined {
    const request = this.#requests.get(uuidBytes(organizationId))
    if (request === undefined) return undefined
    return this.#records.get(scanKey(organizationId, request.requestedAtMs, request.scanId))
  }

  /** Organizations with a pending scan. Usually none. */
  organizationsWaiting(): string[] {
    return Array.from(this.#requests.keys(Buffer.alloc(0)), uuidText)
  }

  /** Removes the pending request when the scan starts. */
  removeRequest(organizationId: string): void {
    this.#requests.remove(uuidBytes(organizationId))
  }

  /** The scan with this key. */
  at(
    organizationId: string,
    { id, requestedAtMs }: { readonly id: string; readonly requestedAtMs: number },
  ): Scan | undefined {
    return this.#records.get(scanKey(organizationId, requestedAtMs, id))
  }

  /** The stored version of the scan. */
  current(scan: Scan): Scan | undefined {
    return this.#records.get(keyOf(scan))
  }

  /** Oldest first. */
  ofOrganization(organizationId: string): Scan[] {
    return [...this.#records.range(uuidBytes(organizationId))].map(({ value }) => value)
  }

  /** Newest first, at most `countMax`. */
  newest(organizationId: string, countMax: number): Scan[] {
    return this.#records.newest(uuidBytes(organizationId), countMax)
  }

  last(organizationId: string, wanted: (scan: Scan) => boolean): Scan | undefined {
    return this.#records.last(uuidBytes(organizationId), wanted)
  }

  /**
   * Removes the oldest ended scans: at most `countMax`, requested before `beforeMs`. Keeps the last
   * completed one, which the API shows. Returns how many were removed.
   */
  removeOldest(organizationId: string, countMax: number, beforeMs = Number.POSITIVE_INFINITY): number {
    const expired = this.#expired(organizationId, countMax, beforeMs)
    for (const key of expired) this.#records.remove(key)
    return expired.length
  }

  /** The number of scans that removeOldest would remove. */
  countOldest(organizationId: string, beforeMs: number): number {
    return this.#expired(organizationId, Number.POSITIVE_INFINITY, beforeMs).length
  }

  #expired(organizationId: string, countMax: number, beforeMs: number): Buffer[] {
    if (countMax <= 0) return []
    const shown = this.last(organizationId, ({ status }) => status === 'completed')?.id
    const expired: Buffer[] = []
    for (const { key, value } of this.#records.range(uuidBytes(organizationId))) {
      if (expired.length >= countMax || value.requestedAtMs >= beforeMs) break
      if (value.id !== shown && (value.status === 'completed' || value.status === 'failed')) expired.push(key)
    }
    return expired
  }
}

function keyOf(scan: Scan): Buffer {
  return scanKey(scan.organizationId, scan.requestedAtMs, scan.id)
}

function scanKey(organizationId: string, timeMs: number, id: string): Buffer {
  return Buffer.concat([uuidBytes(organizationId), u64Bytes(timeMs), uuidBytes(id)])
}
