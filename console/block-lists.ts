import { createHash } from 'node:crypto'
import { blockListSource } from '../engine/export/block-list.ts'
import { BLOCK_LIST_FORMATS, type BlockListFormat, writeBlockList } from '../engine/export/block-list-text.ts'
import { FieldBlock } from '../engine/http/fields.ts'
import type { HttpRequest, HttpResponse } from '../engine/http/port.ts'
import type { Clock } from '../engine/kernel/process/clock.ts'
import { hashSecret, isBlockListSecret } from '../engine/store/access-key.ts'
import type { Organization } from '../engine/store/organizations.ts'
import { SERVICE_WIDE } from '../engine/store/own-platforms.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import { type BlockListLink, statusOf } from '../engine/store/secrets.ts'
import type { Store } from '../engine/store/store.ts'
import type { BlockListResult, ConsoleCounters } from './metrics.ts'
import { SignInAttempts } from './sign-in/attempts.ts'

/** A link, and the format by the ending of the path. */
const PATH = /^\/blocklist\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([a-z]{1,20})$/
export const BLOCK_LIST_PREFIX = '/blocklist/'
/** A user name of any length would make each request cost more than its answer. */
const AUTHORIZATION_CHARS_MAX = 1000

const FIELDS = new FieldBlock([
  'content-type',
  'text/plain; charset=utf-8',
  'cache-control',
  'private, no-cache',
  'x-content-type-options',
  'nosniff',
])

interface BlockListParts {
  readonly store: Store
  readonly registry: RegistryInForce
  readonly clock: Clock
  readonly counters: ConsoleCounters
}

/**
 * Sends block lists to devices, which authenticate with the secret of a link (HTTP Basic, RFC
 * 7617). There are no cookies and no pages. A list is made again only if something changed that it
 * depends on, or if other lists displaced it.
 */
export class BlockListServer {
  readonly #parts: BlockListParts
  readonly #attempts: SignInAttempts
  readonly #kept: BlockListCache

  constructor(parts: BlockListParts) {
    this.#parts = parts
    this.#attempts = new SignInAttempts(() => this.#note('rate_limited'))
    this.#kept = new BlockListCache(() => parts.counters.noteBlockListDropped())
  }

  #note(result: BlockListResult): void {
    this.#parts.counters.note('blockList', result)
  }

  handle(request: HttpRequest, response: HttpResponse): void {
    const bodyOmitted = request.method === 'HEAD'
    const send = (status: number, body: string, fields: readonly string[] = []): void => {
      response.send({ status, body, fields, block: FIELDS, bodyOmitted, isRefusal: status === 401 || status === 429 })
    }
    if (request.method !== 'GET' && !bodyOmitted) return send(405, 'Use GET\n', ['allow', 'GET, HEAD'])
    const { store, clock } = this.#parts
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
        this.#note('unauthorized')
        return send(401, 'The link or its secret is not valid\n', ['www-authenticate', 'Basic realm="block list"'])
      }
      const format = formatOf(request.path)
      if (format === undefined) {
        this.#note('not_found')
        return send(404, `Formats: ${BLOCK_LIST_FORMATS.join(', ')}\n`)
      }
      const known = request.header('if-none-match').split(',')
      const { text, etag } = this.#listOf(link, organization, format, nowMs, known)
      if (text === undefined) {
        this.#note('not_modified')
        return send(304, '', ['etag', etag])
      }
      this.#note('sent')
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

  /**
   * Without its text, if the device has the list.
   *
   * @param known the tags that the device sent
   */
  #listOf(
    link: BlockListLink,
    organization: Organization,
    format: BlockListFormat,
    nowMs: number,
    known: readonly string[],
  ): { readonly etag: string; readonly text: string | undefined } {
    const isKnown = (etag: string): boolean => known.some((each) => each.trim() === etag || each.trim() === '*')
    const { store, registry, counters } = this.#parts
    const { id } = organization
    const { states } = store.decisions.inForce(id, nowMs)
    const versions = [store.ownPlatforms.version(SERVICE_WIDE), store.ownPlatforms.version(id)]
    const inputs = digest(JSON.stringify([organization.name, organization.domain, versions, [...states].sort()]))
    // Links with the same selection share their lists.
    const key = `${id} ${link.blocks} ${link.riskMin} ${format}`
    const before = this.#kept.find(key, inputs)
    if (before !== undefined && isKnown(before.etag)) return { etag: before.etag, text: undefined }
    if (before?.text !== undefined) return { etag: before.etag, text: before.text }
    counters.noteBlockListMade()
    const { textAt } = writeBlockList(blockListSource(store, registry, organization, nowMs), organization, link, format)
    // Weak, because the comments have the time: the same list, made again, has the same tag.
    const etag = `W/"${digest(textAt(0))}"`
    const text = textAt(nowMs)
    this.#kept.keep(key, { inputs, etag }, text)
    return { etag, text: isKnown(etag) ? undefined : text }
  }
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32)
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

/** Bytes of block lists in memory: a hundred of the built-in registry. */
export const KEPT_BYTES_MAX = 16 * 1024 * 1024
/**
 * Lists whose tags are in memory, 300 bytes each: eleven organizations with as many links and
 * formats as possible.
 */
const TAGS_MAX = 10_000

/** The tag of a list, and a digest of everything that the list was made from. */
interface ListTag {
  readonly inputs: string
  readonly etag: string
}

/**
 * Block lists in memory. Those used longest ago are dropped first, and are made again when a device
 * requests them. Tags are small and stay longer than texts: most devices have the list already.
 */
export class BlockListCache {
  readonly #tags = new Map<string, ListTag>()
  readonly #texts = new Map<string, string>()
  readonly #noteDropped: () => void
  #bytes = 0

  /** @param noteDropped called for each list that others displace */
  constructor(noteDropped: () => void) {
    this.#noteDropped = noteDropped
  }

  /** The tag of a list made from the same inputs, and its text if that is in memory as well. */
  find(key: string, inputs: string): { readonly etag: string; readonly text: string | undefined } | undefined {
    const tag = this.#tags.get(key)
    if (tag === undefined || tag.inputs !== inputs) return undefined
    moveLast(this.#tags, key, tag)
    const text = this.#texts.get(key)
    if (text !== undefined) moveLast(this.#texts, key, text)
    return { etag: tag.etag, text }
  }

  /** @param text of ASCII, so that it has as many bytes as characters */
  keep(key: string, tag: ListTag, text: string): void {
    moveLast(this.#tags, key, tag)
    this.#forgetText(key)
    moveLast(this.#texts, key, text)
    this.#bytes += text.length
    for (const oldest of this.#texts.keys()) {
      if (this.#bytes <= KEPT_BYTES_MAX) break
      this.#forgetText(oldest)
      this.#noteDropped()
    }
    for (const oldest of this.#tags.keys()) {
      if (this.#tags.size <= TAGS_MAX) break
      this.#tags.delete(oldest)
      this.#forgetText(oldest)
    }
  }

  #forgetText(key: string): void {
    this.#bytes -= this.#texts.get(key)?.length ?? 0
    this.#texts.delete(key)
  }
}

/** Sets an entry as the one that was used last. */
function moveLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
}
