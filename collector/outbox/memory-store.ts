import type { QueueTable } from '../../engine/kernel/lmdb/queue.ts'
import type { OutboxStore } from './outbox-store.ts'

/**
 * `--outbox memory`: keeps the outbox in memory if no disk is writable. The events are lost when
 * the process ends.
 */
export class MemoryStore implements OutboxStore {
  readonly #tables = new Map<string, MemoryTable>()

  table(name: string): MemoryTable {
    let table = this.#tables.get(name)
    if (table === undefined) {
      table = new MemoryTable()
      this.#tables.set(name, table)
    }
    return table
  }

  write<T>(work: () => T): T {
    return work()
  }

  shrink<T>(work: () => T): T {
    return work()
  }

  async close(): Promise<void> {
    this.#tables.clear()
  }
}

/** Sorted keys in an array: a queue adds at the end and removes at the front. */
export class MemoryTable implements QueueTable {
  #keys: Buffer[] = []
  #values: Buffer[] = []
  /** Entries before this index are empty. */
  #front = 0

  get(key: Buffer): Buffer | undefined {
    const at = this.#indexOf(key)
    return this.#keys[at]?.equals(key) ? this.#values[at] : undefined
  }

  putSync(key: Buffer, value: Buffer): void {
    const at = this.#indexOf(key)
    if (this.#keys[at]?.equals(key)) {
      this.#values[at] = detached(value)
      return
    }
    this.#keys.splice(at, 0, detached(key))
    this.#values.splice(at, 0, detached(value))
  }

  footprintOf(key: Buffer, value: Buffer): number {
    return key.length + value.length + RECORD_OVERHEAD_BYTES
  }

  removeSync(key: Buffer): void {
    const at = this.#indexOf(key)
    if (!this.#keys[at]?.equals(key)) return
    if (at > this.#front) {
      this.#keys.splice(at, 1)
      this.#values.splice(at, 1)
      return
    }
    this.#values[at] = EMPTY
    this.#front++
    if (this.#front * 2 < this.#keys.length) return
    this.#keys = this.#keys.slice(this.#front)
    this.#values = this.#values.slice(this.#front)
    this.#front = 0
  }

  *getRange({
    start,
    end,
    limit = Number.POSITIVE_INFINITY,
    reverse = false,
  }: Parameters<QueueTable['getRange']>[0]): Iterable<{ key: Buffer; value: Buffer }> {
    const step = reverse ? -1 : 1
    let at = this.#indexOf(start)
    if (reverse && !this.#keys[at]?.equals(start)) at--
    for (let left = limit; left > 0 && at >= this.#front && at < this.#keys.length; left--, at += step) {
      const key = this.#keys[at] as Buffer
      if (end !== undefined && key.compare(end) !== -step) return
      yield { key, value: this.#values[at] as Buffer }
    }
  }

  /** Returns the index of the first key that is not less than this key. */
  #indexOf(key: Buffer): number {
    let from = this.#front
    let to = this.#keys.length
    while (from < to) {
      const middle = (from + to) >>> 1
      if ((this.#keys[middle] as Buffer).compare(key) < 0) from = middle + 1
      else to = middle
    }
    return from
  }
}

const EMPTY = Buffer.alloc(0)

/** Two buffers, each with its own ArrayBuffer, as measured on 64-bit Node. */
const RECORD_OVERHEAD_BYTES = 512

/** A small buffer is a slice of Node's pool and would keep the whole slab in memory. */
function detached(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
