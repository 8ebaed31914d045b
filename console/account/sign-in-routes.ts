import { z } from 'zod'
import { linkHash } from '../../engine/admin/account-links.ts'
import { Accounts, type ProviderSignIn } from '../../engine/admin/accounts.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import type { AccountLink } from '../../engine/store/account-links.ts'
import type { User } from '../../engine/store/users.ts'
import { retryText } from '../design/parts.tsx'
import { EMPTY_FORM, FormFields, type FormState, readForm } from '../form.ts'
import { type Answer, isLocalPath, pageAnswer, redirect } from '../http/answer.ts'
import { clearCookie, setCookie } from '../http/cookies.ts'
import { form, openForm, openPage, type Route } from '../http/router.ts'
import type { Guest } from '../http/visit.ts'
import { canSomebodySignIn } from '../setup-offer.ts'
import { isPossiblePassword, passwordFault } from '../sign-in/passwords.ts'
import { newSecret, secretHash, trustedBrowser } from '../sign-in/secrets.ts'
import { providerChoice, Setup, SetupAccount, SignIn } from './sign-in.tsx'

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

export const SIGN_IN_ROUTES: readonly Route[] = [
  openPage('/sign-in', (guest) => {
    const to = targetOf(guest.request.query.get('to') ?? '')
    return guest.identity === undefined ? signInPage(guest, EMPTY_FORM, to, 200) : redirect(to)
  }),
  openForm('/sign-in', signIn),
  form('/sign-out', 'signed-in', async ({ site, identity }) => {
    const { id, userId, providerOrganizationId } = identity.session
    await site.changes.account('session.end', { userId, id, providerOrganizationId })
    return redirect('/sign-in', [clearCookie('session')])
  }),
  openPage('/setup', (guest) => setupPage(guest, EMPTY_FORM, 200)),
  openForm('/setup', (guest) => {
    const link = linkOf(guest)
    return 'fault' in link ? link.fault : setupAccountPage(guest, link, EMPTY_FORM, 200)
  }),
  openForm('/setup/account', setUpAccount),
]

/** A wrong name and a wrong password get the same answer after the same time. */
async function signIn(guest: Guest): Promise<Answer> {
  const { site, request, nowMs } = guest
  const name = request.fields.text('name').trim()
  const to = targetOf(request.fields.text('to'))
  const user = site.store.users.byName(name)
  const known = trustedBrowser(user, request.cookies.get('browser'))
  const password = request.fields.text('password')
  const again = (status: number, error: string, fields: readonly string[] = []): Answer =>
    signInPage(guest, { values: request.fields, errors: { '': error } }, to, status, fields)
  const wrong = 'The name or the password is wrong'
  // Before it is counted: an answer that costs no hash must not displace counters.
  if (!isPossiblePassword(password)) return again(403, wrong)
  const of = user === undefined ? 'unknown name' : 'account'
  const attempt = { name, of, address: request.address, trustedBrowser: known } as const
  const verdict = site.attempts.begin(attempt, nowMs)
  if (!verdict.allowed) {
    const retryAfter = ['retry-after', String(verdict.retryAfterSeconds)]
    return again(429, `Too many attempts. ${retryText(verdict.retryAfterSeconds)}`, retryAfter)
  }
  const matches = await site.passwords.verify(user?.passwordHash, password)
  if (!matches || user === undefined) return again(403, wrong)
  verdict.succeeded()
  return startSession(guest, user.id, to)
}

function setupPage(guest: Guest, state: FormState, status: number): Answer {
  return pageAnswer(Setup({ theme: guest.theme, form: state }), { status })
}

/** The link of the posted secret, or a page that explains why the link is invalid. */
function linkOf(guest: Guest): AccountLink | { readonly fault: Answer } {
  const { site, request } = guest
  const secret = request.fields.text('secret').trim().replace(/^.*#/, '')
  try {
    return new Accounts(site.store, site.clock).link(linkHash(secret).toString('hex'))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { fault: setupPage(guest, { values: new FormFields(), errors: { secret: error.message } }, 404) }
  }
}

/**
 * The signed-in user who takes the link. A session of a provider reaches one organization only, so
 * its user cannot join another.
 */
function joiningUser({ identity }: Guest, { kind }: AccountLink): User | undefined {
  if (kind === 'password' || identity?.session.providerOrganizationId !== undefined) return undefined
  return identity?.user
}

function setupAccountPage(guest: Guest, link: AccountLink, state: FormState, status: number): Answer {
  const { site, request } = guest
  const document = SetupAccount({
    theme: guest.theme,
    form: state,
    secret: request.fields.text('secret').trim().replace(/^.*#/, ''),
    kind: link.kind,
    organizationName: link.organizationId === '' ? '' : (site.store.organizations.get(link.organizationId)?.name ?? ''),
    name: link.name,
    signedInAs: joiningUser(guest, link)?.name ?? '',
  })
  return pageAnswer(document, { status, showsSecret: true })
}

const newUser = z.object({
  name: z.string().trim().max(255).default(''),
  organization: z.string().trim().max(255).default(''),
  domain: z.string().trim().max(255).default(''),
  password: z.string().default(''),
  repeated: z.string().default(''),
})

async function setUpAccount(guest: Guest): Promise<Answer> {
  const { site, request } = guest
  const link = linkOf(guest)
  if ('fault' in link) return link.fault
  const again = (errors: FormState['errors'], status: number): Answer =>
    site.store.environment.read(() => setupAccountPage(guest, link, { values: request.fields, errors }, status))
  const read = readForm(newUser, request.fields)
  if ('state' in read) return again(read.state.errors, 400)
  const { name, organization, domain, password, repeated } = read.data
  const joining = joiningUser(guest, link)
  const userName = link.name === '' ? name : link.name
  if (joining === undefined) {
    const fault = passwordFault(password, [userName, organization])
    if (fault !== undefined) return again({ password: fault }, 400)
    if (password !== repeated) return again({ repeated: 'The two passwords differ' }, 400)
  }
  try {
    const used = await site.changes.account('link.use', {
      linkHash: link.hash,
      userId: joining?.id ?? '',
      userName: joining?.name ?? userName,
      passwordHash: joining !== undefined ? '' : await site.passwords.hash(password),
      organization: link.kind === 'setup' && link.organizationId === '' ? { name: organization, domain } : undefined,
    })
    const isNew = site.store.monitoringTokens.activeCount(used.organizationId, guest.nowMs) === 0
    const to = link.kind === 'setup' && isNew ? '/setup-guide' : '/'
    return await startSession(guest, used.userId, to, used.organizationId)
  } catch (error) {
    if (isFault(error, 'NOT_FOUND')) {
      return setupPage(guest, { values: new FormFields(), errors: { secret: error.message } }, 404)
    }
    if (isFault(error, 'CONFLICT')) return again({ '': error.message }, 409)
    if (isFault(error, 'USAGE')) return again({ '': error.message }, 400)
    throw error
  }
}

/** The requested page, which the visitor sees after signing in. */
export function targetOf(to: string): string {
  return isLocalPath(to) ? to : '/'
}

/** The page for sign-in: with a password, a passkey, or an identity provider. */
export function signInPage(
  { site, theme, request }: Guest,
  form: FormState,
  to: string,
  status: number,
  fields: readonly string[] = [],
): Answer {
  const organization = request.query.get('organization') ?? ''
  const props = site.store.environment.read(() => {
    const { passkeys } = site.store
    const hasPasskeys = site.passkeys !== undefined && !passkeys.isEmpty()
    return { isNew: !canSomebodySignIn(site.store), hasPasskeys, provider: providerChoice(site.store) }
  })
  return pageAnswer(SignIn({ theme, form, to, organization, ...props }), { status, fields })
}
