import type { Clock } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { PASSKEYS_PER_USER_MAX } from '../limits.ts'
import { newUuid } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Passkey, User } from '../store/users.ts'
import { AuditedChanges, byIdPrefix, checkText, noteEverywhere } from './audited-changes.ts'

/** What a verified registration says about a passkey. */
export type NewPasskey = Pick<
  Passkey,
  'userId' | 'credentialId' | 'publicKey' | 'rpId' | 'name' | 'counter' | 'transports' | 'isSyncable' | 'isSynced'
>

/** One passkey of a user. */
export interface PasskeyOfUser {
  readonly userId: string
  readonly id: string
}

/** What a verified signature says about a passkey. */
export interface PasskeyUse extends PasskeyOfUser {
  readonly counter: number
  readonly isSynced: boolean
}

/**
 * Whether the user can sign in without this passkey. Otherwise the passkey must stay.
 */
function canSignInWithout(store: Store, user: User, passkey: Passkey): boolean {
  if (user.passwordHash !== '') return true
  return store.passkeys.ofUser(user.id).some(({ id, blockedAtMs }) => id !== passkey.id && blockedAtMs === 0)
}

/** Changes that users make to their own passkeys. The caller authenticated the user. */
export class OwnPasskeys {
  readonly #store: Store
  readonly #clock: Clock

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  /**
   * @throws Fault USAGE for an invalid name; CONFLICT if the user has too many, or a user has this
   *   credential already; NOT_FOUND if the user was removed.
   */
  add(given: NewPasskey): Passkey {
    const { passkeys, environment } = this.#store
    checkText('name', given.name)
    return environment.write(() => {
      const user = this.#user(given.userId)
      if (passkeys.ofUser(user.id).length >= PASSKEYS_PER_USER_MAX) {
        throw new Fault('CONFLICT', `You have ${PASSKEYS_PER_USER_MAX} passkeys already. Remove one first`)
      }
      if (passkeys.byCredential(given.credentialId) !== undefined) {
        throw new Fault('CONFLICT', 'This passkey is registered already')
      }
      const createdAtMs = this.#clock.nowMs()
      const passkey: Passkey = { ...given, id: newUuid(), createdAtMs, usedAtMs: 0, blockedAtMs: 0 }
      passkeys.put(passkey)
      noteEverywhere(this.#store, this.#clock, 'passkey.add', user, { passkey: passkey.name, host: passkey.rpId })
      return passkey
    })
  }

  /** @throws Fault USAGE for an invalid name, NOT_FOUND. */
  rename(given: PasskeyOfUser & { readonly name: string }): void {
    const { passkeys, environment } = this.#store
    checkText('name', given.name)
    environment.write(() => {
      const { user, passkey } = this.#passkey(given)
      passkeys.put({ ...passkey, name: given.name })
      noteEverywhere(this.#store, this.#clock, 'passkey.rename', user, { passkey: given.name, was: passkey.name })
    })
  }

  /** @throws Fault NOT_FOUND, CONFLICT if the user could no longer sign in. */
  remove(given: PasskeyOfUser): void {
    const { passkeys, environment } = this.#store
    environment.shrink(() => {
      const { user, passkey } = this.#passkey(given)
      if (!canSignInWithout(this.#store, user, passkey)) {
        throw new Fault('CONFLICT', 'You could no longer sign in without this passkey. Add another one first')
      }
      passkeys.remove(passkey)
      noteEverywhere(this.#store, this.#clock, 'passkey.remove', user, { passkey: passkey.name })
    })
  }

  /**
   * Stores the counter of a verified signature. A counter that did not advance means that two
   * copies of the key may exist (WebAuthn §6.1.1): the passkey is blocked.
   *
   * @returns whether the passkey is accepted.
   * @throws Fault NOT_FOUND.
   */
  use(given: PasskeyUse): boolean {
    const { passkeys, environment } = this.#store
    return environment.write(() => {
      const { user, passkey } = this.#passkey(given)
      if (passkey.blockedAtMs !== 0) return false
      const nowMs = this.#clock.nowMs()
      const { counter, isSynced } = given
      if ((counter > 0 || passkey.counter > 0) && counter <= passkey.counter) {
        passkeys.put({ ...passkey, blockedAtMs: nowMs })
        const details = { passkey: passkey.name, counter, stored: passkey.counter }
        noteEverywhere(this.#store, this.#clock, 'passkey.block', user, details)
        return false
      }
      passkeys.put({ ...passkey, counter, isSynced, usedAtMs: nowMs })
      return true
    })
  }

  #user(userId: string): User {
    const user = this.#store.users.get(userId)
    if (user === undefined) throw new Fault('NOT_FOUND', 'The user no longer exists')
    return user
  }

  #passkey({ userId, id }: PasskeyOfUser): { readonly user: User; readonly passkey: Passkey } {
    const passkey = isUuid(id) ? this.#store.passkeys.get({ userId, id }) : undefined
    if (passkey === undefined) throw new Fault('NOT_FOUND', 'The passkey no longer exists')
    return { user: this.#user(userId), passkey }
  }
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}

/** Passkeys of any user, for the operator: when a device is lost and its owner cannot sign in. */
export class PasskeyChanges extends AuditedChanges {
  /** Oldest first. @throws Fault NOT_FOUND, NOT_ALLOWED. */
  list(userName: string): Passkey[] {
    this.assertOperator('passkey.remove')
    return this.store.passkeys.ofUser(this.#user(userName).id)
  }

  /**
   * Removes a passkey and ends the sessions of its user, which the finder of the device may have
   * started. Also removes the last way to sign in; then `password-link` gives the user another.
   *
   * @throws Fault NOT_FOUND, NOT_ALLOWED, USAGE and CONFLICT of an abbreviated id.
   */
  remove(userName: string, id: string): Passkey {
    const { store } = this
    this.assertOperator('passkey.remove')
    return store.environment.shrink(() => {
      const user = this.#user(userName)
      const passkey = byIdPrefix(store.passkeys.ofUser(user.id), id, 'passkey')
      store.passkeys.remove(passkey)
      for (const session of store.sessions.ofUser(user.id)) store.sessions.remove(session)
      for (const { organizationId } of store.members.ofUser(user.id)) {
        this.noteIn('passkey.remove', organizationId, user.name, { passkey: passkey.name })
      }
      return passkey
    })
  }

  #user(name: string): User {
    const user = this.store.users.byName(name)
    if (user === undefined) throw new Fault('NOT_FOUND', `no user ${JSON.stringify(name)}`)
    return user
  }
}
