/**
 * Cookies of the console. The prefix `__Host-` binds a cookie to this host, its path `/`, and TLS.
 */
const PREFIX = '__Host-'
type CookieName = 'session' | 'browser' | 'theme' | 'oidc'

/** The cookies of a request. */
export class Cookies {
  readonly #values = new Map<string, string>()

  /** Parses a Cookie field (RFC 6265 §5.4). The first cookie of a name wins. */
  constructor(field: string) {
    for (const pair of field.split(';')) {
      const at = pair.indexOf('=')
      const name = pair.slice(0, at).trim()
      if (at > 0 && !this.#values.has(name)) this.#values.set(name, pair.slice(at + 1).trim())
    }
  }

  get(name: CookieName): string | undefined {
    return this.#values.get(PREFIX + name)
  }
}

interface CookieOptions {
  /** Lifetime in seconds. Absent: until the browser closes. */
  readonly seconds?: number
  /**
   * Lax: browsers also send the cookie when another site, such as an identity provider, links here.
   */
  readonly sameSite?: 'Strict' | 'Lax'
}

/** The value of a Set-Cookie field. */
export function setCookie(name: CookieName, value: string, options: CookieOptions = {}): string {
  if (!/^[\w.-]*$/.test(value)) throw new RangeError(`cookie ${name}: a value of other characters`)
  const { seconds, sameSite = 'Strict' } = options
  const age = seconds === undefined ? '' : `; Max-Age=${seconds}`
  return `${PREFIX}${name}=${value}; Path=/; Secure; HttpOnly; SameSite=${sameSite}${age}`
}

/** Deletes a cookie in the browser. */
export function clearCookie(name: CookieName): string {
  return setCookie(name, '', { seconds: 0 })
}
