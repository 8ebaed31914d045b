import { randomBytes } from 'node:crypto'
import { openRecord, sealRecord } from '../../engine/kernel/lmdb/record.ts'

/*
 * The collector's instances: the first half of each event's ID. Each start begins a new instance at
 * the next sequence. If an outbox was restored from a backup or copied with a machine, its new
 * events therefore get new IDs. Waiting events keep theirs.
 *
 *   record: for each instance with waiting events, and for the last instance:
 *           first sequence, u64 big-endian; instance, 8 bytes
 */
const RECORD_VERSION = 1
const SEQUENCE_BYTES = 8
const INSTANCE_BYTES = 8
const RANGE_BYTES = SEQUENCE_BYTES + INSTANCE_BYTES

interface InstanceRange {
  readonly from: number
  /** 16 hex digits. */
  readonly instance: string
}

export class Instances {
  readonly #ranges: readonly InstanceRange[]

  private constructor(ranges: readonly InstanceRange[]) {
    this.#ranges = ranges
  }

  /** @throws Fault STORE_DAMAGED, STORE_VERSION. */
  static of(stored: Buffer | undefined): Instances {
    if (stored === undefined) return new Instances([])
    const bytes = openRecord(stored, RECORD_VERSION, 'collector instances')
    const ranges: InstanceRange[] = []
    for (let at = 0; at < bytes.length; at += RANGE_BYTES) {
      const from = Number(bytes.readBigUInt64BE(at))
      ranges.push({ from, instance: bytes.toString('hex', at + SEQUENCE_BYTES, at + RANGE_BYTES) })
    }
    return new Instances(ranges)
  }

  /**
   * Returns the instances with a new one from `nextSequence` on, and without those that have no
   * waiting events.
   */
  started(firstSequence: number, nextSequence: number): Instances {
    const waiting = this.#ranges.filter(({ from }, index) => {
      const end = this.#ranges[index + 1]?.from ?? nextSequence
      return end > firstSequence && from < nextSequence
    })
    return new Instances([...waiting, { from: nextSequence, instance: randomBytes(INSTANCE_BYTES).toString('hex') }])
  }

  get record(): Buffer {
    const parts = this.#ranges.map(({ from, instance }) => {
      const bytes = Buffer.alloc(RANGE_BYTES)
      bytes.writeBigUInt64BE(BigInt(from))
      bytes.write(instance, SEQUENCE_BYTES, 'hex')
      return bytes
    })
    return sealRecord(RECORD_VERSION, Buffer.concat(parts))
  }

  /** The last instance; empty before the first start. */
  get current(): string {
    return this.#ranges.at(-1)?.instance ?? ''
  }

  /** Returns the instance of the event with this sequence. */
  at(sequence: number): string {
    for (let at = this.#ranges.length - 1; at > 0; at--) {
      const { from, instance } = this.#ranges[at] as InstanceRange
      if (from <= sequence) return instance
    }
    return this.#ranges[0]?.instance ?? ''
  }
}
