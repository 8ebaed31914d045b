import type { IncomingMessage } from 'node:http'
import type { CustomFetch, CustomFetchOptions } from 'openid-client'
import { JsonCheck } from '../../engine/kernel/event/json.ts'
import { isLoopbackHost, type Network } from '../../engine/kernel/process/network.ts'
import { connectTo, requestOver, TargetRefused } from '../../engine/kernel/process/outbound-address.ts'
import type { ProviderRequestResult } from '../metrics.ts'

/**
 * A sign-in with an identity provider that failed. The message is for people: what was wrong,
 * where, and what would be right. It contains no secret, code or token.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
}

/** Milliseconds for one request to a provider, with its response. */
const REQUEST_MS = 10_000
/** A response. The metadata and keys of large providers have 20 KB. */
const RESPONSE_LIMITS = { bytesMax: 256 * 1024, valuesMax: 20_000, depthMax: 16 }
/** Concurrent requests to all providers. Beyond it, the sign-in fails with an error. */
const REQUESTS_MAX = 32
/** Of these, to the provider of one organization, so that a slow one does not hold up others. */
const REQUESTS_PER_ORGANIZATION_MAX = 4

export interface ProviderHttpOptions {
  /** Networks to which the service may connect although they are not public. */
  readonly allowed: readonly Network[]
  readonly requestMs?: number
  /** Called for each request. */
  readonly note?: (result: ProviderRequestResult) => void
}

/**
 * HTTP requests to identity providers, within limits, and only to allowed networks. Follows no
 * redirect. Uses the proxy of HTTPS_PROXY, which decides by its own rules to which names it
 * connects. Trusts the certificates of NODE_EXTRA_CA_CERTS.
 */
export class ProviderHttp {
  #options: Required<ProviderHttpOptions>
  readonly #active = new Map<string, number>()

  constructor(options: ProviderHttpOptions) {
    this.#options = { requestMs: REQUEST_MS, note: () => {}, ...options }
  }

  /** Applies to requests from now on. */
  allow(allowed: readonly Network[]): void {
    this.#options = { ...this.#options, allowed }
  }

  /** The function with which openid-client makes its requests for an organization. */
  fetchFor(organizationId: string): CustomFetch {
    return async (url, options) => {
      this.#begin(organizationId)
      try {
        const response = await fetchOnce(new URL(url), options, this.#options)
        this.#options.note(response.status < 500 ? 'answered' : 'server_error')
        return response
      } catch (error) {
        this.#options.note(resultOf(error))
        throw error
      } finally {
        this.#end(organizationId)
      }
    }
  }

  #begin(organizationId: string): void {
    const all = [...this.#active.values()].reduce((sum, count) => sum + count, 0)
    const own = this.#active.get(organizationId) ?? 0
    if (all >= REQUESTS_MAX || own >= REQUESTS_PER_ORGANIZATION_MAX) {
      this.#options.note('overloaded')
      throw new ProviderError('Too many people sign in at this moment. Try again in a minute')
    }
    this.#active.set(organizationId, own + 1)
  }

  #end(organizationId: string): void {
    const left = (this.#active.get(organizationId) ?? 0) - 1
    if (left > 0) this.#active.set(organizationId, left)
    else this.#active.delete(organizationId)
  }
}

async function fetchOnce(
  url: URL,
  { method, headers, body, signal }: CustomFetchOptions,
  { requestMs, allowed }: Required<ProviderHttpOptions>,
): Promise<Response> {
  if (url.protocol === 'http:' && !isLoopbackHost(url.hostname)) {
    throw new ProviderError(`${shownUrl(url)} is plain HTTP; expected https`)
  }
  const limit = AbortSignal.timeout(requestMs)
  const all = signal === undefined ? limit : AbortSignal.any([limit, signal])
  try {
    const socket = await connectTo(url, allowed, requestMs)
    const incoming = await requestOver(socket, url, { method, headers, signal: all }, bodyText(body))
    return await bounded(incoming, url)
  } catch (error) {
    if (error instanceof ProviderError) throw error
    if (error instanceof TargetRefused) throw new ProviderError(error.message, { cause: error })
    const isLate = all.aborted || (error as NodeJS.ErrnoException).code === 'ETIMEDOUT'
    const why = isLate ? `no answer within ${requestMs / 1000} seconds` : connectionText(error)
    throw new ProviderError(`${shownUrl(url)}: ${why}`, { cause: isLate ? new TimedOut() : error })
  }
}

class TimedOut extends Error {
  override readonly name = 'TimedOut'
}

function resultOf(error: unknown): ProviderRequestResult {
  const { cause } = error as Error
  if (cause instanceof TargetRefused) return 'refused'
  return cause instanceof TimedOut ? 'timed_out' : 'failed'
}

function bodyText(body: CustomFetchOptions['body']): string {
  if (body === undefined || body === null) return ''
  if (typeof body === 'string' || body instanceof URLSearchParams) return body.toString()
  throw new TypeError('only forms are sent to providers')
}

async function bounded(incoming: IncomingMessage, url: URL): Promise<Response> {
  const status = incoming.statusCode ?? 0
  // RFC 9110 §15: other numbers are not valid, and Response takes none of them.
  if (status < 200 || status > 599) {
    incoming.destroy()
    throw new ProviderError(`${shownUrl(url)}: the response has the status ${status}, expected one from 200 to 599`)
  }
  const parts: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    const check = new JsonCheck(RESPONSE_LIMITS)
    incoming.on('data', (part: Buffer) => {
      const problem = check.push(part)
      if (problem === undefined) parts.push(part)
      else {
        reject(new ProviderError(`${shownUrl(url)}: the response: ${problem}`))
        incoming.destroy()
      }
    })
    incoming.once('end', resolve).once('error', reject)
  })
  const type = incoming.headers['content-type']
  const hasBody = status !== 204 && status !== 205 && status !== 304
  return new Response(hasBody ? Buffer.concat(parts) : null, {
    status,
    headers: type === undefined ? {} : { 'content-type': type },
  })
}

/** Without the query, which may have a secret. */
function shownUrl({ origin, pathname }: URL): string {
  return `${origin}${pathname}`
}

const CERTIFICATE_CODES = /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS/

function connectionText(error: unknown): string {
  const { code = '', message = '' } = error as NodeJS.ErrnoException
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the name cannot be resolved'
  if (code === 'ECONNREFUSED') return 'the connection is refused'
  if (CERTIFICATE_CODES.test(code)) {
    return `the certificate is not trusted (${code}). NODE_EXTRA_CA_CERTS names a file with more CA certificates`
  }
  return code === '' ? message : `${message} (${code})`
}
