import { ARRIVING_BYTES_PER_ORGANIZATION_MAX, BATCH_BYTES_MAX, BODIES_BYTES_MAX, DECOMPRESSING_MAX } from '../limits.ts'

/**
 * The bytes of bodies that the listener holds, from a request's header to the answer: bodies that arrive, wait to be decompressed, or wait for the
 * disk. While a commit takes long nothing is answered, and senders that are many or do not wait would fill the memory.
 */
export class BodyMemory {
  readonly #bytesMax: number
  readonly #arrivingMax: number
  #held = 0
  /** Bytes of bodies on their way, by organization. */
  readonly #arriving = new Map<string, number>()
  #decompressing = 0
  readonly #queue: (() => void)[] = []

  constructor(bytesMax = BODIES_BYTES_MAX, arrivingMax = ARRIVING_BYTES_PER_ORGANIZATION_MAX) {
    this.#bytesMax = bytesMax
    this.#arrivingMax = arrivingMax
  }

  /** Bytes that are held now. */
  get held(): number {
    return this.#held
  }

  /** What a body will take at most, as its Content-Length announces it, in bytes. */
  static needOf(contentLength: string): number {
    const announced = contentLength === '' ? BATCH_BYTES_MAX : Number(contentLength)
    return announced >= 0 ? Math.min(announced, BATCH_BYTES_MAX) : BATCH_BYTES_MAX
  }

  /** Takes room where there is so much; the taker gives it back. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.#bytesMax) return false
    this.#held += bytes
    return true
  }

  /**
   * The same for a body that is announced, of which an organization has a part only: otherwise a few bodies that never come would keep all others out.
   * The taker tells by `arrived` when it is no longer on its way, and still gives the room back.
   */
  takeArriving(organizationId: string, bytes: number): boolean {
    const before = this.#arriving.get(organizationId) ?? 0
    if (before + bytes > this.#arrivingMax || !this.take(bytes)) return false
    this.#arriving.set(organizationId, before + bytes)
    return true
  }

  arrived(organizationId: string, bytes: number): void {
    const left = (this.#arriving.get(organizationId) ?? 0) - bytes
    if (left > 0) this.#arriving.set(organizationId, left)
    else this.#arriving.delete(organizationId)
  }

  give(bytes: number): void {
    this.#held -= bytes
  }

  /** Runs `work`, which makes up to BATCH_UNPACKED_BYTES_MAX (limits.ts), when fewer than DECOMPRESSING_MAX of its kind run. */
  async decompress<T>(work: () => Promise<T>): Promise<T> {
    if (this.#decompressing === DECOMPRESSING_MAX) await new Promise<void>((resolve) => this.#queue.push(resolve))
    else this.#decompressing++
    try {
      return await work()
    } finally {
      const next = this.#queue.shift()
      // Whoever is next takes the place over.
      if (next === undefined) this.#decompressing--
      else next()
    }
  }
}
