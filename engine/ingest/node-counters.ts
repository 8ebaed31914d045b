import { z } from 'zod'
import { pack, unpack } from '../kernel/event/msgpack.ts'
import { type ClusterNode, NODE_ROLES } from '../store/nodes.ts'
import type { KeyUse } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import { addRows, type ReportedCounters } from './ingest-accounting.ts'

/** Of one message, which has at most 8 MiB: some ten thousand rows. */
const LIMITS = { valuesMax: 500_000, depthMax: 8 }

/** What a node of a cluster has counted since its last message, and what it is. */
export interface NodeCounters extends ReportedCounters {
  readonly keyUses: readonly KeyUse[]
  readonly node?: ClusterNode | undefined
}

/** Only nodes of the cluster may append to the log. The rows are what one node would store. */
const countersSchema = z.object({
  sources: z.array(z.custom<ReportedCounters['sources'][number]>(isRow)),
  rejects: z.array(z.custom<ReportedCounters['rejects'][number]>(isRow)),
  candidates: z.array(z.custom<ReportedCounters['candidates'][number]>(isRow)),
  keyUses: z.array(z.object({ organizationId: z.uuid(), keyId: z.uuid(), timeMs: z.number() })),
  node: z
    .object({
      id: z.uuid(),
      name: z.string().max(255),
      isPrimary: z.boolean(),
      roles: z.array(z.enum(NODE_ROLES)),
      version: z.string(),
      sequence: z.number(),
      lastSequence: z.number(),
      reportedAtMs: z.number(),
      streams: z
        .array(
          z.object({
            name: z.string(),
            leader: z.string(),
            current: z.number(),
            replicas: z.number(),
            messages: z.number(),
            bytes: z.number(),
            bytesMax: z.number(),
          }),
        )
        .optional(),
      snapshots: z.array(z.object({ madeAtMs: z.number(), bytes: z.number(), sequence: z.number() })).optional(),
    })
    .optional(),
})

function isRow(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof (value as ClusterRow).organizationId === 'string'
}

interface ClusterRow {
  readonly organizationId?: unknown
}

export function packCounters(counters: Partial<NodeCounters>): Buffer {
  return pack({ sources: [], rejects: [], candidates: [], keyUses: [], ...counters })
}

/** @throws Error if no node can have written them */
export function unpackCounters(bytes: Uint8Array): NodeCounters {
  return countersSchema.parse(unpack(bytes, LIMITS))
}

/** For the primary, which alone reads the log. Requires a write transaction. */
export function addCounters(store: Store, counters: NodeCounters): void {
  addRows(store, counters)
  addKeyUses(store, counters.keyUses)
  const { node } = counters
  // The primary writes its own row. One in the log is older, from the time when it was a replica.
  if (node !== undefined && node.id !== store.environment.replication.state?.node) store.nodes.put(node)
}

/** Requires a write transaction. A key of an organization that was removed leaves no use. */
export function addKeyUses({ organizations, keyUses }: Store, uses: readonly KeyUse[]): void {
  for (const use of uses) if (organizations.exists(use.organizationId)) keyUses.put(use)
}
