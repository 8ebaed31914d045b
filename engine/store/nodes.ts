import type { StreamReport } from '../cluster/log/event-log.ts'
import type { Environment } from '../kernel/lmdb/environment.ts'
import { DAY_MS } from '../kernel/process/clock.ts'
import { Family } from './family.ts'
import { uuidBytes } from './keys.ts'

/** Nodes that have reported nothing for this time are removed. */
const SILENT_MS = DAY_MS

export const NODE_ROLES = ['ingest', 'scan', 'api', 'console'] as const
export type NodeRole = (typeof NODE_ROLES)[number]

interface SnapshotReport {
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
  /** Of the primary. */
  readonly streams?: readonly StreamReport[] | undefined
  readonly snapshots?: readonly SnapshotReport[] | undefined
}

/** The nodes of the cluster, on each of them. */
export class Nodes {
  readonly #nodes: Family<ClusterNode>

  constructor(environment: Environment) {
    this.#nodes = new Family(environment.table('nodes'), 'node')
  }

  /** Sorted by name. */
  all(): ClusterNode[] {
    const nodes = Array.from(this.#nodes.range(Buffer.alloc(0)), ({ value }) => value)
    return nodes.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  put(node: ClusterNode): void {
    for (const { id, name, reportedAtMs } of this.all()) {
      // A node that began with a snapshot has another id than before.
      if (name === node.name || node.reportedAtMs - reportedAtMs > SILENT_MS) this.#nodes.remove(uuidBytes(id))
    }
    this.#nodes.put(uuidBytes(node.id), node)
  }

  clear(): void {
    for (const { id } of this.all()) this.#nodes.remove(uuidBytes(id))
  }
}
