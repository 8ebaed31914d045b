import type { ProviderSignIn } from '../../engine/admin/accounts.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { setCookie } from '../http/cookies.ts'
import type { Guest } from '../http/visit.ts'
import { newSecret, secretHash } from '../sign-in/secrets.ts'

/** Lifetime of the cookie that identifies a trusted browser. */
const BROWSER_SECONDS = 90 * 86_400

/**
 * Starts a session for an authenticated user. The cookie value is always new, whatever the browser
 * sent.
 */
export async function startSession(guest: Guest, userId: string, to: string, organizationId = ''): Promise<Answer> {
  const { site, request } = guest
  const session = newSecret()
  const browser = request.cookies.get('browser') ?? newSecret()
  await site.changes.account('session.create', {
    userId,
    from: {
      sessionHash: secretHash(session),
      endedHash: guest.identity?.session.hash ?? '',
      browserHash: secretHash(browser),
      address: request.address,
      browser: browserName(request.userAgent),
      organizationId,
    },
  })
  const cookies = [setCookie('session', session), setCookie('browser', browser, { seconds: BROWSER_SECONDS })]
  return redirect(to, cookies)
}

/**
 * Starts a session after a sign-in with an identity provider, and returns its cookie.
 *
 * @param endedHash the session that the browser had before; '' if none
 */
export async function startProviderSession(
  { site, request }: Guest,
  userId: string,
  endedHash: string,
  provider: ProviderSignIn,
): Promise<string> {
  const session = newSecret()
  await site.changes.account('session.create', {
    userId,
    from: {
      sessionHash: secretHash(session),
      endedHash,
      browserHash: '',
      address: request.address,
      browser: browserName(request.userAgent),
      organizationId: provider.organizationId,
      provider,
    },
  })
  return setCookie('session', session)
}

const BROWSERS = [
  [/\bEdg(?:e|A|iOS)?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\b(?:Firefox|FxiOS)\//, 'Firefox'],
  [/\b(?:HeadlessChrome|Chrome|CriOS|Chromium)\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
] as const
const SYSTEMS = [
  [/\bAndroid\b/, 'Android'],
  [/\b(?:iPhone|iPad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bCrOS\b/, 'ChromeOS'],
  [/\bLinux\b/, 'Linux'],
] as const

/**
 * Describes a User-Agent for the list of sessions: `Firefox on Linux`. The original text is not
 * stored.
 */
export function browserName(userAgent: string): string {
  const browser = BROWSERS.find(([pattern]) => pattern.test(userAgent))?.[1] ?? 'Unknown browser'
  const system = SYSTEMS.find(([pattern]) => pattern.test(userAgent))?.[1]
  return system === undefined ? browser : `${browser} on ${system}`
}
