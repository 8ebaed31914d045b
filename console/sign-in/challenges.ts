import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { OverloadError } from '../changes.ts'

/** An authenticator must answer a challenge within this time. */
export const CHALLENGE_MS = 5 * MINUTE_MS
/**
 * Maximum number of used challenges in memory, each for five minutes. At the limit, no further
 * passkey is accepted.
 */
const USED_MAX = 10_000
/** Of these, of one user, so that no user can block the passkeys of others. */
const USED_PER_USER_MAX = 200

/** The purpose of a challenge. A response to a challenge of another purpose is refused. */
export type ChallengePurpose = 'register' | 'sign-in' | 'confirm'

/*
 * A challenge: random bytes, the time when it expires, and a MAC over both, the purpose and the
 * session. In base64url, as in clientDataJSON.
 *
 *   0   random            16 bytes
 *   16  expires           6 bytes, milliseconds since 1970, big-endian
 *   22  HMAC-SHA256       32 bytes
 */
const EXPIRES_OFFSET = 16
const EXPIRES_BYTES = 6
const MAC_OFFSET = EXPIRES_OFFSET + EXPIRES_BYTES
const CHALLENGE_BYTES = MAC_OFFSET + 32

/**
 * Makes challenges and recognizes them. A challenge is authenticated by a key of this thread, so
 * that nothing is stored for challenges that nobody answers, and requests for challenges cannot
 * displace those of others. Only used challenges are remembered, until they expire.
 */
export class Challenges {
  readonly #key = randomBytes(32)
  /** Used challenges, with the time when they can be forgotten. Oldest first. */
  readonly #used = new Map<string, { readonly userId: string; readonly untilMs: number }>()
  /** The number of them for each user. */
  readonly #perUser = new Map<string, number>()

  /** @param session the id of the session that may answer; '' if nobody is signed in. */
  make(purpose: ChallengePurpose, session: string, nowMs: number): string {
    const head = Buffer.alloc(MAC_OFFSET)
    randomBytes(EXPIRES_OFFSET).copy(head)
    head.writeUIntBE(nowMs + CHALLENGE_MS, EXPIRES_OFFSET, EXPIRES_BYTES)
    return Buffer.concat([head, this.#mac(purpose, session, head)]).toString('base64url')
  }

  /** Whether a challenge may be answered now. A used one is `wrong`. */
  check(challenge: string, purpose: ChallengePurpose, session: string, nowMs: number): 'valid' | 'expired' | 'wrong' {
    const bytes = Buffer.from(challenge, 'base64url')
    // Other spellings of the same bytes would be other keys of the table.
    if (bytes.length !== CHALLENGE_BYTES || bytes.toString('base64url') !== challenge) return 'wrong'
    const head = bytes.subarray(0, MAC_OFFSET)
    if (!timingSafeEqual(bytes.subarray(MAC_OFFSET), this.#mac(purpose, session, head))) return 'wrong'
    const leftMs = head.readUIntBE(EXPIRES_OFFSET, EXPIRES_BYTES) - nowMs
    // More than five minutes are left if the clock was set back.
    if (leftMs <= 0 || leftMs > CHALLENGE_MS) return 'expired'
    return this.#used.has(challenge) ? 'wrong' : 'valid'
  }

  /**
   * Uses a challenge that was checked. Returns false if another response used it meanwhile.
   *
   * @param userId whose passkey has signed it
   * @throws OverloadError if too many challenges were used, by all users or by this one
   */
  use(challenge: string, userId: string, nowMs: number): boolean {
    this.#forget(nowMs)
    if (this.#used.has(challenge)) return false
    const ofUser = this.#perUser.get(userId) ?? 0
    if (this.#used.size >= USED_MAX || ofUser >= USED_PER_USER_MAX) {
      throw new OverloadError('too many challenges were used')
    }
    this.#used.set(challenge, { userId, untilMs: nowMs + CHALLENGE_MS })
    this.#perUser.set(userId, ofUser + 1)
    return true
  }

  #mac(purpose: ChallengePurpose, session: string, head: Uint8Array): Buffer {
    return createHmac('sha256', this.#key).update(`${purpose} ${session} `).update(head).digest()
  }

  #forget(nowMs: number): void {
    for (const [challenge, { userId, untilMs }] of this.#used) {
      if (untilMs > nowMs) return
      this.#used.delete(challenge)
      const left = (this.#perUser.get(userId) ?? 0) - 1
      if (left > 0) this.#perUser.set(userId, left)
      else this.#perUser.delete(userId)
    }
  }
}
