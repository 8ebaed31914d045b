import { ADMITTED_MS, HOLDING_MS, LEASING_MS } from './protocol.ts'

/** A row of the table of nodes. The stamp differs with each report. */
export interface Sighted {
  readonly id: string
  readonly stamp: string
}

interface Sighting {
  stamp: string
  /** The report was stored after this time. */
  afterMs: number
  /** The report was stored before this time. */
  beforeMs: number
}

/**
 * When nodes last reported, by the monotonic clock of this node: the home grants only to nodes that
 * the next home knows. It knows those whose report it has repeated.
 */
export class NodeSightings {
  readonly #nodes = new Map<string, Sighting>()
  #polledMs: number | undefined

  /** @param polledMs when the rows were read, all of which the brokers have */
  poll(rows: readonly Sighted[], polledMs: number): void {
    const afterMs = this.#polledMs
    this.#polledMs = polledMs
    for (const { id, stamp } of rows) {
      const known = this.#nodes.get(id)
      if (known?.stamp === stamp) continue
      // At the first poll, the report may be old. It admits nobody, and may be that of a holder.
      this.#nodes.set(id, { stamp, afterMs: afterMs ?? Number.NEGATIVE_INFINITY, beforeMs: polledMs })
    }
    for (const [id, { beforeMs }] of this.#nodes) {
      if (polledMs - beforeMs >= LEASING_MS && !rows.some((row) => row.id === id)) this.#nodes.delete(id)
    }
  }

  /** These nodes may be holders if they were never sighted. It admits nobody. */
  addUnknown(ids: readonly string[], nowMs: number): void {
    for (const id of ids) {
      if (this.#nodes.has(id)) continue
      this.#nodes.set(id, { stamp: '', afterMs: Number.NEGATIVE_INFINITY, beforeMs: nowMs })
    }
  }

  /** Another node is the home now. It may have read reports later than this one. */
  onTakeover(nowMs: number): void {
    for (const node of this.#nodes.values()) node.beforeMs = nowMs
  }

  isAdmitted(id: string, nowMs: number): boolean {
    return nowMs - (this.#nodes.get(id)?.afterMs ?? Number.NEGATIVE_INFINITY) < ADMITTED_MS
  }

  /** The nodes that the home may grant to. */
  admitted(nowMs: number): string[] {
    return [...this.#nodes.keys()].filter((id) => this.isAdmitted(id, nowMs))
  }

  /** The nodes that may have grants that count. */
  holders(nowMs: number): string[] {
    return this.#within(HOLDING_MS, nowMs)
  }

  /** The nodes that may have uses of an allowance that count. */
  lessees(nowMs: number): string[] {
    return this.#within(LEASING_MS, nowMs)
  }

  #within(periodMs: number, nowMs: number): string[] {
    return [...this.#nodes].flatMap(([id, { beforeMs }]) => (nowMs - beforeMs < periodMs ? [id] : []))
  }
}
