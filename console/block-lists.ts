import { createHash } from 'node:crypto'
import { blockListSource, writeBlockList } from '../engine/export/block-list-source.ts'
import { BLOCK_LIST_FORMATS, type BlockListFormat } from '../engine/export/block-list-text.ts'
import { FieldBlock } from '../engine/http/fields.ts'
import type { HttpRequest, HttpResponse } from '../engine/http/port.ts'
import type { Clock } from '../engine/process/clock.ts'
import { hashSecret, isBlockListSecret } from '../engine/store/access-key.ts'
import type { BlockListLink } from '../engine/store/block-list-links.ts'
import type { Organization } from '../engine/store/organizations.ts'
import { SERVICE_WIDE } from '../engine/store/own-platforms.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { statusOf } from '../engine/store/secrets.ts'
import type { Store } from '../engine/store/store.ts'
import type { BlockListResult } from './metrics.ts'
import { SignInAttempts } from './sign-in/attempts.ts'

/** A link, and the format by the ending of the path. */
const PATH = /^\/blocklist\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([a-z]{1,20})$/
export const BLOCK_LIST_PREFIX = '/blocklist/'
/** Lists in memory, and their characters: the oldest are made again when they are requested. */
const KEPT_MAX = 100
const KEPT_CHARS_MAX = 16 * 1024 * 1024
/** A user name of any length would make each request cost more than its answer. */
const AUTHORIZATION_CHARS_MAX = 1000

const FIELDS = new FieldBlock([
  'content-type',
  'text/plain; charset=utf-8',
  'cache-control',
  'private, no-cache',
  'x-content-type-options',
  'nosniff',
  'strict-transport-security',
  'max-age=31536000',
])

interface KeptList {
  /** Everything that the list was made from, except for the time. */
  readonly inputs: string
  readonly text: string
  readonly etag: string
}

export interface BlockListParts {
  readonly store: Store
  readonly registry: RegistryInForce
  readonly clock: Clock
  readonly note: (result: BlockListResult) => void
}

/**
 * Sends block lists to devices, which authenticate with the secret of a link (HTTP Basic, RFC
 * 7617). There are no cookies and no pages. A list is made again only if something changed that it
 * depends on.
 */
export class BlockListServer {
  readonly #parts: BlockListParts
  readonly #attempts: SignInAttempts
  readonly #kept = new Map<string, KeptList>()
  #keptChars = 0

  constructor(parts: BlockListParts) {
    this.#parts = parts
    this.#attempts = new SignInAttempts(() => parts.note('rate_limited'))
  }

  handle(request: HttpRequest, response: HttpResponse): void {
    const bodyOmitted = request.method === 'HEAD'
    const send = (status: number, body: string, fields: readonly string[] = []): void => {
      response.send({ status, body, fields, block: FIELDS, bodyOmitted, isRefusal: status === 401 || status === 429 })
    }
    if (request.method !== 'GET' && !bodyOmitted) return send(405, 'Use GET\n', ['allow', 'GET, HEAD'])
    const { store, clock, note } = this.#parts
    const nowMs = clock.nowMs()
    store.environment.read(() => {
      const link = this.#linkOf(request, nowMs)
      const organization = link && store.organizations.get(link.organizationId)
      if (link === undefined || organization === undefined) {
        // The secret is long and random, so a valid one is never delayed by the failures of others.
        const verdict = this.#attempts.beginFromNetwork(request.remoteAddress(), nowMs)
        if (!verdict.allowed) {
          return send(429, 'Too many wrong secrets\n', ['retry-after', String(verdict.retryAfterSeconds)])
        }
        note('unauthorized')
        return send(401, 'The link or its secret is not valid\n', ['www-authenticate', 'Basic realm="block list"'])
      }
      const format = formatOf(request.path)
      if (format === undefined) {
        note('not_found')
        return send(404, `Formats: ${BLOCK_LIST_FORMATS.join(', ')}\n`)
      }
      const { text, etag } = this.#listOf(link, organization, format, nowMs)
      const known = request.header('if-none-match').split(',')
      if (known.some((each) => each.trim() === etag || each.trim() === '*')) {
        note('not_modified')
        return send(304, '', ['etag', etag])
      }
      note('sent')
      send(200, text, ['etag', etag])
    })
  }

  /** The link of the path, if the request has its secret. */
  #linkOf(request: HttpRequest, nowMs: number): BlockListLink | undefined {
    const id = PATH.exec(request.path)?.[1]
    const secret = secretOf(request.header('authorization'))
    if (id === undefined || secret === undefined) return undefined
    // Found by the hash, so the time of the search reveals nothing about the secret.
    const link = this.#parts.store.blockListLinks.byHash(hashSecret(secret))
    return link?.id === id && statusOf(link, nowMs) === 'active' ? link : undefined
  }

  #listOf(link: BlockListLink, organization: Organization, format: BlockListFormat, nowMs: number): KeptList {
    const { store, registry } = this.#parts
    const { id } = organization
    const { states } = store.decisions.inForce(id, nowMs)
    const versions = [store.ownPlatforms.version(SERVICE_WIDE), store.ownPlatforms.version(id)]
    const inputs = JSON.stringify([organization.name, organization.domain, versions, [...states].sort()])
    const key = `${link.id} ${format}`
    const before = this.#kept.get(key)
    if (before?.inputs === inputs) return before
    const source = blockListSource(store, registry, organization, nowMs)
    const { text } = writeBlockList(source, organization, link, format, nowMs)
    // Weak, because the comments have the time: the same list, made again, has the same tag.
    const { text: timeless } = writeBlockList(source, organization, link, format, 0)
    const etag = `W/"${createHash('sha256').update(timeless).digest('hex').slice(0, 32)}"`
    const list = { inputs, text, etag }
    this.#keep(key, list)
    return list
  }

  #keep(key: string, list: KeptList): void {
    this.#forget(key)
    this.#kept.set(key, list)
    this.#keptChars += list.text.length
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX && this.#keptChars <= KEPT_CHARS_MAX) break
      this.#forget(oldest)
    }
  }

  #forget(key: string): void {
    this.#keptChars -= this.#kept.get(key)?.text.length ?? 0
    this.#kept.delete(key)
  }
}

function formatOf(path: string): BlockListFormat | undefined {
  const ending = PATH.exec(path)?.[2]
  return BLOCK_LIST_FORMATS.find((format) => format === ending)
}

/** The password of Basic credentials, if it has the form of a secret. Any user name will do. */
function secretOf(authorization: string): string | undefined {
  if (authorization.length > AUTHORIZATION_CHARS_MAX) return undefined
  const [, encoded] = /^basic +([a-z0-9+/]+={0,2})$/i.exec(authorization) ?? []
  if (encoded === undefined) return undefined
  const credentials = Buffer.from(encoded, 'base64').toString('latin1')
  const secret = credentials.slice(credentials.indexOf(':') + 1)
  return isBlockListSecret(secret) ? secret : undefined
}
