import { createHash, randomBytes } from 'node:crypto'
import type { User } from '../../engine/store/users.ts'

const SECRET_BYTES = 32

/** 256 random bits, encoded in characters that cookies allow. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url')
}

/**
 * The stored form of a secret: its SHA-256 in hex. A random secret of 256 bits needs no slow hash.
 */
export function secretHash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

/**
 * The hash of the browser's cookie if this user signed in from the browser before; otherwise
 * undefined.
 */
export function trustedBrowser(user: User | undefined, cookie: string | undefined): string | undefined {
  if (user === undefined || cookie === undefined) return undefined
  const hash = secretHash(cookie)
  return user.browsers.some((each) => each.hash === hash) ? hash : undefined
}
