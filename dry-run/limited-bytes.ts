import type { ByteSource } from '../engine/process/byte-source.ts'

/**
 * A source that ends when a limit on its bytes or on the process's time is reached. Checked at each
 * read and not by a timer: decompression may not return to the event loop for seconds.
 */
export class LimitedBytes implements ByteSource {
  /** Bytes that were read. */
  bytes = 0
  ended: 'complete' | 'bytes' | 'time' = 'complete'
  readonly #source: ByteSource
  readonly #bytesMax: number
  readonly #cpuMsMax: number

  constructor(source: ByteSource, bytesMax: number, cpuMsMax: number) {
    this.#source = source
    this.#bytesMax = bytesMax
    this.#cpuMsMax = cpuMsMax
  }

  get bytesRead(): number {
    return this.#source.bytesRead
  }
  get bytesTotal(): number {
    return this.#source.bytesTotal
  }
  get live(): boolean {
    return this.#source.live
  }

  async read(into: Uint8Array, at: number, bytes: number): Promise<number> {
    if (this.#isOverLimit()) return 0
    const got = await this.#source.read(into, at, Math.min(bytes, this.#bytesMax + 1 - this.bytes))
    this.bytes += got
    return this.bytes > this.#bytesMax ? this.read(into, at, bytes) : got
  }

  close(): void {
    this.#source.close()
  }

  #isOverLimit(): boolean {
    const { user, system } = process.cpuUsage()
    if (this.bytes > this.#bytesMax) this.ended = 'bytes'
    else if ((user + system) / 1000 > this.#cpuMsMax) this.ended = 'time'
    return this.ended !== 'complete'
  }
}
