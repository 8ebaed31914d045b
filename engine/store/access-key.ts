import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

/*
 * The secrets of the service.
 *
 *   API key           svc_pk_ + 64 hex digits: 56 random digits (224 bits) and the CRC-32
 *                     of these 56 as ASCII, so that typos are caught without a lookup
 *   monitoring token  svc_mt_ + 48 random hex digits (192 bits)
 *   block list secret svc_bl_ + 48 random hex digits (192 bits)
 *
 * Only the SHA-256 of a secret is stored. A slow hash is not needed, because secrets are long and
 * random.
 */
const API_KEY_PREFIX = 'svc_pk_'
const TOKEN_PREFIX = 'svc_mt_'
const BLOCK_LIST_PREFIX = 'svc_bl_'
const RANDOM_HEX_DIGITS = 56
const API_KEY_PATTERN = /^svc_pk_[0-9a-f]{64}$/
const TOKEN_PATTERN = /^svc_mt_[0-9a-f]{48}$/
const BLOCK_LIST_PATTERN = /^svc_bl_[0-9a-f]{48}$/
const VISIBLE_HEX_DIGITS = 8

export function makeApiKey(): string {
  const random = randomBytes(RANDOM_HEX_DIGITS / 2).toString('hex')
  return API_KEY_PREFIX + random + checkDigits(random)
}

/** Whether the text has the form of an API key, including valid check digits. */
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

export function makeBlockListSecret(): string {
  return BLOCK_LIST_PREFIX + randomBytes(24).toString('hex')
}

export function isBlockListSecret(text: string): boolean {
  return BLOCK_LIST_PATTERN.test(text)
}

/** The digits of a key or token that lists show. */
export function visibleDigits(secret: string): string {
  return secret.slice(API_KEY_PREFIX.length, API_KEY_PREFIX.length + VISIBLE_HEX_DIGITS)
}

/** Masks everything that may be a secret, except the digits that lists show. */
export function redactedSecret(text: string): string {
  return text.replace(/(svc_[a-z]{2}_[0-9a-zA-Z]{0,8})[0-9a-zA-Z]+/g, '$1...')
}

export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function checkDigits(random: string): string {
  return crc32(random).toString(16).padStart(8, '0')
}
