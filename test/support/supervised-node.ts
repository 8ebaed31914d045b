import type { TestNode } from './cluster-node.ts'
import type { Ended } from './programs.ts'

/**
 * How a node of a cluster may end by itself: another one became the primary, or it reached no
 * quorum of brokers.
 */
export const EXPECTED_END = /REPLACED|BROKERS_UNREACHABLE/

/** A node that is started again whenever it has ended, as systemd does. */
export class SupervisedNode {
  readonly node: TestNode
  readonly #onEnded: (ended: Ended) => void
  #signal: NodeJS.Signals | undefined
  #running: Promise<void> = Promise.resolve()
  #last: Ended | undefined

  /** @param onEnded receives the end of each process, except the one that stop() ends */
  constructor(node: TestNode, onEnded: (ended: Ended) => void) {
    this.node = node
    this.#onEnded = onEnded
  }

  /** Does not wait until the node serves. */
  start(): void {
    this.#signal = undefined
    this.#running = this.#run()
  }

  /** Ends the node with the signal, and does not start it again. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended | undefined> {
    this.#signal = signal
    await this.node.kill(signal)
    await this.#running
    return this.#last
  }

  async #run(): Promise<void> {
    while (this.#signal === undefined) {
      try {
        await this.node.start()
      } catch (error) {
        // Killed before it listened, or there is no quorum of brokers.
        this.#ended({ status: null, signal: null, stdout: '', stderr: (error as Error).message })
        continue
      }
      if (this.#signal !== undefined) await this.node.kill(this.#signal)
      this.#ended(await this.node.service.ended)
    }
  }

  #ended(ended: Ended): void {
    this.#last = ended
    if (this.#signal === undefined) this.#onEnded(ended)
  }
}
