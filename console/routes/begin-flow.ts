import { Fault } from '../../engine/process/error-codes.ts'
import type { IdentityProvider } from '../../engine/store/identity-providers.ts'
import { retryText } from '../design/parts.tsx'
import { type Answer, pageAnswer } from '../http/answer.ts'
import { setCookie } from '../http/cookies.ts'
import type { Guest } from '../http/visit.ts'
import { AtProvider } from '../pages/sign-in-provider.tsx'
import { callbackPath, FLOW_MS, type FlowPurpose, type OidcFlow } from '../sign-in/oidc-flow.ts'
import { ProviderError } from '../sign-in/provider-error.ts'
import { newSecret } from '../sign-in/secrets.ts'

export interface FlowStart {
  readonly purpose: FlowPurpose
  /** The page to show in the end. */
  readonly to: string
}

/** Why no browser is sent to the provider. */
export interface FlowFault {
  readonly message: string
  readonly status: number
  readonly fields: readonly string[]
}

/** Sends the browser to an identity provider, or returns why not. */
export async function beginFlow(
  guest: Guest,
  provider: IdentityProvider,
  { purpose, to }: FlowStart,
): Promise<Answer | FlowFault> {
  const { site, request, nowMs } = guest
  const verdict = site.attempts.beginAtProvider(request.address, nowMs)
  if (!verdict.allowed) return tooMany(verdict.retryAfterSeconds)
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
    return flowFault(guest, provider, error)
  }
}

export function tooMany(seconds: number): FlowFault {
  const message = `Too many attempts. ${retryText(seconds)}`
  return { message, status: 429, fields: ['retry-after', String(seconds)] }
}

/** Logs why a provider cannot be used, and returns it for the page. @throws any other error. */
export function flowFault({ site }: Guest, { organizationId, name }: IdentityProvider, error: unknown): FlowFault {
  if (error instanceof ProviderError) {
    site.log.warn({ organization: organizationId, provider: name, reason: error.message }, 'a sign-in failed')
    return { message: error.message, status: 502, fields: [] }
  }
  if (error instanceof Fault && error.code === 'SECRETS_KEY') {
    site.log.error({ organization: organizationId, reason: error.message }, 'a client secret cannot be decrypted')
    const message = `The client secret of ${name} cannot be decrypted. An owner must enter it again`
    return { message, status: 503, fields: [] }
  }
  throw error
}
