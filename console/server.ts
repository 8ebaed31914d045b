import { ACTIONS } from '../engine/admin/actions.ts'
import type { Staleness } from '../engine/cluster/replication/staleness.ts'
import type { BodyEnd, BodyPace, HttpHandler, HttpRequest, HttpResponse } from '../engine/http/port.ts'
import { Fault, type FaultCode } from '../engine/kernel/process/error-codes.ts'
import { logFailure } from '../engine/kernel/process/failure.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { Asset } from './assets.ts'
import { BLOCK_LIST_PREFIX, BlockListServer } from './block-lists.ts'
import { OverloadError } from './change-sender.ts'
import { confirmed, PASSWORD_FIELD } from './confirmation.ts'
import { rangeProblem } from './design/range.tsx'
import { FORM_BYTES_MAX, FormFields, readFields } from './form.ts'
import { type Answer, redirect, sendAnswer, sendAsset } from './http/answer.ts'
import { Cookies } from './http/cookies.ts'
import { errorAnswer, type Refusal, refreshAnswer } from './http/error.tsx'
import { type Found, type Route, Router } from './http/router.ts'
import { crossSiteFault, originOf } from './http/security.ts'
import { Guest, type RequestFacts, Visit } from './http/visit.ts'
import { SessionReader } from './sign-in/session-reader.ts'
import type { Site } from './site.ts'
import type { Upload } from './try-file/upload.ts'

interface ConsoleParts {
  readonly site: Site
  readonly routes: readonly Route[]
  readonly assets: ReadonlyMap<string, Asset>
  /** The public origin; '' if the Host field has it. */
  readonly origin: string
  readonly scheme: 'https' | 'http'
  readonly log: Logger
  /** undefined: the service is alone. */
  readonly staleness?: Pick<Staleness, 'isStale'> | undefined
  /** The minimum rate of a form's body; tests shorten it. */
  readonly formPace?: BodyPace
}

/** Minimum rate of a form's body. */
const FORM_PACE: BodyPace = { graceMs: 10_000, bytesPerSecondMin: 1024 }
/** The rest of the body is not read, so the connection cannot be reused. */
const CLOSE = ['connection', 'close'] as const

/** Why the body of a form was not read. */
const INCOMPLETE: Readonly<Record<'too large' | 'too slow', Refusal>> = {
  'too large': { status: 413, message: 'The form is too large' },
  'too slow': { status: 408, message: 'The form arrived too slowly' },
}

type Send = (answer: Answer, fields?: readonly string[]) => void

/** Answers the requests of browsers. */
export function consoleHandler(parts: ConsoleParts): HttpHandler {
  const server = new ConsoleServer(parts)
  return (request, response) => server.handle(request, response)
}

class ConsoleServer {
  readonly #parts: ConsoleParts
  readonly #router: Router
  readonly #sessions: SessionReader
  readonly #blockLists: BlockListServer

  constructor(parts: ConsoleParts) {
    this.#parts = parts
    this.#router = new Router(parts.routes)
    const { store, registry, clock, changes, counters } = parts.site
    this.#blockLists = new BlockListServer({ store, registry, clock, counters })
    this.#sessions = new SessionReader(store, (hash, usedAtMs) => {
      changes.account('sessions.used', [{ hash, usedAtMs }]).catch((error: unknown) => {
        logFailure(parts.log, error, 'the last use of a session is not stored now', { level: 'warn' })
      })
    })
  }

  handle(request: HttpRequest, response: HttpResponse): void | Promise<void> {
    const { method, path } = request
    const isStale = this.#parts.staleness?.isStale === true
    if (path.startsWith(BLOCK_LIST_PREFIX) && !isStale) return this.#blockLists.handle(request, response)
    const isRead = method === 'GET' || method === 'HEAD'
    const asset = this.#parts.assets.get(path)
    if (asset !== undefined && isRead) return sendAsset(request, response, asset)
    const { origin, scheme } = this.#parts
    const facts = factsOf(request, originOf(request, origin, scheme))
    const gzip = /\bgzip\b/.test(request.header('accept-encoding'))
    const beganMs = performance.now()
    const send: Send = (answer, fields = []) => {
      sendAnswer(response, answer, { gzip, bodyOmitted: method === 'HEAD', fields })
      // Forms wait for their body and for passwords.
      if (isRead && answer.kind !== 'redirect') this.#parts.site.counters.notePage(performance.now() - beganMs)
    }
    if (isStale) {
      // Sessions and members may have changed, so the page does not name the visitor either.
      const message = 'This node does not receive the changes of its cluster. Try again later'
      return send(errorAnswer(new Guest(this.#parts.site, facts, undefined), { status: 503, message }), CLOSE)
    }
    const found = isRead || method === 'POST' ? this.#router.find(isRead ? 'GET' : 'POST', path) : undefined
    if (found === undefined) return this.#sendUnknown(facts, send)
    if (method === 'POST') return this.#post(found, facts, request, response, send)
    return this.#answer(facts, () => this.#run(found, facts)).then(send)
  }

  #sendUnknown(facts: RequestFacts, send: Send): void {
    const methods = this.#router.methodsOf(facts.path)
    if (methods.length === 0) {
      send(this.#refused(facts, { status: 404, message: 'There is no page at this address' }))
    } else {
      const allow = methods.join(', ')
      send(this.#refused(facts, { status: 405, message: `This address takes ${allow}` }), ['allow', allow])
    }
  }

  async #post(
    found: Found,
    before: RequestFacts,
    request: HttpRequest,
    response: HttpResponse,
    send: Send,
  ): Promise<void> {
    const crossSite = crossSiteFault(request, before.origin)
    if (crossSite !== undefined) return send(this.#refused(before, { status: 403, message: crossSite }))
    if ('receive' in found.route) return this.#receive(found, before, request, response, send)
    const type = request.header('content-type').split(';', 1)[0]?.trim().toLowerCase()
    if (type !== 'application/x-www-form-urlencoded') {
      const message = 'The form was not sent as application/x-www-form-urlencoded'
      return send(this.#refused(before, { status: 415, message }))
    }
    const body = await request.body(found.route.bodyBytesMax ?? FORM_BYTES_MAX, this.#parts.formPace ?? FORM_PACE)
    if (body === 'aborted') return
    if (typeof body === 'string') return send(this.#refused(before, INCOMPLETE[body]), CLOSE)
    const fields = readFields(body, found.route.fieldsMax)
    if (typeof fields === 'string') return send(this.#refused(before, { status: 400, message: fields }))
    const facts = { ...before, fields }
    send(await this.#answer(facts, () => this.#run(found, facts)))
  }

  /** A form whose route reads the body itself, so that only those who may use it can send one. */
  async #receive(
    found: Found,
    facts: RequestFacts,
    request: HttpRequest,
    response: HttpResponse,
    send: Send,
  ): Promise<void> {
    let end: BodyEnd | undefined
    const upload: Upload = {
      contentType: request.header('content-type'),
      isAborted: () => response.aborted,
      chunks: async (...options) => {
        end = await request.bodyChunks(...options)
        return end
      },
    }
    const answer = await this.#answer(facts, () => this.#run(found, facts, upload))
    send(answer, end === 'ended' ? [] : CLOSE)
  }

  /**
   * Runs a route if the visitor may use it. Reads one snapshot of the store until the handler first
   * waits.
   */
  #run({ route, parameters }: Found, facts: RequestFacts, upload?: Upload): Answer | Promise<Answer> {
    const { site } = this.#parts
    return site.store.environment.read(() => {
      const identity = this.#sessions.identify(facts.cookies.get('session'), site.clock.nowMs())
      if (route.access === 'anyone') return route.handle(new Guest(site, facts, identity), parameters)
      if (identity === undefined) {
        if (facts.method !== 'POST') {
          return facts.isCrossSite ? refreshAnswer(addressOf(facts)) : redirect(signInPath(facts))
        }
        const kept = 'receive' in route ? [] : facts.fields.without(PASSWORD_FIELD, ...(route.secretFields ?? []))
        return this.#refused(facts, { status: 401, message: 'Your session has ended', kept })
      }
      const visit = new Visit(site, facts, identity)
      if (route.access === 'signed-in' || visit.may(route.access)) {
        if ('receive' in route) return route.receive(visit, upload as Upload)
        // A page says that it shows other days; a file cannot.
        const { evidenceWindowDays } = identity.organization
        const problem = route.path.endsWith('.csv')
          ? rangeProblem(facts.query, evidenceWindowDays, visit.nowMs)
          : undefined
        if (problem !== undefined) return this.#refused(facts, { status: 400, message: problem })
        return route.confirmed === true
          ? confirmed(visit, (now) => route.handle(now, parameters), route.secretFields)
          : route.handle(visit, parameters)
      }
      const { role } = identity.member
      const message = `Your role (${role}) does not allow this. It requires the role ${ACTIONS[route.access]} or higher`
      return this.#refused(facts, { status: 403, message })
    })
  }

  /** Returns the answer of `work`, or an error page if `work` fails. */
  async #answer(facts: RequestFacts, work: () => Answer | Promise<Answer>): Promise<Answer> {
    try {
      return await work()
    } catch (error) {
      return this.#refused(facts, this.#refusalOf(error, facts))
    }
  }

  #refusalOf(error: unknown, { path }: RequestFacts): Refusal {
    if (error instanceof Fault) return { status: STATUS_OF_FAULT[error.code] ?? 503, message: error.message }
    if (error instanceof OverloadError) return { status: 503, message: 'The service is busy. Try again in a minute' }
    this.#parts.log.error({ path, err: error }, 'a page of the console failed')
    return { status: 500, message: 'Internal error. The log of the service has the reason' }
  }

  #refused(facts: RequestFacts, refusal: Refusal): Answer {
    const { site } = this.#parts
    const identity = site.store.environment.read(() =>
      this.#sessions.identify(facts.cookies.get('session'), site.clock.nowMs()),
    )
    return errorAnswer(new Guest(site, facts, identity), refusal)
  }
}

/**
 * Faults that a visitor can cause. All others mean that the service is temporarily unable to
 * answer.
 */
const STATUS_OF_FAULT: Readonly<Partial<Record<FaultCode, number>>> = {
  USAGE: 400,
  NOT_ALLOWED: 403,
  NOT_FOUND: 404,
  CONFLICT: 409,
}

/** The sign-in page redirects to the requested page. */
function signInPath(facts: RequestFacts): string {
  const to = addressOf(facts)
  return to === '/' ? '/sign-in' : `/sign-in?${new URLSearchParams({ to })}`
}

function addressOf({ path, query }: RequestFacts): string {
  return query.size > 0 ? `${path}?${query}` : path
}

function factsOf(request: HttpRequest, origin: string): RequestFacts {
  const { method } = request
  return {
    method: method === 'POST' || method === 'HEAD' ? method : 'GET',
    path: request.path,
    origin,
    query: new URLSearchParams(request.query),
    cookies: new Cookies(request.header('cookie')),
    address: request.remoteAddress(),
    isCrossSite: request.header('sec-fetch-site') === 'cross-site',
    userAgent: request.header('user-agent'),
    fields: new FormFields(),
  }
}
