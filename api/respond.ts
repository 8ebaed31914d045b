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
  'strict-transport-security',
  'max-age=31536000',
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
