import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { OverloadError } from '../changes.ts'
import { isCommonPassword } from './common-passwords.ts'

/** Argon2id as OWASP's Password Storage Cheat Sheet asks for: 19 MiB, two passes, one lane. */
const ARGON2ID = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const
export const PASSWORD_LENGTH_MIN = 12
/** Bytes. A longer password is refused, not truncated. */
export const PASSWORD_BYTES_MAX = 1024
/** Hashes that wait for their turn. One takes about 30 ms, so the last one waits about a second. */
const WAITING_MAX = 32

/**
 * Why a new password is refused; undefined if it is good. `names` are words that it must not
 * consist of.
 */
export function passwordFault(password: string, names: readonly string[] = []): string | undefined {
  if ([...password].length < PASSWORD_LENGTH_MIN) return `Use at least ${PASSWORD_LENGTH_MIN} characters`
  if (Buffer.byteLength(password) > PASSWORD_BYTES_MAX) return `Use at most ${PASSWORD_BYTES_MAX} bytes`
  const core = coreOf(password)
  if (isRepetition(password.toLowerCase()) || isRepetition(core)) return 'This password is too easy to guess'
  if (names.some((name) => name.length >= 3 && coreOf(name) === core)) return 'Do not use a name as the password'
  return isCommonPassword([password.toLowerCase(), core]) ? 'This password is too common' : undefined
}

/** A password without what people add at its end: `Password2026!` is `password`. */
function coreOf(password: string): string {
  return password.toLowerCase().replace(/[^\p{L}]+$/u, '')
}

/** `abcabcabc` and `aaaa`: a part of at most six characters that repeats. */
function isRepetition(text: string): boolean {
  return /^(.{1,6}?)\1+$/u.test(text)
}

/** Hashes passwords, one at a time: each takes 19 MiB and a whole core. */
export class PasswordHasher {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #dummy: Promise<string> | undefined

  /** @throws OverloadError where too many wait. */
  hash(password: string): Promise<string> {
    return this.#inTurn(() => hash(password, ARGON2ID))
  }

  /**
   * Whether it is the password of this hash. With undefined or '', for an unknown name or a user
   * without a password, it takes as long and answers false.
   *
   * @throws OverloadError where too many wait.
   */
  async verify(stored: string | undefined, password: string): Promise<boolean> {
    if (Buffer.byteLength(password) > PASSWORD_BYTES_MAX) return false
    const known = stored === undefined || stored === '' ? undefined : stored
    this.#dummy ??= hash(randomBytes(16).toString('hex'), ARGON2ID)
    const against = known ?? (await this.#dummy)
    const matches = await this.#inTurn(() => verify(against, password))
    return matches && known !== undefined
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#waiting >= WAITING_MAX) throw new OverloadError('too many passwords wait for their hash')
    this.#waiting++
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      this.#waiting--
    }
  }
}
