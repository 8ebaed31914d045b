import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

/** A person at the provider. */
export interface ProviderAccount {
  readonly subject: string
  readonly claims: Readonly<Record<string, unknown>>
}

export interface OpenidProvider {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** Who signs in next. */
  account: ProviderAccount
  /** Changes the bodies of responses by path. */
  tamper: ((path: string, body: unknown) => unknown) | undefined
  /** Paths of the requests that the provider received, without those of browsers. */
  readonly requests: string[]
  /** A browser with cookies of the provider. */
  browser(): ProviderBrowser
  stop(): Promise<void>
}

export interface ProviderOptions {
  readonly redirectUri: string
  /** The ID token has all claims; otherwise only the userinfo has them. */
  readonly claimsInIdToken?: boolean
}

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const SIGNING_KEY = { ...privateKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'RS256' }

/** An OpenID provider in this process, over HTTP on loopback. Every person is signed in at once. */
export async function openidProvider(
  t: { teardown(work: () => unknown): void },
  { redirectUri, claimsInIdToken = false }: ProviderOptions,
): Promise<OpenidProvider> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const clientId = 'console'
  const clientSecret = randomBytes(24).toString('hex')
  const accounts = new Map<string, ProviderAccount>()
  const found: OpenidProvider = {
    ...{ issuer, clientId, clientSecret },
    account: { subject: 'none', claims: {} },
    tamper: undefined,
    requests: [],
    browser: () => new ProviderBrowser(redirectUri),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        require_auth_time: true,
      },
    ],
    jwks: { keys: [SIGNING_KEY] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    scopes: ['openid', 'email', 'profile', 'groups'],
    conformIdTokenClaims: !claimsInIdToken,
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, id) => {
      const account = accounts.get(id) ?? { subject: id, claims: {} }
      return { accountId: id, claims: async () => ({ sub: account.subject, ...account.claims }) }
    },
  })
  provider.use(async (context, next) => {
    if (context.path.startsWith('/interaction/')) {
      const { subject } = found.account
      accounts.set(subject, found.account)
      const { params, grantId } = await provider.interactionDetails(context.req, context.res)
      const grant =
        grantId === undefined
          ? new provider.Grant({ accountId: subject, clientId: String(params['client_id']) })
          : await provider.Grant.find(grantId)
      grant?.addOIDCScope(String(params['scope']))
      const result = { login: { accountId: subject }, consent: { grantId: (await grant?.save()) ?? '' } }
      await provider.interactionFinished(context.req, context.res, result)
      context.respond = false
      return
    }
    if (/^\/(token|me|jwks|\.well-known)/.test(context.path)) found.requests.push(context.path)
    await next()
    if (found.tamper !== undefined) context.body = found.tamper(context.path, context.body)
  })
  server.on('request', provider.callback())
  t.teardown(() => found.stop())
  return found
}

const REDIRECTS_MAX = 12

/** A browser at the provider. */
export class ProviderBrowser {
  readonly #cookies = new Map<string, string>()
  readonly #redirectUri: string

  constructor(redirectUri: string) {
    this.#redirectUri = redirectUri
  }

  /** Opens the address, and returns the path and the query with which the provider sends back. */
  async signIn(url: string): Promise<string> {
    let next = url
    for (let made = 0; made < REDIRECTS_MAX; made++) {
      const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const response = await fetch(next, { redirect: 'manual', headers: { cookie } })
      for (const line of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
        if (value === '') this.#cookies.delete(name)
        else this.#cookies.set(name, value)
      }
      const location = response.headers.get('location')
      if (location === null) throw new Error(`${response.status} ${await response.text()}`)
      next = new URL(location, next).href
      if (next.startsWith(this.#redirectUri)) return next.slice(new URL(next).origin.length)
    }
    throw new Error('too many redirects')
  }
}
