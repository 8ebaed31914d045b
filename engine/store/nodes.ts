import type { Environment } from '../lmdb/environment.ts'
import type { StreamReport } from '../log/event-log.ts'
import { DAY_MS } from '../process/clock.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** Nodes that have reported nothing for this time are removed. */
const SILENT_MS = DAY_MS

export const NODE_ROLES = ['ingest', 'scan', 'api', 'console'] as const
export type NodeRole = (typeof NODE_ROLES)[number]

export interface SnapshotReport {
  readonly madeAtMs: number
  readonly bytes: number
  /** The last message of the stream of changes that is in it. */
  readonly sequence: number
}

/** What a node of a cluster has reported last. */
export interface ClusterNode {
  /** Id of its store. */
  readonly id: string
  readonly name: string
  readonly isPrimary: boolean
  readonly roles: readonly NodeRole[]
  readonly version: string
  /** The last message of the stream of changes that it has. */
  readonly sequence: number
  /** The last message in the stream then. */
  readonly lastSequence: number
  /** By the clock of the node, in milliseconds since 1970. */
  readonly reportedAtMs: number
  /** Whether it knows allowances of the rate limit. Earlier releases do not. */
  readonly knowsAllowances?: boolean | undefined
  /** Of the primary. */
  readonly streams?: readonly StreamReport[] | undefined
  readonly snapshots?: readonly SnapshotReport[] | undefined
}

/** A primary that may have used permits of the rate limit that no other node knows. */
export interface UnwitnessedNode {
  /** Id of its store. */
  readonly id: string
}

/** The nodes of the cluster, on each of them. */
export class Nodes {
  readonly #nodes: Family<ClusterNode>
  readonly #unwitnessed: Family<UnwitnessedNode>

  constructor(environment: Environment) {
    this.#nodes = new Family(environment.table('nodes'), 'node')
    this.#unwitnessed = new Family(environment.table('unwitnessed-nodes'), 'unwitnessed node')
  }

  /** Sorted by name. */
  all(): ClusterNode[] {
    const nodes = Array.from(this.#nodes.range(Buffer.alloc(0)), ({ value }) => value)
    return nodes.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** Requires a write transaction. */
  put(node: ClusterNode): void {
    for (const { id, name, reportedAtMs } of this.all()) {
      // A node that began with a snapshot has another id than before.
      if (name === node.name || node.reportedAtMs - reportedAtMs > SILENT_MS) this.#nodes.remove(uuidBytes(id))
    }
    this.#nodes.put(uuidBytes(node.id), node)
  }

  /** Requires a write transaction. */
  clear(): void {
    for (const { id } of this.all()) this.#nodes.remove(uuidBytes(id))
    for (const id of this.unwitnessed()) this.setUnwitnessed(id, false)
  }

  /** Ids of the primaries that may have used permits without a witness. */
  unwitnessed(): string[] {
    return Array.from(this.#unwitnessed.range(Buffer.alloc(0)), ({ value }) => value.id)
  }

  /** Requires a write transaction. */
  setUnwitnessed(id: string, isUnwitnessed: boolean): void {
    if (isUnwitnessed) this.#unwitnessed.put(uuidBytes(id), { id })
    else this.#unwitnessed.remove(uuidBytes(id))
  }
}
