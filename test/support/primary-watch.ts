import { setTimeout as later } from 'node:timers/promises'
import type { TestNode } from './cluster-node.ts'

const POLL_MS = 200

/** Another node became the primary. With times of performance.now(). */
export interface PrimaryChange {
  readonly from: string
  readonly to: string
  /** When the old one was last seen as the primary, and the new one first. */
  readonly fromMs: number
  readonly toMs: number
}

/** Notes each change of the primary until it is stopped. */
export class PrimaryWatch {
  readonly changes: PrimaryChange[] = []
  #isOver = false
  readonly #running: Promise<void>

  constructor(nodes: readonly TestNode[]) {
    this.#running = this.#watch(nodes)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  async #watch(nodes: readonly TestNode[]): Promise<void> {
    let last: { readonly name: string; readonly seenMs: number } | undefined
    for (; !this.#isOver; await later(POLL_MS)) {
      const askedMs = performance.now()
      const found = await Promise.all(nodes.map((node) => node.isPrimary().catch(() => false)))
      const name = nodes.find((node, index) => found[index] && node.name !== last?.name)?.name
      if (last !== undefined && name !== undefined) {
        this.changes.push({ from: last.name, to: name, fromMs: last.seenMs, toMs: performance.now() })
      }
      const isSame = found[nodes.findIndex((node) => node.name === last?.name)] === true
      if (name !== undefined) last = { name, seenMs: askedMs }
      else if (last !== undefined && isSame) last = { name: last.name, seenMs: askedMs }
    }
  }
}
