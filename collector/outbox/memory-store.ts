import type { QueueTable } from '../../engine/lmdb/queue.ts'
import type { OutboxStore } from './outbox-store.ts'

/** `--outbox memory`: what the outbox stands in where no disk may be written. It ends with the process. */
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

/** Keys in order, in an array: a queue adds at its end and removes at its front. */
export class MemoryTable implements QueueTable {
  #keys: Buffer[] = []
  #values: Buffer[] = []
  /** Places before it are empty. */
  #front = 0

  get(key: Buffer): Buffer | undefined {
    const at = this.#place(key)
    return this.#keys[at]?.equals(key) ? this.#values[at] : undefined
  }

  putSync(key: Buffer, value: Buffer): void {
    const at = this.#place(key)
    if (this.#keys[at]?.equals(key)) {
      this.#values[at] = alone(value)
      return
    }
    this.#keys.splice(at, 0, alone(key))
    this.#values.splice(at, 0, alone(value))
  }

  footprintOf(key: Buffer, value: Buffer): number {
    return key.length + value.length + RECORD_OVERHEAD_BYTES
  }

  removeSync(key: Buffer): void {
    const at = this.#place(key)
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
    let at = this.#place(start)
    if (reverse && !this.#keys[at]?.equals(start)) at--
    for (let left = limit; left > 0 && at >= this.#front && at < this.#keys.length; left--, at += step) {
      const key = this.#keys[at] as Buffer
      if (end !== undefined && key.compare(end) !== -step) return
      yield { key, value: this.#values[at] as Buffer }
    }
  }

  /** Of the first key that is not before this one. */
  #place(key: Buffer): number {
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

/** Two buffers, each with an ArrayBuffer of its own, as measured on 64-bit Node. */
const RECORD_OVERHEAD_BYTES = 512

/** A small buffer is a part of a slab of Node's pool, and would keep all of it. */
function alone(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length)
  bytes.copy(copy)
  return copy
}
