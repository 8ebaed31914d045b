import type { User } from '../../engine/store/users.ts'
import { secretHash } from './secrets.ts'

/**
 * The hash of the browser's cookie if this user signed in from the browser before; otherwise
 * undefined.
 */
export function trustedBrowser(user: User | undefined, cookie: string | undefined): string | undefined {
  if (user === undefined || cookie === undefined) return undefined
  const hash = secretHash(cookie)
  return user.browsers.some((each) => each.hash === hash) ? hash : undefined
}
