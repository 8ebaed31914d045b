import { createHmac, randomBytes } from 'node:crypto'

/*
 * Signatures of webhooks, as in Standard Webhooks 1.0 (standardwebhooks.com): HMAC-SHA-256 over
 *
 *   id "." timestamp "." body
 *
 * with the bytes of the secret after `whsec_`. Libraries in many languages verify them.
 */
const SECRET_PREFIX = 'whsec_'
const SECRET_BYTES = 32
const SCHEME = 'v1'

export function makeWebhookSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/**
 * The fields of a request. `id` is that of the message, and the same in all attempts; the time is
 * that of the attempt, so that receivers can refuse old ones.
 */
export function signedFields(secret: string, id: string, nowMs: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000))
  const key = Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `${SCHEME},${signature}` }
}
