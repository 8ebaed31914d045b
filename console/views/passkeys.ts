import { PASSKEYS_PER_USER_MAX } from '../../engine/limits.ts'
import type { Visit } from '../http/visit.ts'

export interface PasskeyRow {
  readonly id: string
  readonly name: string
  readonly createdAtMs: number
  readonly usedAtMs: number
  readonly isSyncable: boolean
  readonly isSynced: boolean
  readonly isBlocked: boolean
  /** The host name for which the passkey was made, if this console has another; otherwise ''. */
  readonly otherHost: string
}

export interface PasskeysView {
  /** Oldest first. */
  readonly passkeys: readonly PasskeyRow[]
  readonly mayAdd: boolean
  readonly isFull: boolean
}

/**
 * The passkeys of the signed-in user. undefined if there is nothing to show: passkeys do not work
 * at the console's origin, or are not for this user.
 */
export function passkeysView({ site, identity }: Visit): PasskeysView | undefined {
  const { user, session } = identity
  const host = site.passkeys?.relyingParty.id
  const passkeys = site.store.passkeys.ofUser(user.id).map((passkey) => {
    const { id, name, createdAtMs, usedAtMs, isSyncable, isSynced, rpId } = passkey
    const isBlocked = passkey.blockedAtMs !== 0
    return { id, name, createdAtMs, usedAtMs, isSyncable, isSynced, isBlocked, otherHost: rpId === host ? '' : rpId }
  })
  if (session.providerOrganizationId !== undefined) return undefined
  const canAdd = host !== undefined && user.passwordHash !== ''
  if (!canAdd && passkeys.length === 0) return undefined
  const isFull = passkeys.length >= PASSKEYS_PER_USER_MAX
  return { passkeys, mayAdd: canAdd && !isFull, isFull }
}
