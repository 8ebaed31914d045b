import { type ByteSource, WrappedBytes } from '../engine/process/byte-source.ts'

/**
 * A source that ends when a limit on its bytes or on the process's time is reached. Checked at each
 * read and not by a timer: decompression may not return to the event loop for seconds.
 */
export class LimitedBytes extends WrappedBytes {
  /** Bytes that were read. */
  bytes = 0
  ended: 'complete' | 'bytes' | 'time' = 'complete'
  readonly #bytesMax: number
  readonly #cpuMsMax: number

  constructor(source: ByteSource, bytesMax: number, cpuMsMax: number) {
    super(source)
    this.#bytesMax = bytesMax
    this.#cpuMsMax = cpuMsMax
  }

  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    if (this.#isOverTime()) return 0
    const left = this.#bytesMax - this.bytes
    // At the limit, another byte shows that there is more.
    const got = await this.source.read(into, at, Math.max(1, Math.min(bytes, left)))
    if (got > 0 && left === 0) this.ended = 'bytes'
    if (this.ended !== 'complete') return 0
    this.bytes += got
    return got
  }

  #isOverTime(): boolean {
    const { user, system } = process.cpuUsage()
    if (this.ended === 'complete' && (user + system) / 1000 > this.#cpuMsMax) this.ended = 'time'
    return this.ended !== 'complete'
  }
}
