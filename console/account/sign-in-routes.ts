import { z } from 'zod'
import { linkHash } from '../../engine/admin/account-links.ts'
import { Accounts, type ProviderSignIn } from '../../engine/admin/accounts.ts'
import { Fault, isFault } from '../../engine/kernel/process/error-codes.ts'
import type { AccountLink, User } from '../../engine/store/users.ts'
import { checkPassword } from '../confirmation.ts'
import { EMPTY_FORM, FormFields, type FormState, RejectedForm } from '../form.ts'
import { type Answer, isLocalPath, pageAnswer, redirect } from '../http/answer.ts'
import { clearCookie, setCookie } from '../http/cookies.ts'
import { form, openForm, openPage, type Route } from '../http/router.ts'
import type { Guest } from '../http/visit.ts'
import { canSomebodySignIn } from '../setup-offer.ts'
import { newPasswordIn } from '../sign-in/passwords.ts'
import { newSecret, secretHash } from '../sign-in/secrets.ts'
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
    return guest.identity === undefined ? signInPage(guest, EMPTY_FORM, to) : redirect(to)
  }),
  openForm('/sign-in', signIn),
  form('/sign-out', 'signed-in', async ({ site, identity }) => {
    const { id, userId, providerOrganizationId } = identity.session
    await site.changes.account('session.end', { userId, id, providerOrganizationId })
    return redirect('/sign-in', [clearCookie('session')])
  }),
  openPage('/setup', (guest) => setupPage(guest, EMPTY_FORM)),
  openForm('/setup', (guest) =>
    guest.submit(
      (state) => setupPage(guest, state),
      async () => setupAccountPage(guest, linkOf(guest), EMPTY_FORM),
    ),
  ),
  openForm('/setup/account', (guest) =>
    guest.submit(
      (state) => ('secret' in state.errors ? setupPage(guest, state) : setupAccountPage(guest, linkOf(guest), state)),
      () => setUpAccount(guest),
    ),
  ),
]

/** A wrong name and a wrong password get the same answer after the same time. */
function signIn(guest: Guest): Promise<Answer> {
  const { site, request } = guest
  const name = request.fields.text('name').trim()
  const to = targetOf(request.fields.text('to'))
  return guest.submit(
    (state) => signInPage(guest, state, to),
    async () => {
      const user = site.store.users.byName(name)
      const wrong = { '': 'The name or the password is wrong' }
      await checkPassword(guest, { name, user, password: request.fields.text('password') }, wrong)
      return startSession(guest, user?.id ?? '', to)
    },
  )
}

function setupPage(guest: Guest, form: FormState): Answer {
  return pageAnswer(Setup({ theme: guest.theme, form: { ...form, values: new FormFields() } }), form)
}

function secretOf({ request }: Guest): string {
  return request.fields.text('secret').trim().replace(/^.*#/, '')
}

/** The link of the posted secret. @throws RejectedForm if the link is not valid */
function linkOf(guest: Guest): AccountLink {
  const { site } = guest
  try {
    return new Accounts(site.store, site.clock).link(linkHash(secretOf(guest)).toString('hex'))
  } catch (error) {
    throw error instanceof Fault ? new RejectedForm({ secret: error.message }, 404) : error
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

function setupAccountPage(guest: Guest, link: AccountLink, form: FormState): Answer {
  const document = SetupAccount({
    theme: guest.theme,
    form,
    secret: secretOf(guest),
    kind: link.kind,
    organizationName:
      link.organizationId === '' ? '' : (guest.site.store.organizations.get(link.organizationId)?.name ?? ''),
    name: link.name,
    signedInAs: joiningUser(guest, link)?.name ?? '',
  })
  return pageAnswer(document, { ...form, showsSecret: true })
}

const newUser = z.object({
  name: z.string().trim().max(255).default(''),
  organization: z.string().trim().max(255).default(''),
  domain: z.string().trim().max(255).default(''),
})

async function setUpAccount(guest: Guest): Promise<Answer> {
  const { site, request } = guest
  const link = linkOf(guest)
  const { name, organization, domain } = guest.read(newUser)
  const joining = joiningUser(guest, link)
  const userName = joining?.name ?? (link.name === '' ? name : link.name)
  const password = joining === undefined ? newPasswordIn(request.fields, [userName, organization]) : ''
  const use = {
    linkHash: link.hash,
    userId: joining?.id ?? '',
    userName,
    passwordHash: password === '' ? '' : await site.passwords.hash(password),
    organization: link.kind === 'setup' && link.organizationId === '' ? { name: organization, domain } : undefined,
  }
  const used = await site.changes.account('link.use', use).catch((error: unknown) => {
    throw isFault(error, 'NOT_FOUND') ? new RejectedForm({ secret: error.message }, 404) : error
  })
  const isNew = site.store.monitoringTokens.activeCount(used.organizationId, guest.nowMs) === 0
  const to = link.kind === 'setup' && isNew ? '/setup-guide' : '/'
  return startSession(guest, used.userId, to, used.organizationId)
}

/** The requested page, which the visitor sees after signing in. */
export function targetOf(to: string): string {
  return isLocalPath(to) ? to : '/'
}

/** The page for sign-in: with a password, a passkey, or an identity provider. */
export function signInPage({ site, theme, request }: Guest, form: FormState, to: string): Answer {
  const { store } = site
  const document = store.environment.read(() =>
    SignIn({
      ...{ theme, form, to },
      organization: request.query.get('organization') ?? '',
      isNew: !canSomebodySignIn(store),
      hasPasskeys: site.passkeys !== undefined && !store.passkeys.isEmpty(),
      provider: providerChoice(store),
    }),
  )
  return pageAnswer(document, form)
}
