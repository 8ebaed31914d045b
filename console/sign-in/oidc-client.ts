import type { Configuration, ServerMetadata } from 'openid-client'
import { BoundedMap } from '../../engine/kernel/process/bounded-map.ts'
import { type Clock, HOUR_MS, SECOND_MS } from '../../engine/kernel/process/clock.ts'
import { isLoopbackHost } from '../../engine/kernel/process/network.ts'
import type { SecretsKey } from '../../engine/kernel/process/secrets-key.ts'
import { clientSecretContext, type IdentityProvider } from '../../engine/store/members.ts'
import { type ProviderClaims, providerClaims } from './oidc-claims.ts'
import { callbackPath, type OidcFlow } from './oidc-flow.ts'
import { ProviderError, type ProviderHttp } from './provider-http.ts'

/** Metadata is used this long. openid-client reads the keys again when one is unknown. */
const METADATA_MS = HOUR_MS
/** After a failure, the provider is asked again no earlier. */
const RETRY_MS = 5 * SECOND_MS
/** Providers whose metadata is in memory. Beyond it the one that was read first is removed. */
const REMEMBERED_MAX = 1000
/** Seconds by which the clocks of a provider and this machine may differ. */
const CLOCK_TOLERANCE_SECONDS = 60

/** The provider and its client secret, in clear text. */
export type ProviderClient = Pick<IdentityProvider, 'organizationId' | 'name' | 'issuer' | 'clientId'> & {
  readonly clientSecret: string
}

/** Loaded when it is first used: it takes 8 MB, and most organizations have no provider. */
function library() {
  return import('openid-client')
}

interface Remembered {
  readonly key: string
  readonly configuration: Promise<Configuration>
  readonly untilMs: number
}

/** Whether the provider accepts the client ID and the secret. */
export type ClientCheck = 'accepted' | 'refused' | 'unknown'

/** OpenID Connect with the identity providers of organizations: the authorization code flow. */
export class OidcClient {
  readonly #secrets: SecretsKey
  readonly #clock: Clock
  readonly #http: ProviderHttp
  readonly #remembered = new BoundedMap<string, Remembered>(REMEMBERED_MAX)

  constructor(secrets: SecretsKey, clock: Clock, http: ProviderHttp) {
    this.#secrets = secrets
    this.#clock = clock
    this.#http = http
  }

  /**
   * The address at the provider to which the browser goes. A flow to confirm requires that the
   * provider asks for credentials again, whatever session it has.
   *
   * @throws ProviderError, Fault SECRETS_KEY.
   */
  async authorizationUrl(provider: IdentityProvider, flow: OidcFlow): Promise<string> {
    const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await library()
    const configuration = await this.#configuration(provider)
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: flow.redirectUri,
      scope: provider.scopes.join(' '),
      state: flow.state,
      nonce: flow.nonce,
      code_challenge: await calculatePKCECodeChallenge(flow.codeVerifier),
      code_challenge_method: 'S256',
      ...(flow.purpose === 'confirm' ? { prompt: 'login', max_age: '0' } : {}),
    })
    return url.href
  }

  /**
   * Exchanges the code in the provider's answer, and returns what the provider says about the
   * person.
   *
   * @throws ProviderError, Fault SECRETS_KEY.
   */
  async redeem(provider: IdentityProvider, flow: OidcFlow, answer: URLSearchParams): Promise<ProviderClaims> {
    const { authorizationCodeGrant, fetchUserInfo } = await library()
    const configuration = await this.#configuration(provider)
    const url = new URL(flow.redirectUri)
    url.search = answer.toString()
    try {
      const tokens = await authorizationCodeGrant(configuration, url, {
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        pkceCodeVerifier: flow.codeVerifier,
        idTokenExpected: true,
      })
      const idToken: Readonly<Record<string, unknown>> = tokens.claims() ?? {}
      const { userinfo_endpoint: hasUserinfo } = configuration.serverMetadata()
      const userinfo =
        hasUserinfo === undefined
          ? undefined
          : () => fetchUserInfo(configuration, tokens.access_token, String(idToken['sub']))
      return await providerClaims(provider, idToken, userinfo)
    } catch (error) {
      throw providerError(error, provider)
    }
  }

  /**
   * Reads the provider's metadata afresh, and tries the client secret with a code that cannot be
   * valid: providers check the client first (RFC 6749 §5.2).
   *
   * @throws ProviderError if the provider cannot be used
   */
  async check(client: ProviderClient): Promise<ClientCheck> {
    const { genericGrantRequest } = await library()
    const configuration = await this.#discovered(client)
    try {
      const redirect_uri = `https://localhost${callbackPath(client.organizationId)}`
      await genericGrantRequest(configuration, 'authorization_code', { code: 'test', redirect_uri })
      return 'unknown'
    } catch (error) {
      const found = oauthErrorOf(error)
      if (found === 'invalid_grant') return 'accepted'
      return found === 'invalid_client' || found === 'unauthorized_client' ? 'refused' : 'unknown'
    }
  }

  /** The stored provider with its secret. @throws Fault SECRETS_KEY. */
  clientOf(provider: IdentityProvider): ProviderClient {
    return { ...provider, clientSecret: this.#secrets.open(provider.clientSecret, clientSecretContext(provider)) }
  }

  #configuration(provider: IdentityProvider): Promise<Configuration> {
    const { organizationId, issuer, clientId, clientSecret } = provider
    const key = JSON.stringify([issuer, clientId, clientSecret])
    const nowMs = this.#clock.nowMs()
    const known = this.#remembered.get(organizationId)
    if (known !== undefined && known.key === key && nowMs < known.untilMs) return known.configuration
    const configuration = this.#discovered(this.clientOf(provider))
    this.#remembered.set(organizationId, { key, configuration, untilMs: nowMs + METADATA_MS })
    configuration.catch(() => {
      const now = this.#remembered.get(organizationId)
      if (now?.configuration === configuration)
        this.#remembered.set(organizationId, { ...now, untilMs: nowMs + RETRY_MS })
    })
    return configuration
  }

  async #discovered(client: ProviderClient): Promise<Configuration> {
    const { organizationId, issuer, clientId, clientSecret } = client
    const { ClientSecretBasic, ClientSecretPost, ...openid } = await library()
    const isLocal = new URL(issuer).protocol === 'http:'
    let isBasic = true
    try {
      const configuration = await openid.discovery(
        new URL(issuer),
        clientId,
        { client_secret: clientSecret },
        (as, ...rest) => {
          const authentication = isBasic ? ClientSecretBasic(clientSecret) : ClientSecretPost(clientSecret)
          return authentication(as, ...rest)
        },
        {
          [openid.customFetch]: this.#http.fetchFor(organizationId),
          execute: isLocal
            ? [openid.allowInsecureRequests, openid.enableNonRepudiationChecks]
            : [openid.enableNonRepudiationChecks],
        },
      )
      const metadata = configuration.serverMetadata()
      assertUsable(metadata, client)
      // The default of OpenID Connect Discovery 1.0 §3.
      isBasic = metadata.token_endpoint_auth_methods_supported?.includes('client_secret_basic') ?? true
      return configuration
    } catch (error) {
      throw providerError(error, client)
    }
  }
}

function assertUsable(metadata: ServerMetadata, { issuer }: ProviderClient): void {
  if (new URL(metadata.issuer).href !== new URL(issuer).href) {
    const hint = metadata.issuer.includes('{tenantid}') ? '. Give the issuer of your own tenant' : ''
    throw new ProviderError(`The issuer is ${issuer}, but its metadata says ${metadata.issuer.slice(0, 200)}${hint}`)
  }
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
    const endpoint = metadata[name]
    const isUrl = endpoint !== undefined && URL.canParse(endpoint)
    if (!isUrl || !isAllowed(new URL(endpoint), new URL(issuer))) {
      throw new ProviderError(`The metadata of ${issuer} has no ${name} with https`)
    }
  }
}

/** Plain HTTP only if the issuer is on this machine, too. */
function isAllowed(endpoint: URL, issuer: URL): boolean {
  if (endpoint.protocol === 'https:') return true
  return endpoint.protocol === 'http:' && issuer.protocol === 'http:' && isLoopbackHost(endpoint.hostname)
}

/** Errors by the code of openid-client. */
const TEXTS: Readonly<Record<string, string>> = {
  OAUTH_RESPONSE_IS_NOT_JSON: 'the response is not JSON. Check the issuer URL',
  OAUTH_RESPONSE_IS_NOT_CONFORM: 'the response has an unexpected status. Check the issuer URL',
  OAUTH_PARSE_ERROR: 'the response is not JSON. Check the issuer URL',
  OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED: 'the metadata has another issuer. Check the issuer URL, also its last slash',
  OAUTH_JWT_TIMESTAMP_CHECK_FAILED: 'the ID token has expired or is not valid yet. Check the clocks of both machines',
  OAUTH_JWT_CLAIM_COMPARISON_FAILED: 'the ID token is for another sign-in or another client. Sign in again',
  OAUTH_TIMEOUT: 'no answer in time',
}

/** Why a sign-in failed, in the words of this console. */
function providerError(error: unknown, { name, issuer }: Pick<ProviderClient, 'name' | 'issuer'>): ProviderError {
  const own = causes(error).find((each) => each instanceof ProviderError)
  if (own instanceof ProviderError) return own
  const { error: answered, error_description: details } = error as OAuthError
  if (codeOf(error) === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' && answered !== undefined) {
    const about = details === undefined ? '' : ` (${details.slice(0, 200)})`
    return new ProviderError(`${name} did not sign you in: ${answered.slice(0, 100)}${about}`)
  }
  const refused = oauthErrorOf(error)
  if (refused === 'invalid_client' || refused === 'unauthorized_client') {
    return new ProviderError(
      `${name} refused the client ID or the client secret (${refused}). An owner must correct them`,
    )
  }
  if (refused === 'invalid_grant') {
    return new ProviderError(`${name} refused the code: it was used already, or has expired. Sign in again`)
  }
  if (refused !== undefined) return new ProviderError(`${name} refused the request: ${refused.slice(0, 100)}`)
  const { code, message, cause } = error as Error & { readonly code?: string }
  // The cause says what is wrong, without a value: another issuer, or a wrong signature.
  if (code === 'OAUTH_INVALID_RESPONSE' && cause instanceof Error) {
    return new ProviderError(`${issuer}: the response is not valid: ${cause.message}. Sign in again`)
  }
  const why = TEXTS[code ?? ''] ?? `${message}${code === undefined ? '' : ` (${code})`}`
  // Without the cause, which can contain a token.
  return new ProviderError(`${issuer}: ${why}`)
}

/** The error of a response of the token endpoint (RFC 6749 §5.2). */
function oauthErrorOf(error: unknown): string | undefined {
  const all = causes(error)
  const body = all.find((each) => codeOf(each) === 'OAUTH_RESPONSE_BODY_ERROR')
  if (body !== undefined) return (body as OAuthError).error
  // A WWW-Authenticate challenge, as client_secret_basic gets one.
  return all.some((each) => codeOf(each) === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE') ? 'invalid_client' : undefined
}

/** The fields of errors of openid-client. */
interface OAuthError {
  readonly code?: string
  readonly error?: string
  readonly error_description?: string
}

function codeOf(error: unknown): string | undefined {
  return (error as OAuthError).code
}

function causes(error: unknown): unknown[] {
  const all: unknown[] = []
  for (let each = error; each instanceof Error && all.length < 10; each = each.cause) all.push(each)
  return all
}

/** Whether the person authenticated at the provider after the flow began. */
export function isFresh({ authTimeMs }: ProviderClaims, { startedAtMs }: OidcFlow): boolean {
  return authTimeMs >= startedAtMs - CLOCK_TOLERANCE_SECONDS * SECOND_MS
}
