import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/*
 * The secrets of the service.
 *
 *   API key           svc_pk_ + 64 hex digits: 56 random ones (224 bit) and the CRC-32 of those 56 as ASCII, so that a
 *                     typo is refused without a look-up
 *   monitoring token  svc_mt_ + 48 random hex digits (192 bit)
 *
 * Only the SHA-256 of a secret is stored: it is random and long, so there is nothing that a slow hash would protect.
 */
const API_KEY_PREFIX = 'svc_pk_'
const TOKEN_PREFIX = 'svc_mt_'
const RANDOM_HEX_DIGITS = 56
const API_KEY_PATTERN = /^svc_pk_[0-9a-f]{64}$/
const TOKEN_PATTERN = /^svc_mt_[0-9a-f]{48}$/
const VISIBLE_HEX_DIGITS = 8

export function makeApiKey(): string {
  const random = randomBytes(RANDOM_HEX_DIGITS / 2).toString('hex')
  return API_KEY_PREFIX + random + checkDigits(random)
}

/** Whether this has the form of an API key, check digits included. */
export function isApiKey(text: string): boolean {
  if (!API_KEY_PATTERN.test(text)) return false
  const random = text.slice(API_KEY_PREFIX.length, -VISIBLE_HEX_DIGITS)
  return text.endsWith(checkDigits(random))
}

export function makeMonitoringToken(): string {
  return TOKEN_PREFIX + randomBytes(24).toString('hex')
}

export function isMonitoringToken(text: string): boolean {
  return TOKEN_PATTERN.test(text)
}

/** The digits that stay visible in lists, of either kind of secret. */
export function visibleDigits(secret: string): string {
  return secret.slice(API_KEY_PREFIX.length, API_KEY_PREFIX.length + VISIBLE_HEX_DIGITS)
}

/** Text that may be a secret, for a line that others read: no more of it than lists show. */
export function redactedSecret(text: string): string {
  return text.replace(/(svc_[a-z]{2}_[0-9a-zA-Z]{0,8})[0-9a-zA-Z]+/g, '$1...')
}

export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function checkDigits(random: string): string {
  return crc32(random).toString(16).padStart(8, '0')
}
