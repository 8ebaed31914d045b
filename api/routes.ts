import type { HttpHandler, HttpRequest, HttpResponse } from '../engine/http/port.ts'
import type { Scope } from '../engine/store/api-keys.ts'
import { PublishedList } from '../engine/store/published.ts'
import type { Store } from '../engine/store/store.ts'
import { authenticate, type Caller, whyForbidden } from './authenticate.ts'
import type { RecentKeyUses } from './key-uses.ts'
import { OPENAPI_PATH, openApiAnswer } from './openapi.ts'
import { type Page, pageOf } from './page.ts'
import type { RateLimit } from './rate-limit.ts'
import { rateFields, respondError, respondJson, respondNotModified } from './respond.ts'

/** An endpoint: which list it shows, and how the answer is put together from ready bytes. */
interface Route {
  readonly scope: Scope
  readonly list: PublishedList
  readonly paged: boolean
  /** What stands before and behind the elements; `head` is the published head text. */
  readonly open: (head: Buffer) => Buffer
  readonly close: Buffer
  /** The head where nothing was published yet. */
  readonly emptyHead: Buffer
}

const LIST_END = Buffer.from(']}')

function listNamed(name: string): (head: Buffer) => Buffer {
  const opening = Buffer.from(`{"${name}":[`)
  return () => opening
}

const SCAN_OPENING = Buffer.from('{"scan":')
const PLATFORMS_OPENING = Buffer.from(',"platforms":[')
const NO_HEAD = Buffer.alloc(0)
/** More than any list holds: /scores shows all. */
const WHOLE_LIST: Page = { limit: Number.MAX_SAFE_INTEGER, offset: 0 }

export const ROUTES: Readonly<Record<string, Route>> = {
  '/api/v1/discovery': {
    scope: 'discovery:read',
    list: PublishedList.discovery,
    paged: true,
    open: (head) => Buffer.concat([SCAN_OPENING, head, PLATFORMS_OPENING]),
    close: LIST_END,
    emptyHead: Buffer.from('null'),
  },
  '/api/v1/scores': {
    scope: 'scores:read',
    list: PublishedList.scores,
    paged: false,
    open: listNamed('scores'),
    close: LIST_END,
    emptyHead: NO_HEAD,
  },
  '/api/v1/recommendations': {
    scope: 'recommendations:read',
    list: PublishedList.recommendations,
    paged: true,
    open: listNamed('recommendations'),
    close: LIST_END,
    emptyHead: NO_HEAD,
  },
  '/api/v1/assessments': {
    scope: 'assessments:read',
    list: PublishedList.assessments,
    paged: true,
    open: listNamed('assessments'),
    close: LIST_END,
    emptyHead: NO_HEAD,
  },
}

const ALLOWED_METHODS = 'GET, HEAD'
/** The entity tag of a list that was never published. */
const EMPTY_TAG = '0'.repeat(32)

export interface ApiParts {
  readonly store: Store
  readonly rateLimit: RateLimit
  readonly salesEmail: string
  readonly keyUses: RecentKeyUses
}

/** The REST API. The order of the checks is the design's: path, method, key, plan, scope, rate, parameters. */
export function apiHandler(parts: ApiParts): HttpHandler {
  const document = openApiAnswer(ROUTES, parts.salesEmail)
  return (request, response) => {
    const head = request.method === 'HEAD'
    const route = Object.hasOwn(ROUTES, request.path) ? ROUTES[request.path] : undefined
    if (route === undefined && request.path !== OPENAPI_PATH) return respondError(response, 404, 'Not found', head)
    if (!head && request.method !== 'GET') {
      return respondError(response, 405, `Method not allowed; expected ${ALLOWED_METHODS}`, head, [
        'allow',
        ALLOWED_METHODS,
      ])
    }
    if (route === undefined) return showDocument(document, request, response, head)
    parts.store.environment.read(() => answer(parts, route, request, response, head))
  }
}

function answer(parts: ApiParts, route: Route, request: HttpRequest, response: HttpResponse, head: boolean): void {
  const caller = authenticate(parts.store, request.header('x-api-key'))
  if (caller === undefined) return respondError(response, 401, 'Invalid API key', head)
  parts.keyUses.note(caller.key, Date.now())
  const forbidden = whyForbidden(parts.store, caller, route.scope, parts.salesEmail)
  if (forbidden !== undefined) return respondError(response, 403, forbidden, head)
  const verdict = parts.rateLimit.take(caller.keyHash)
  const fields = rateFields(verdict)
  if (!verdict.allowed) {
    return respondError(response, 429, `Rate limit exceeded; try again in ${verdict.resetSeconds} s`, head, fields)
  }
  const page = route.paged ? pageOf(request.query) : WHOLE_LIST
  if (typeof page === 'string') return respondError(response, 400, page, head, fields)
  showPage(parts.store, route, caller, page, request, response, head, fields)
}

function showPage(
  store: Store,
  route: Route,
  caller: Caller,
  page: Page,
  request: HttpRequest,
  response: HttpResponse,
  head: boolean,
  fields: string[],
): void {
  const { organizationId } = caller.key
  const published = store.published.head(organizationId, route.list)
  const tag = `"${published?.tag ?? EMPTY_TAG}"`
  fields.push('etag', tag)
  const ifMatch = request.header('if-match')
  if (ifMatch !== '' && !namesTag(ifMatch, tag)) {
    return respondError(
      response,
      412,
      'The data changed since the page that If-Match names; start again at offset 0',
      head,
      fields,
    )
  }
  const ifNoneMatch = request.header('if-none-match')
  if (ifNoneMatch !== '' && namesTag(ifNoneMatch, tag)) return respondNotModified(response, fields)
  const runs =
    published === undefined
      ? []
      : store.published.elements(organizationId, route.list, published.count, page.offset, page.limit)
  const body = Buffer.concat([route.open(published?.text ?? route.emptyHead), ...runs, route.close])
  respondJson(response, body, head, fields)
}

/** The OpenAPI document: it holds no data, so it needs no key. It is no list, so `If-Match` has nothing to keep together. */
function showDocument(
  { body, tag }: ReturnType<typeof openApiAnswer>,
  request: HttpRequest,
  response: HttpResponse,
  head: boolean,
): void {
  const ifNoneMatch = request.header('if-none-match')
  if (ifNoneMatch !== '' && namesTag(ifNoneMatch, tag)) return respondNotModified(response, ['etag', tag])
  respondJson(response, body, head, ['etag', tag])
}

/** Whether a list of entity tags (RFC 9110 §13.1) names this one, or any. */
function namesTag(list: string, tag: string): boolean {
  return list.split(',').some((each) => {
    const one = each.trim()
    return one === '*' || one === tag || one === `W/${tag}`
  })
}
