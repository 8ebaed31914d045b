import { isoSeconds } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { hashSecret, redactedSecret, visibleDigits } from '../store/access-key.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { type Secret, statusOf } from '../store/secrets.ts'

/** The stored record of a new API key or monitoring token. */
export function newSecret(organization: Organization, label: string, raw: string, nowMs: number): Secret {
  return {
    id: newUuid(),
    organizationId: organization.id,
    label,
    hash: hashSecret(raw).toString('hex'),
    visible: visibleDigits(raw),
    createdAtMs: nowMs,
    revokedAtMs: 0,
  }
}

const LISTS = {
  'API key': 'posture-admin key list',
  'monitoring token': 'posture-admin token list',
  'block list link': 'posture-admin blocklist link list',
} as const

/**
 * Returns the one active secret with this id, this prefix, or this raw text. Errors do not
 * contain the text.
 *
 * @throws Fault NOT_FOUND, CONFLICT.
 */
export function chosen<T extends Secret>(
  secrets: readonly T[],
  idOrVisible: string,
  what: keyof typeof LISTS,
  nowMs: number,
): T {
  const named = namedBy(secrets, idOrVisible)
  const shown = redactedSecret(idOrVisible)
  const active = named.filter((secret) => statusOf(secret, nowMs) === 'active')
  if (active.length === 1 && active[0] !== undefined) return active[0]
  if (active.length > 1)
    throw new Fault('CONFLICT', `${active.length} active ${what}s begin with ${shown}. Name the id instead`)
  const expiredMs = named.find((secret) => statusOf(secret, nowMs) === 'expired')?.expiresAtMs
  if (expiredMs !== undefined) {
    throw new Fault(
      'CONFLICT',
      `${what} ${shown} expired at ${isoSeconds(expiredMs)}, which is permanent; create a new one`,
    )
  }
  if (named.length > 0) throw new Fault('CONFLICT', `${what} ${shown} is already revoked, which is permanent`)
  throw new Fault('NOT_FOUND', `no ${what} ${JSON.stringify(shown)}; ${LISTS[what]} shows all`)
}

/** The secrets with this id, this prefix, or this raw text. */
export function namedBy<T extends Secret>(secrets: readonly T[], text: string): T[] {
  const hash = hashSecret(text).toString('hex')
  return secrets.filter((secret) => secret.id === text || secret.visible === text || secret.hash === hash)
}
