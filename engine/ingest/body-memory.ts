import { ARRIVING_BYTES_PER_ORGANIZATION_MAX, BATCH_BYTES_MAX, BODIES_BYTES_MAX, DECOMPRESSING_MAX } from '../limits.ts'

/**
 * Limits the bytes of HTTPS bodies in memory, from the request header to the response: bodies that
 * arrive, wait for decompression, or wait for the disk. During a slow commit nothing is answered,
 * so without a limit many senders would fill the memory.
 */
export class BodyMemory {
  readonly #bytesMax: number
  readonly #arrivingMax: number
  #held = 0
  /** Announced bytes of arriving bodies, by organization. */
  readonly #arriving = new Map<string, number>()
  #decompressing = 0
  readonly #queue: (() => void)[] = []

  constructor(bytesMax = BODIES_BYTES_MAX, arrivingMax = ARRIVING_BYTES_PER_ORGANIZATION_MAX) {
    this.#bytesMax = bytesMax
    this.#arrivingMax = arrivingMax
  }

  /** Reserved bytes. */
  get held(): number {
    return this.#held
  }

  /** The maximum size of a body in bytes, from its Content-Length. */
  static bytesNeeded(contentLength: string): number {
    const announced = contentLength === '' ? BATCH_BYTES_MAX : Number(contentLength)
    return announced >= 0 ? Math.min(announced, BATCH_BYTES_MAX) : BATCH_BYTES_MAX
  }

  /** Reserves bytes. Returns false if there are not enough. The caller releases them. */
  reserve(bytes: number): boolean {
    if (this.#held + bytes > this.#bytesMax) return false
    this.#held += bytes
    return true
  }

  /**
   * Reserves the announced bytes of an arriving body. Each organization gets only a part of the
   * memory: otherwise a few bodies that never arrive would lock out all others. The caller calls
   * `arrived` when the body no longer arrives, and still releases the bytes.
   */
  reserveArriving(organizationId: string, bytes: number): boolean {
    const before = this.#arriving.get(organizationId) ?? 0
    if (before + bytes > this.#arrivingMax || !this.reserve(bytes)) return false
    this.#arriving.set(organizationId, before + bytes)
    return true
  }

  arrived(organizationId: string, bytes: number): void {
    const left = (this.#arriving.get(organizationId) ?? 0) - bytes
    if (left > 0) this.#arriving.set(organizationId, left)
    else this.#arriving.delete(organizationId)
  }

  release(bytes: number): void {
    this.#held -= bytes
  }

  /**
   * Runs `work`, which produces at most BATCH_UNPACKED_BYTES_MAX (limits.ts), at most
   * DECOMPRESSING_MAX at a time.
   */
  async decompress<T>(work: () => Promise<T>): Promise<T> {
    if (this.#decompressing === DECOMPRESSING_MAX) await new Promise<void>((resolve) => this.#queue.push(resolve))
    else this.#decompressing++
    try {
      return await work()
    } finally {
      const next = this.#queue.shift()
      // The next waiter takes over this slot.
      if (next === undefined) this.#decompressing--
      else next()
    }
  }
}
