import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import { textKey, uuidBytes } from './keys.ts'

/*
 * How many clients requested a name, in 32 bytes: linear counting. Each client sets one of 256 bits
 * by its hash, and the number of zero bits gives the estimate. Merging is OR. The sketch of scans
 * (scan/distinct-clients.ts) is exact for few clients and up to 65 times as long. A guess needs
 * fewer bytes, which say less about clients.
 */
export const SKETCH_BYTES = 32
const SKETCH_BITS = SKETCH_BYTES * 8
/** The estimate with all bits set, whatever the number of clients. */
export const SKETCH_CLIENTS_MAX = 1000

/** @param hash 32 bits of which all depend on the client */
export function addToSketch(sketch: Uint8Array, hash: number): void {
  const bit = hash >>> 24
  sketch[bit >>> 3] = (sketch[bit >>> 3] ?? 0) | (1 << (bit & 7))
}

export function mergedSketch(one: Uint8Array, other: Uint8Array): Uint8Array {
  return one.map((byte, at) => byte | (other[at] ?? 0))
}

/** Exact up to about 10 clients, within 10% up to 500. */
export function clientsInSketch(sketch: Uint8Array): number {
  let zeros = SKETCH_BITS
  for (let byte of sketch) for (; byte > 0; byte &= byte - 1) zeros--
  if (zeros === 0) return SKETCH_CLIENTS_MAX
  return Math.min(SKETCH_CLIENTS_MAX, Math.round(SKETCH_BITS * Math.log(SKETCH_BITS / zeros)))
}

/**
 * Candidates of one organization. Beyond it, a tenth of them go: those that were not seen the
 * longest. Counted as `removed`.
 */
const CANDIDATES_MAX = 1000

/** What was counted of a candidate since the previous delta. */
export interface CandidateDelta {
  readonly organizationId: string
  readonly name: string
  readonly requests: number
  /** Requests within minutes of an AI platform, by the same client. */
  readonly withAi: number
  /** A device has the host in its category for AI. */
  readonly isByDevice?: boolean
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /** A sketch of the clients. All zero if the organization does not keep addresses. */
  readonly clients: Uint8Array
}

/** A name of no platform that looks like an AI service. It is no finding. */
export interface Candidate extends Omit<CandidateDelta, 'organizationId'> {
  /** When a member said that it is none; 0 if nobody did. */
  readonly dismissedAtMs: number
}

/** The candidates of each organization, by name. */
export class Candidates {
  /** Candidates removed at the limit since the start. */
  removed = 0
  readonly #records: Family<Candidate>
  readonly #candidatesMax: number
  /** Number of records by organization, once counted. */
  readonly #counts = new Map<string, number>()

  constructor(environment: Environment, candidatesMax = CANDIDATES_MAX) {
    this.#records = new Family(environment.table('candidates'), 'candidate')
    this.#candidatesMax = candidatesMax
  }

  /** Ordered by name. */
  ofOrganization(organizationId: string): Candidate[] {
    return Array.from(this.#records.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  get(organizationId: string, name: string): Candidate | undefined {
    return this.#records.get(textKey(organizationId, name))
  }

  put(organizationId: string, candidate: Candidate): void {
    this.#records.put(textKey(organizationId, candidate.name), candidate)
  }

  /** Requires a write transaction. Does nothing if there is no such candidate. */
  remove(organizationId: string, name: string): void {
    this.#records.remove(textKey(organizationId, name))
    this.#counts.delete(organizationId)
  }

  /** Forgets which clients were counted. */
  eraseClients(organizationId: string): void {
    for (const candidate of this.ofOrganization(organizationId)) {
      this.put(organizationId, { ...candidate, clients: new Uint8Array(SKETCH_BYTES) })
    }
  }

  /**
   * Adds counts, and creates missing records. Beyond the limit, those that were not seen the
   * longest are removed.
   */
  add(deltas: readonly CandidateDelta[], keepsClients: (organizationId: string) => boolean): void {
    const added = new Map<string, number>()
    for (const delta of deltas) {
      const { organizationId } = delta
      const before = this.get(organizationId, delta.name)
      if (before === undefined) added.set(organizationId, (added.get(organizationId) ?? 0) + 1)
      const clients = keepsClients(organizationId) ? delta.clients : new Uint8Array(SKETCH_BYTES)
      this.put(organizationId, sumOf(before, { ...delta, clients }))
    }
    for (const [organizationId, count] of added) this.#bound(organizationId, count)
  }

  /** As for sources, records are counted once, and again after some were removed. */
  #bound(organizationId: string, added: number): void {
    const before = this.#counts.get(organizationId)
    if (before !== undefined && before + added <= this.#candidatesMax) {
      this.#counts.set(organizationId, before + added)
      return
    }
    const all = this.ofOrganization(organizationId)
    this.#counts.set(organizationId, all.length)
    const excess = all.length - this.#candidatesMax
    if (excess <= 0) return
    // Dismissed ones last: they would come back as new.
    all.sort((a, b) => Number(a.dismissedAtMs > 0) - Number(b.dismissedAtMs > 0) || a.lastSeenMs - b.lastSeenMs)
    const silent = all.slice(0, excess + Math.floor(this.#candidatesMax / 10))
    for (const { name } of silent) this.remove(organizationId, name)
    this.removed += silent.length
  }
}

/** Adds the later `delta` to the counts of the same name. */
export function sumOfDeltas(before: CandidateDelta, delta: CandidateDelta): CandidateDelta {
  return { organizationId: delta.organizationId, ...countsOf(before, delta) }
}

function sumOf(before: Candidate | undefined, delta: CandidateDelta): Candidate {
  const { organizationId: _, ...first } = delta
  return { ...(before === undefined ? first : countsOf(before, delta)), dismissedAtMs: before?.dismissedAtMs ?? 0 }
}

type Counts = Omit<CandidateDelta, 'organizationId'>

function countsOf(before: Counts, { name, ...delta }: Counts): Counts {
  return {
    name,
    requests: before.requests + delta.requests,
    withAi: before.withAi + delta.withAi,
    ...((before.isByDevice || delta.isByDevice) && { isByDevice: true }),
    firstSeenMs: Math.min(before.firstSeenMs, delta.firstSeenMs),
    lastSeenMs: Math.max(before.lastSeenMs, delta.lastSeenMs),
    clients: mergedSketch(before.clients, delta.clients),
  }
}

/** undefined if the organization keeps no addresses, or no request named its client. */
export function clientsOf({ clients }: Candidate): number | undefined {
  const count = clientsInSketch(clients)
  return count === 0 ? undefined : count
}
