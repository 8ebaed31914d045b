import { hash } from 'node:crypto'
import type { Staleness } from '../engine/cluster/replication/staleness.ts'
import type { HttpListenOptions, HttpRequest, HttpResponse } from '../engine/http/port.ts'
import { clientOf } from '../engine/kernel/process/network.ts'
import { bodyOf, ELEMENTS_PER_PART, gzipBodyKey, LIST_SHAPES, PublishedList } from '../engine/store/published.ts'
import type { Scope } from '../engine/store/secrets.ts'
import type { Store } from '../engine/store/store.ts'
import type { AccessLog } from './access-log.ts'
import { BodyCache, type ListState } from './body-cache.ts'
import { type Caller, Callers, scopeBit } from './callers.ts'
import { OPENAPI_PATH, type OpenApiAnswer } from './document.ts'
import type { RecentKeyUses } from './key-uses.ts'
import { type Page, pageOf } from './page.ts'
import type { RateLimit } from './rate-limit/rate-limit.ts'
import {
  ANY_TAG,
  acceptsGzip,
  namedTag,
  rateFields,
  respondError,
  respondInvalidKey,
  respondJson,
  respondNotModified,
  respondRefusal,
} from './respond.ts'

/** An endpoint: its required scope, and the list that it returns. */
interface Route {
  readonly scope: Scope
  readonly list: PublishedList
  /** Whether it accepts limit and offset. */
  readonly paged: boolean
}

export const ROUTES: Readonly<Record<string, Route>> = {
  '/api/v1/scores': {
    scope: 'scores:read',
    list: PublishedList.scores,
    paged: LIST_SHAPES[PublishedList.scores].paged,
  },
  '/api/v1/recommendations': {
    scope: 'recommendations:read',
    list: PublishedList.recommendations,
    paged: LIST_SHAPES[PublishedList.recommendations].paged,
  },
  '/api/v1/discovery': {
    scope: 'discovery:read',
    list: PublishedList.discovery,
    paged: LIST_SHAPES[PublishedList.discovery].paged,
  },
  '/api/v1/assessments': {
    scope: 'assessments:read',
    list: PublishedList.assessments,
    paged: LIST_SHAPES[PublishedList.assessments].paged,
  },
}

/** Longer than any list: an unpaged list is returned whole. */
const WHOLE_LIST: Page = { limit: Number.MAX_SAFE_INTEGER, offset: 0 }
const ALLOWED_METHODS = 'GET, HEAD'
const STALE_RETRY_SECONDS = '5'

export interface ApiParts {
  readonly store: Store
  /** Counts requests by key. */
  readonly rateLimit: RateLimit
  /** Counts requests without a valid key by address. */
  readonly addressLimit: RateLimit
  readonly salesEmail: string
  /** Created by the main thread, because creating it takes 8 MB. */
  readonly document: OpenApiAnswer
  readonly keyUses: RecentKeyUses
  readonly accessLog?: AccessLog
  /** For a node of a cluster. */
  readonly staleness?: Staleness
}

/**
 * Returns the REST API for a listener. Checks are in the order of the design: path, method, key,
 * plan, scope, rate, parameters. A node that may not know of a revoked key refuses before the key.
 */
export function apiServer(parts: ApiParts): Required<Pick<HttpListenOptions, 'handler' | 'fastPaths'>> {
  const api = new Api(parts)
  return { fastPaths: Object.keys(ROUTES), handler: (request, response) => api.answer(request, response) }
}

export function isKnownPath(path: string): boolean {
  return Object.hasOwn(ROUTES, path) || path === OPENAPI_PATH
}

class Api {
  readonly #parts: ApiParts
  readonly #callers: Callers
  readonly #bodies = new BodyCache()

  constructor(parts: ApiParts) {
    this.#parts = parts
    this.#callers = new Callers(parts.store, this.#bodies)
  }

  answer(request: HttpRequest, response: HttpResponse): void {
    const head = request.method === 'HEAD'
    try {
      this.#answer(request, response, head)
    } catch (error) {
      // Includes the fields of every response. The port logs the error.
      respondError(response, 500, 'Internal error', head)
      throw error
    }
  }

  #answer(request: HttpRequest, response: HttpResponse, head: boolean): void {
    const route = Object.hasOwn(ROUTES, request.path) ? ROUTES[request.path] : undefined
    if (route === undefined && request.path !== OPENAPI_PATH) return respondRefusal(response, 404, 'Not found', head)
    if (!head && request.method !== 'GET') {
      return respondRefusal(response, 405, `Method not allowed; expected ${ALLOWED_METHODS}`, head, [
        'allow',
        ALLOWED_METHODS,
      ])
    }
    if (route === undefined) return this.#showDocument(request, response, head)
    if (this.#parts.staleness?.isStale) {
      const message = 'This node does not receive the changes of its cluster; try another node, or again later'
      return respondRefusal(response, 503, message, head, ['retry-after', STALE_RETRY_SECONDS])
    }
    this.#parts.store.environment.readInTurn(() => this.#answerRoute(route, request, response, head))
  }

  /**
   * Serves the OpenAPI document. The document contains no data, so it needs no key; the limit per
   * address is that for invalid keys. It is not a list, so `If-Match` has no use.
   */
  #showDocument(request: HttpRequest, response: HttpResponse, head: boolean): void {
    if (!this.#admitWithoutKey(request, response, head)) return
    if (hasBody(request)) {
      return respondError(response, 400, 'Invalid request: expected no body', head, ['connection', 'close'])
    }
    const { body, gzip, tag } = this.#parts.document
    const tags = { etag: tag, gzipEtag: `${tag.slice(0, -1)}-gzip"` }
    const ifNoneMatch = request.header('if-none-match')
    const named = ifNoneMatch === '' ? undefined : namedTag(ifNoneMatch, tags, true)
    if (named !== undefined && named !== ANY_TAG) return respondNotModified(response, ['etag', named], false)
    const compressed = acceptsGzip(request.header('accept-encoding')) ? gzip : undefined
    const fields = compressed === undefined ? ['etag', tag] : ['etag', tags.gzipEtag]
    if (named === ANY_TAG) return respondNotModified(response, fields, false)
    if (compressed !== undefined) fields.push('content-encoding', 'gzip')
    respondJson(response, compressed ?? body, head, fields, false)
  }

  /**
   * Runs in one snapshot of the store, so that caller, permissions and data come from the same
   * moment.
   */
  #answerRoute(route: Route, request: HttpRequest, response: HttpResponse, head: boolean): void {
    const caller = this.#callers.find(request.header('x-api-key'))
    if (caller === undefined) return this.#refuseUnauthenticated(request, response, head)
    this.#parts.accessLog?.noteCaller(request, caller)
    this.#parts.keyUses.note(caller, Date.now())
    const forbidden = this.#forbidden(route, caller)
    if (forbidden !== undefined) return respondError(response, 403, forbidden, head)
    const verdict = this.#parts.rateLimit.take(caller.keyHash)
    const fields = rateFields(verdict)
    if (!verdict.allowed) {
      const message = `Rate limit exceeded; try again in ${verdict.resetSeconds} s`
      return respondError(response, 429, message, head, fields, true)
    }
    const { query } = request
    if (hasBody(request)) {
      fields.push('connection', 'close')
      return respondError(response, 400, 'Invalid request: expected no body', head, fields, true)
    }
    const page = route.paged && query !== '' ? pageOf(query) : undefined
    if (typeof page === 'string') return respondError(response, 400, page, head, fields, true)
    this.#show(route.list, caller, page, request, response, head, fields)
  }

  /** Returns why the caller may not use the route. */
  #forbidden(route: Route, { organization, scopes }: Caller): string | undefined {
    if (!organization.isEnterprise) {
      return `API access requires the Enterprise plan; contact ${this.#parts.salesEmail}`
    }
    return (scopes & scopeBit(route.scope)) === 0 ? `The API key does not hold the scope ${route.scope}` : undefined
  }

  /**
   * Every invalid key gets the same 401, a limited number of times per minute, which slows
   * guessing.
   */
  #refuseUnauthenticated(request: HttpRequest, response: HttpResponse, head: boolean): void {
    if (this.#admitWithoutKey(request, response, head)) respondInvalidKey(response, head)
  }

  /** Counts the request against its address. Rejects it and returns false above the limit. */
  #admitWithoutKey(request: HttpRequest, response: HttpResponse, head: boolean): boolean {
    const verdict = this.#parts.addressLimit.take(addressHash(request.remoteAddress()))
    if (verdict.allowed) return true
    const message = `Too many requests without a valid API key; try again in ${verdict.resetSeconds} s`
    respondRefusal(response, 429, message, head, [...rateFields(verdict), 'connection', 'close'], true)
    return false
  }

  #show(
    list: PublishedList,
    caller: Caller,
    page: Page | undefined,
    request: HttpRequest,
    response: HttpResponse,
    head: boolean,
    fields: string[],
  ): void {
    const state = this.#callers.listOf(caller, list)
    const ifMatch = request.header('if-match')
    if (ifMatch !== '' && namedTag(ifMatch, state, false) === undefined) {
      fields.push('etag', state.etag)
      const message = 'The data changed since the page that If-Match names; start again at offset 0'
      return respondError(response, 412, message, head, fields, true)
    }
    const ifNoneMatch = request.header('if-none-match')
    const named = ifNoneMatch === '' ? undefined : namedTag(ifNoneMatch, state, true)
    if (named !== undefined && named !== ANY_TAG) {
      // Both tags name the same data, so the response repeats the client's tag.
      fields.push('etag', named)
      return respondNotModified(response, fields)
    }
    const compressed = acceptsGzip(request.header('accept-encoding'))
      ? this.#gzipBody(list, caller, page, state)
      : undefined
    fields.push('etag', compressed === undefined ? state.etag : state.gzipEtag)
    // A 304 has the same tag as the 200 (RFC 9110 §15.4.5).
    if (named === ANY_TAG) return respondNotModified(response, fields)
    if (compressed !== undefined) fields.push('content-encoding', 'gzip')
    respondJson(response, compressed ?? this.#body(list, caller, page, state), head, fields)
  }

  /** Returns a body that is valid until the next read from the store. */
  #body(list: PublishedList, { organization }: Caller, page: Page | undefined, state: ListState): Uint8Array {
    const { published } = this.#parts.store
    if (page === undefined) {
      const { first } = state
      if (first.bytes !== undefined) return first.bytes
      const body = published.firstBody(first.key, !first.isChecked)
      first.isChecked = true
      if (body !== undefined) return this.#bodies.keep(first, body)
    }
    const { limit, offset } = page ?? (LIST_SHAPES[list].paged ? DEFAULT_PAGE : WHOLE_LIST)
    const runs = published.elements(organization.id, list, state.count, offset, limit)
    return bodyOf(list, state.headText, runs)
  }

  /**
   * Returns a body in gzip that is valid until the next read from the store. undefined: it is
   * short, or does not begin and end with a part.
   */
  #gzipBody(
    list: PublishedList,
    { organization }: Caller,
    page: Page | undefined,
    { count, firstGzip }: ListState,
  ): Uint8Array | undefined {
    const { published } = this.#parts.store
    if (page === undefined) {
      if (firstGzip.bytes !== undefined) return firstGzip.bytes
      const body = published.gzipBody(firstGzip.key, !firstGzip.isChecked)
      firstGzip.isChecked = true
      return body && this.#bodies.keep(firstGzip, body)
    }
    const { limit, offset } = page
    if (offset % ELEMENTS_PER_PART !== 0 || (limit < ELEMENTS_PER_PART && offset + limit < count)) return undefined
    if (offset >= count) return undefined
    return published.gzipBody(gzipBodyKey(organization.id, list, offset / ELEMENTS_PER_PART), true)
  }
}

/** A request body has no meaning here, so a client that sends one is mistaken. */
function hasBody(request: HttpRequest): boolean {
  const length = request.header('content-length')
  return (length !== '' && length !== '0') || request.header('transfer-encoding') !== ''
}

const DEFAULT_PAGE = pageOf('') as Page

/** Returns a hash of the address, or of its /64 for IPv6, under which requests are counted. */
export function addressHash(address: string): Buffer {
  return hash('sha256', clientOf(address), 'buffer')
}
