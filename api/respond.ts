import { FieldBlock } from '../engine/http/fields.ts'
import type { HttpResponse } from '../engine/http/port.ts'
import { type RateVerdict, REQUESTS_PER_WINDOW } from './rate-limit/rate-limit.ts'

/**
 * Fields of every response: private to the key's holder, no sniffing, and revalidated before reuse
 * (RFC 9111 §5.2.2).
 */
const FIXED_FIELDS = [
  'cache-control',
  'private, no-cache',
  'vary',
  'X-API-Key, Accept-Encoding',
  'x-content-type-options',
  'nosniff',
  'content-security-policy',
  "default-src 'none'",
] as const
const LIMIT_FIELDS = ['ratelimit-limit', String(REQUESTS_PER_WINDOW)] as const
const JSON_TYPE = ['content-type', 'application/json'] as const
const UNLIMITED_BLOCK = new FieldBlock([...JSON_TYPE, ...FIXED_FIELDS])
const JSON_BLOCK = new FieldBlock([...JSON_TYPE, ...FIXED_FIELDS, ...LIMIT_FIELDS])
const UNLIMITED_NOT_MODIFIED_BLOCK = new FieldBlock(FIXED_FIELDS)
const NOT_MODIFIED_BLOCK = new FieldBlock([...FIXED_FIELDS, ...LIMIT_FIELDS])

/**
 * RateLimit fields as in draft-ietf-httpapi-ratelimit-headers, without the limit itself, and
 * Retry-After if the request was rejected.
 */
export function rateFields(verdict: RateVerdict): string[] {
  const fields = ['ratelimit-remaining', String(verdict.remaining), 'ratelimit-reset', String(verdict.resetSeconds)]
  if (!verdict.allowed) fields.push('retry-after', String(verdict.resetSeconds))
  return fields
}

/** Sends `{ "error": message }`. `limited` is true if the rate limit was checked. */
export function respondError(
  response: HttpResponse,
  status: number,
  message: string,
  head: boolean,
  fields: readonly string[] = [],
  limited = false,
): void {
  const block = limited ? JSON_BLOCK : UNLIMITED_BLOCK
  response.send({ status, body: JSON.stringify({ error: message }), fields, block, bodyOmitted: head })
}

/** The same to a client without a valid key. It counts as a refusal of the client (HttpAnswer). */
export function respondRefusal(
  response: HttpResponse,
  status: number,
  message: string,
  head: boolean,
  fields: readonly string[] = [],
  limited = false,
): void {
  const block = limited ? JSON_BLOCK : UNLIMITED_BLOCK
  response.send({
    status,
    body: JSON.stringify({ error: message }),
    fields,
    block,
    bodyOmitted: head,
    isRefusal: true,
  })
}

/** A 401 names a scheme (RFC 9110 §15.5.2). None is registered for keys in fields of their own. */
const CHALLENGE = ['www-authenticate', 'Bearer realm="X-API-Key"'] as const

export function respondInvalidKey(response: HttpResponse, head: boolean): void {
  respondRefusal(response, 401, 'Invalid API key', head, CHALLENGE)
}

export function respondJson(
  response: HttpResponse,
  body: Uint8Array,
  head: boolean,
  fields: readonly string[],
  limited = true,
): void {
  const block = limited ? JSON_BLOCK : UNLIMITED_BLOCK
  response.send({ status: 200, body, fields, block, bodyOmitted: head })
}

export function respondNotModified(response: HttpResponse, fields: readonly string[], limited = true): void {
  const block = limited ? NOT_MODIFIED_BLOCK : UNLIMITED_NOT_MODIFIED_BLOCK
  response.send({ status: 304, body: '', fields, block, bodyOmitted: false })
}

/** `q=0.5` (RFC 9110 §12.4.2); anything else counts as 1. */
const WEIGHT = /^\s*q=(0(?:\.\d{0,3})?)\s*$/i

let lastField = ''
let lastAnswer = false

/**
 * Whether a client accepts gzip (RFC 9110 §12.5.3), by name or by `*`, and does not prefer an
 * answer that is not compressed.
 */
export function acceptsGzip(acceptEncoding: string): boolean {
  // Most clients send the same field.
  if (acceptEncoding !== lastField) {
    lastAnswer = prefersGzip(acceptEncoding)
    lastField = acceptEncoding
  }
  return lastAnswer
}

function prefersGzip(acceptEncoding: string): boolean {
  let gzip: number | undefined
  let others = 0
  let identity: number | undefined
  for (const part of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = part.split(';')
    const name = coding.trim().toLowerCase()
    const weight = Number(parameters.map((parameter) => WEIGHT.exec(parameter)?.[1]).find(Boolean) ?? 1)
    // The same coding (RFC 9110 §8.4.1.3).
    if (name === 'gzip' || name === 'x-gzip') gzip = Math.max(gzip ?? 0, weight)
    else if (name === '*') others = weight
    else if (name === 'identity') identity = weight
  }
  return (gzip ?? others) > 0 && (gzip ?? others) >= (identity ?? others)
}

/** The value `*` of a field, which matches any tag. */
export const ANY_TAG = '*'

interface EntityTags {
  readonly etag: string
  /** The entity tag of the same data in gzip. */
  readonly gzipEtag: string
}

/**
 * A list member and the separator after it (RFC 9110 §5.6.1, §8.8.3). A quoted tag may contain
 * commas and stars.
 */
const MEMBER = /[\t ]*(?:(W\/)?("[!\x23-\x7e\x80-\uffff]*")[\t ]*)?(?:,|$)/y

/**
 * Returns the first of the tags that If-Match or If-None-Match lists (RFC 9110 §13.1), or `*`.
 * Returns undefined if none matches or the list is invalid. If-None-Match compares weakly, If-Match
 * strongly (§8.8.3.2). Takes time linear in the text.
 */
export function namedTag(text: string, { etag, gzipEtag }: EntityTags, weakly: boolean): string | undefined {
  if (text === etag) return etag
  if (text === ANY_TAG) return ANY_TAG
  let named: string | undefined
  MEMBER.lastIndex = 0
  while (MEMBER.lastIndex < text.length) {
    const [member, weak, tag] = MEMBER.exec(text) ?? []
    if (member === undefined) return undefined
    const counts = weakly || weak === undefined
    if (counts && (tag === etag || tag === gzipEtag)) named ??= tag
  }
  return named
}
