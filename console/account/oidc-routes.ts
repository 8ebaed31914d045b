import { isSessionOver } from '../../engine/admin/accounts.ts'
import type { FederatedClaims } from '../../engine/admin/federation.ts'
import { Fault, type FaultCode } from '../../engine/kernel/process/error-codes.ts'
import type { IdentityProvider } from '../../engine/store/members.ts'
import type { Session } from '../../engine/store/users.ts'
import { allowed, isConfirmed } from '../confirmation.ts'
import { FormFields, RejectedForm, rejectedForm } from '../form.ts'
import { type Answer, pageAnswer, withCookies } from '../http/answer.ts'
import { ContinueForm } from '../http/confirm.tsx'
import { clearCookie, setCookie } from '../http/cookies.ts'
import { errorAnswer, refreshAnswer } from '../http/error.tsx'
import { form, openForm, openPage, page, type Route } from '../http/router.ts'
import { Guest, type Visit } from '../http/visit.ts'
import type { ProviderClaims } from '../sign-in/oidc-claims.ts'
import { isFresh } from '../sign-in/oidc-client.ts'
import { CALLBACK_PATH, callbackPath, FLOW_MS, type FlowPurpose, type OidcFlow } from '../sign-in/oidc-flow.ts'
import { ProviderError } from '../sign-in/provider-http.ts'
import { newSecret, secretHash } from '../sign-in/secrets.ts'
import { AtProvider, chosenProvider } from './sign-in.tsx'
import { signInPage, startProviderSession, targetOf } from './sign-in-routes.ts'

/** Sign-in with the identity providers of organizations. */
export const OIDC_ROUTES: readonly Route[] = [
  openForm('/sign-in/provider', beginSignIn),
  openPage(CALLBACK_PATH, (guest, { organization }) => answerCallback(guest, organization)),
  form('/sign-in/confirm', 'signed-in', async (visit) => {
    const id = visit.request.fields.text('form')
    return begin(visit, { purpose: 'confirm', to: `/sign-in/continue?${new URLSearchParams({ form: id })}` })
  }),
  page('/sign-in/continue', 'signed-in', continueForm),
  form(
    '/account/provider',
    'signed-in',
    (visit) => begin(visit, { purpose: 'connect', to: '/account?done=connected' }),
    {
      confirmed: true,
    },
  ),
]

function beginSignIn(guest: Guest): Promise<Answer> {
  const { site, request } = guest
  const to = targetOf(request.fields.text('to'))
  return guest.submit(
    (state) => signInPage(guest, state, to),
    async () => {
      const provider = chosenProvider(site.store, request.fields.text('organization'))
      if (provider !== undefined) return beginFlow(guest, provider, { purpose: 'sign-in', to })
      // Counted as a failure, because the answers say which organizations have a provider.
      allowed(site.attempts.beginAtProvider(request.address, guest.nowMs))
      const organization = 'No organization with this name or domain has its own sign-in. Ask its owner for the name'
      throw new RejectedForm({ organization }, 404)
    },
  )
}

/** Sends a signed-in user to the provider of the organization. */
async function begin(visit: Visit, start: FlowStart): Promise<Answer> {
  const provider = visit.site.store.identityProviders.get(visit.organization.id)
  if (provider === undefined) {
    return errorAnswer(visit, { status: 409, message: 'The organization has no identity provider any more' })
  }
  return visit.submit(
    ({ status, errors }) => errorAnswer(visit, { status, message: errors[''] ?? '' }),
    () => beginFlow(visit, provider, start),
  )
}

/**
 * The provider sends the browser here, from another site, so that the request has no
 * SameSite=Strict cookie. The flow's own cookie is Lax, and says which session began the flow.
 */
async function answerCallback(guest: Guest, organizationId: string): Promise<Answer> {
  const { site, request, nowMs } = guest
  const flow = site.flows.open(request.cookies.get('oidc'), nowMs)
  const isOwn = flow?.organizationId === organizationId && flow.state === request.query.get('state')
  if (flow === undefined || !isOwn) {
    const message =
      flow === undefined
        ? 'This sign-in has expired, or was already used. Sign in again'
        : 'This sign-in was replaced by another one in this browser. Sign in again'
    // Not counted: any web page can make browsers of a network request this address.
    return refused(guest, flow, new RejectedForm({ '': message }))
  }
  site.flows.end(flow)
  const provider = site.store.identityProviders.get(flow.organizationId)
  if (provider === undefined || provider.issuer !== flow.issuer || provider.clientId !== flow.clientId) {
    const message = 'The sign-in settings of the organization changed meanwhile. Sign in again'
    return refused(guest, flow, new RejectedForm({ '': message }, 409))
  }
  try {
    const claims = await site.oidc.redeem(provider, flow, request.query)
    const answer = await FINISH[flow.purpose](guest, provider, flow, claims)
    site.attempts.finishAtProvider(request.address, flow.startedAtMs)
    return withCookies(answer, [clearCookie('oidc')])
  } catch (error) {
    return refused(guest, flow, refusalOf(guest, provider, error))
  }
}

/** Statuses of errors that a person can cause. */
const STATUSES: Readonly<Partial<Record<FaultCode, number>>> = {
  NOT_ALLOWED: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
  USAGE: 400,
}

function refusalOf(guest: Guest, provider: IdentityProvider, error: unknown): RejectedForm {
  const status = error instanceof Fault ? STATUSES[error.code] : undefined
  if (!(error instanceof Fault) || status === undefined) return flowFault(guest, provider, error)
  const { organizationId, name } = provider
  guest.site.log.info({ organization: organizationId, provider: name, reason: error.message }, 'a sign-in was refused')
  return new RejectedForm({ '': error.message }, status)
}

/** A visitor sees the error on the page for sign-in; a signed-in user on a page of its own. */
function refused(guest: Guest, flow: OidcFlow | undefined, fault: RejectedForm): Answer {
  const form = rejectedForm(fault, new FormFields())
  const isSignIn = flow === undefined || flow.purpose === 'sign-in' || sessionOf(guest, flow) === undefined
  const answer = isSignIn
    ? signInPage(guest, form, flow?.purpose === 'sign-in' ? flow.to : '/')
    : errorAnswer(
        new Guest(guest.site, guest.request, undefined),
        { status: fault.status, message: form.errors[''] ?? '' },
        flow.to,
      )
  return withCookies(answer, [clearCookie('oidc')])
}

type Finish = (guest: Guest, provider: IdentityProvider, flow: OidcFlow, claims: ProviderClaims) => Promise<Answer>

/** What follows when the provider has vouched for the person. */
const FINISH: Readonly<Record<OidcFlow['purpose'], Finish>> = {
  'sign-in': async (guest, provider, flow, claims) => {
    const { userId } = await guest.site.changes.account('federation.sign-in', federatedClaims(provider, claims))
    const { organizationId, issuer, clientId } = provider
    const cookie = await startProviderSession(guest, userId, flow.sessionHash, {
      ...{ organizationId, issuer, clientId },
      authenticatedAtMs: claims.authTimeMs,
    })
    return withCookies(refreshAnswer(flow.to), [cookie])
  },

  confirm: async (guest, provider, flow, claims) => {
    const session = existingSession(guest, flow)
    // Another session may reach other organizations, for which this provider cannot vouch.
    if (session.providerOrganizationId !== provider.organizationId) {
      throw new Fault(
        'NOT_ALLOWED',
        `You did not sign in with ${provider.name}. Confirm with your password or a passkey`,
      )
    }
    const subject = { organizationId: provider.organizationId, issuer: provider.issuer, subject: claims.subject }
    const identity = guest.site.store.federatedIdentities.get(subject)
    if (identity?.userId !== session.userId) {
      throw new Fault(
        'NOT_ALLOWED',
        `You signed in to ${provider.name} as somebody else. Try again with your own account`,
      )
    }
    if (claims.authTimeMs === 0) {
      throw new Fault(
        'NOT_ALLOWED',
        `${provider.name} does not say when you signed in (claim auth_time), so it cannot confirm a sensitive change. Let it send the claim, or let a user with a password make the change`,
      )
    }
    if (!isFresh(claims, flow)) {
      throw new Fault('NOT_ALLOWED', `${provider.name} did not ask you to sign in again. Sign out there, and try again`)
    }
    const next = newSecret()
    await guest.site.changes.account('session.confirm', { hash: session.hash, nextHash: secretHash(next) })
    return withCookies(refreshAnswer(flow.to), [setCookie('session', next)])
  },

  connect: async (guest, provider, flow, claims) => {
    const { userId } = existingSession(guest, flow)
    await guest.site.changes.account('federation.connect', { claims: federatedClaims(provider, claims), userId })
    return refreshAnswer(flow.to)
  },
}

function federatedClaims(provider: IdentityProvider, { subject, name, groups }: ProviderClaims): FederatedClaims {
  const { organizationId, issuer, clientId } = provider
  return { organizationId, issuer, clientId, subject, name, groups }
}

function existingSession(guest: Guest, flow: OidcFlow): Session {
  const session = sessionOf(guest, flow)
  if (session === undefined) throw new Fault('NOT_ALLOWED', 'Your session has ended. Sign in again')
  return session
}

/** The session that began the flow, unless it is over. */
function sessionOf({ site, nowMs }: Guest, flow: OidcFlow | undefined): Session | undefined {
  const hash = flow?.sessionHash ?? ''
  const session = hash === '' ? undefined : site.store.sessions.byHash(Buffer.from(hash, 'hex'))
  return session === undefined || isSessionOver(session, session.usedAtMs, nowMs) ? undefined : session
}

/** The form that its user sent before the confirmation, to be sent now. */
function continueForm(visit: Visit): Answer {
  const { site, request, identity, nowMs } = visit
  const kept = site.pendingForms.find(request.query.get('form') ?? '', identity.session.id, nowMs)
  if (kept === undefined) {
    return errorAnswer(visit, { status: 404, message: 'You are confirmed, but the form has expired. Fill it in again' })
  }
  const content = ContinueForm({ action: kept.action, kept: kept.fields, isConfirmed: isConfirmed(visit) })
  return visit.page('Continue', '', content)
}

interface FlowStart {
  readonly purpose: FlowPurpose
  /** The page to show in the end. */
  readonly to: string
}

/** Sends the browser to an identity provider. @throws RejectedForm */
async function beginFlow(guest: Guest, provider: IdentityProvider, { purpose, to }: FlowStart): Promise<Answer> {
  const { site, request, nowMs } = guest
  allowed(site.attempts.beginAtProvider(request.address, nowMs))
  const flow: OidcFlow = {
    purpose,
    organizationId: provider.organizationId,
    issuer: provider.issuer,
    clientId: provider.clientId,
    redirectUri: `${request.origin}${callbackPath(provider.organizationId)}`,
    state: newSecret(),
    nonce: newSecret(),
    codeVerifier: newSecret(),
    to,
    sessionHash: guest.identity?.session.hash ?? '',
    startedAtMs: nowMs,
  }
  try {
    const url = await site.oidc.authorizationUrl(provider, flow)
    const document = AtProvider({ theme: guest.theme, name: provider.name, url })
    const cookie = setCookie('oidc', site.flows.seal(flow), { seconds: FLOW_MS / 1000, sameSite: 'Lax' })
    return pageAnswer(document, { cookies: [cookie] })
  } catch (error) {
    throw flowFault(guest, provider, error)
  }
}

/** Logs why a provider cannot be used, and returns it for the page. @throws any other error. */
function flowFault({ site }: Guest, { organizationId, name }: IdentityProvider, error: unknown): RejectedForm {
  if (error instanceof ProviderError) {
    site.log.warn({ organization: organizationId, provider: name, reason: error.message }, 'a sign-in failed')
    return new RejectedForm({ '': error.message }, 502)
  }
  if (error instanceof Fault && error.code === 'SECRETS_KEY') {
    site.log.error({ organization: organizationId, reason: error.message }, 'a client secret cannot be decrypted')
    const message = `The client secret of ${name} cannot be decrypted. An owner must enter it again`
    return new RejectedForm({ '': message }, 503)
  }
  throw error
}
