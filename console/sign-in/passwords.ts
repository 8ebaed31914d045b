import { randomBytes } from 'node:crypto'
import { hash, verify } from '@node-rs/argon2'
import { OverloadError } from '../change-sender.ts'
import { type FormFields, RejectedForm } from '../form.ts'
import type { CheckResult } from '../metrics.ts'
import { isCommonPassword } from './common-passwords.ts'

/**
 * Argon2id with the parameters of OWASP's Password Storage Cheat Sheet: 19 MiB, two passes, one
 * lane.
 */
const ARGON2ID = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const
export const PASSWORD_LENGTH_MIN = 12
/** Maximum bytes. A longer password is rejected, not truncated. */
const PASSWORD_BYTES_MAX = 1024
/**
 * Maximum number of queued hashes. A hash takes about 30 ms, so the last one waits about a second.
 */
const WAITING_MAX = 32

/**
 * Returns why a new password is rejected, or undefined if it is accepted. It must not consist of
 * the words in `names`.
 */
export function passwordFault(password: string, names: readonly string[] = []): string | undefined {
  if ([...password].length < PASSWORD_LENGTH_MIN) return `Use at least ${PASSWORD_LENGTH_MIN} characters`
  if (!isPossiblePassword(password)) return `Use at most ${PASSWORD_BYTES_MAX} bytes`
  const core = coreOf(password)
  if (isRepetition(password.toLowerCase()) || isRepetition(core)) return 'This password is too easy to guess'
  if (names.some((name) => name.length >= 3 && coreOf(name) === core)) return 'Do not use a name as the password'
  return isCommonPassword([password.toLowerCase(), core]) ? 'This password is too common' : undefined
}

/** The new password in the fields `password` and `repeated`. @throws RejectedForm */
export function newPasswordIn(fields: FormFields, names: readonly string[]): string {
  const password = fields.text('password')
  const fault = passwordFault(password, names)
  if (fault !== undefined) throw new RejectedForm({ password: fault })
  if (password !== fields.text('repeated')) throw new RejectedForm({ repeated: 'The two passwords differ' })
  return password
}

/** Whether an account can have this password. */
export function isPossiblePassword(password: string): boolean {
  return Buffer.byteLength(password) <= PASSWORD_BYTES_MAX
}

/** The password without a common suffix: `Password2026!` becomes `password`. */
function coreOf(password: string): string {
  return password.toLowerCase().replace(/[^\p{L}]+$/u, '')
}

/** Whether a part of at most six characters repeats, as in `abcabcabc` and `aaaa`. */
function isRepetition(text: string): boolean {
  return /^(.{1,6}?)\1+$/u.test(text)
}

/** Hashes passwords, one at a time, because each takes 19 MiB and a whole core. */
export class PasswordHasher {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #dummy: Promise<string> | undefined
  readonly #note: (result: CheckResult) => void

  /** @param note called with the result of each check */
  constructor(note: (result: CheckResult) => void = () => {}) {
    this.#note = note
  }

  /** @throws OverloadError if too many hashes are queued. */
  hash(password: string): Promise<string> {
    return this.#inTurn(() => hash(password, ARGON2ID))
  }

  /**
   * Whether the password matches the hash. If the hash is undefined or '', because the user does
   * not exist or has no password, it takes the same time and returns false.
   *
   * @throws OverloadError if too many hashes are queued.
   */
  async verify(stored: string | undefined, password: string): Promise<boolean> {
    try {
      const matches = await this.#matches(stored, password)
      this.#note(matches ? 'correct' : 'wrong')
      return matches
    } catch (error) {
      if (error instanceof OverloadError) this.#note('overloaded')
      throw error
    }
  }

  async #matches(stored: string | undefined, password: string): Promise<boolean> {
    if (!isPossiblePassword(password)) return false
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
