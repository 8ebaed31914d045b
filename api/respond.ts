import type { HttpResponse } from '../engine/http/port.ts'
import { type RateVerdict, REQUESTS_PER_WINDOW } from './rate-limit.ts'

/** On every answer: private to the key's holder, never sniffed, and asked for anew (RFC 9111 §5.2.2). */
const FIXED_FIELDS = [
  'cache-control',
  'private, no-cache',
  'vary',
  'X-API-Key',
  'x-content-type-options',
  'nosniff',
  'content-security-policy',
  "default-src 'none'",
  'strict-transport-security',
  'max-age=31536000',
] as const
const JSON_FIELDS = ['content-type', 'application/json', ...FIXED_FIELDS] as const

/** RateLimit fields as draft-ietf-httpapi-ratelimit-headers names them; Retry-After where the request was refused. */
export function rateFields(verdict: RateVerdict): string[] {
  const fields = [
    'ratelimit-limit',
    String(REQUESTS_PER_WINDOW),
    'ratelimit-remaining',
    String(verdict.remaining),
    'ratelimit-reset',
    String(verdict.resetSeconds),
  ]
  if (!verdict.allowed) fields.push('retry-after', String(verdict.resetSeconds))
  return fields
}

/** `{ "error": message }` */
export function respondError(
  response: HttpResponse,
  status: number,
  message: string,
  head: boolean,
  fields: readonly string[] = [],
): void {
  response.send(status, [...JSON_FIELDS, ...fields], JSON.stringify({ error: message }), head)
}

export function respondJson(response: HttpResponse, body: Buffer, head: boolean, fields: readonly string[]): void {
  response.send(200, [...JSON_FIELDS, ...fields], body, head)
}

export function respondNotModified(response: HttpResponse, fields: readonly string[]): void {
  response.send(304, [...FIXED_FIELDS, ...fields], '')
}
