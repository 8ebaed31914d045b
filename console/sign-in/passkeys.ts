import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { NewPasskey } from '../../engine/admin/passkeys.ts'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'
import { isFault } from '../../engine/kernel/process/error-codes.ts'
import type { Store } from '../../engine/store/store.ts'
import type { Passkey, User } from '../../engine/store/users.ts'
import { type ChangeSender, OverloadError } from '../change-sender.ts'
import {
  ALGORITHMS,
  type Assertion,
  challengeOf,
  RELYING_PARTY_NAME,
  type RelyingParty,
  readRegistration,
  verifyAssertion,
  verifyRegistration,
} from './webauthn.ts'

/** An authenticator must answer a challenge within this time. */
export const CHALLENGE_MS = 5 * MINUTE_MS
/**
 * Maximum number of used challenges in memory, each for five minutes. At the limit, no further
 * passkey is accepted.
 */
const USED_MAX = 10_000
/** Of these, of one user, so that no user can block the passkeys of others. */
const USED_PER_USER_MAX = 200

/** The purpose of a challenge. A response to a challenge of another purpose is refused. */
type ChallengePurpose = 'register' | 'sign-in' | 'confirm'

/*
 * A challenge: random bytes, the time when it expires, and a MAC over both, the purpose and the
 * session. In base64url, as in clientDataJSON.
 *
 *   0   random            16 bytes
 *   16  expires           6 bytes, milliseconds since 1970, big-endian
 *   22  HMAC-SHA256       32 bytes
 */
const EXPIRES_OFFSET = 16
const EXPIRES_BYTES = 6
const MAC_OFFSET = EXPIRES_OFFSET + EXPIRES_BYTES
const CHALLENGE_BYTES = MAC_OFFSET + 32

/**
 * Makes challenges and recognizes them. A challenge is authenticated by a key of this thread, so
 * that nothing is stored for challenges that nobody answers, and requests for challenges cannot
 * displace those of others. Only used challenges are remembered, until they expire.
 */
export class Challenges {
  readonly #key = randomBytes(32)
  /** Used challenges, with the time when they can be forgotten. Oldest first. */
  readonly #used = new Map<string, { readonly userId: string; readonly untilMs: number }>()
  /** The number of them for each user. */
  readonly #perUser = new Map<string, number>()

  /** @param session the id of the session that may answer; '' if nobody is signed in. */
  make(purpose: ChallengePurpose, session: string, nowMs: number): string {
    const head = Buffer.alloc(MAC_OFFSET)
    randomBytes(EXPIRES_OFFSET).copy(head)
    head.writeUIntBE(nowMs + CHALLENGE_MS, EXPIRES_OFFSET, EXPIRES_BYTES)
    return Buffer.concat([head, this.#mac(purpose, session, head)]).toString('base64url')
  }

  /** Whether a challenge may be answered now. A used one is `wrong`. */
  check(challenge: string, purpose: ChallengePurpose, session: string, nowMs: number): 'valid' | 'expired' | 'wrong' {
    const bytes = Buffer.from(challenge, 'base64url')
    // Other spellings of the same bytes would be other keys of the table.
    if (bytes.length !== CHALLENGE_BYTES || bytes.toString('base64url') !== challenge) return 'wrong'
    const head = bytes.subarray(0, MAC_OFFSET)
    if (!timingSafeEqual(bytes.subarray(MAC_OFFSET), this.#mac(purpose, session, head))) return 'wrong'
    const leftMs = head.readUIntBE(EXPIRES_OFFSET, EXPIRES_BYTES) - nowMs
    // More than five minutes are left if the clock was set back.
    if (leftMs <= 0 || leftMs > CHALLENGE_MS) return 'expired'
    return this.#used.has(challenge) ? 'wrong' : 'valid'
  }

  /**
   * Uses a challenge that was checked. Returns false if another response used it meanwhile.
   *
   * @param userId whose passkey has signed it
   * @throws OverloadError if too many challenges were used, by all users or by this one
   */
  use(challenge: string, userId: string, nowMs: number): boolean {
    this.#forget(nowMs)
    if (this.#used.has(challenge)) return false
    const ofUser = this.#perUser.get(userId) ?? 0
    if (this.#used.size >= USED_MAX || ofUser >= USED_PER_USER_MAX) {
      throw new OverloadError('too many challenges were used')
    }
    this.#used.set(challenge, { userId, untilMs: nowMs + CHALLENGE_MS })
    this.#perUser.set(userId, ofUser + 1)
    return true
  }

  #mac(purpose: ChallengePurpose, session: string, head: Uint8Array): Buffer {
    return createHmac('sha256', this.#key).update(`${purpose} ${session} `).update(head).digest()
  }

  #forget(nowMs: number): void {
    for (const [challenge, { userId, untilMs }] of this.#used) {
      if (untilMs > nowMs) return
      this.#used.delete(challenge)
      const left = (this.#perUser.get(userId) ?? 0) - 1
      if (left > 0) this.#perUser.set(userId, left)
      else this.#perUser.delete(userId)
    }
  }
}

/** Why a passkey is refused, for the user. */
export interface Refused {
  readonly refused: string
}

const EXPIRED: Refused = { refused: 'This took longer than five minutes. Try again' }
/** One answer for everything that the browser cannot cause, so that it says nothing about why. */
export const WRONG: Refused = { refused: 'The passkey is not accepted. Try again' }
const BLOCKED: Refused = {
  refused: 'The passkey is blocked, because a copy of it may exist. Use your password, and replace the passkey',
}

/** Who answers a challenge. */
export interface Answerer {
  readonly purpose: Exclude<ChallengePurpose, 'register'>
  /** The session to confirm; '' for sign-in. */
  readonly sessionId: string
  /** The user of the session; '' for sign-in, where the passkey names its user. */
  readonly userId: string
}

/** Registers passkeys, and authenticates users by them. */
export class PasskeySignIn {
  readonly relyingParty: RelyingParty
  /** Apart, so that members who register passkeys cannot use up the challenges of sign-in. */
  readonly #registrations = new Challenges()
  readonly #challenges = new Challenges()
  readonly #store: Store
  readonly #changes: ChangeSender

  constructor(relyingParty: RelyingParty, store: Store, changes: ChangeSender) {
    this.relyingParty = relyingParty
    this.#store = store
    this.#changes = changes
  }

  /** The passkeys of a user that work at this host name. */
  usable(userId: string): Passkey[] {
    const isUsable = ({ rpId, blockedAtMs }: Passkey): boolean => rpId === this.relyingParty.id && blockedAtMs === 0
    return this.#store.passkeys.ofUser(userId).filter(isUsable)
  }

  /** Options for navigator.credentials.create (PublicKeyCredentialCreationOptionsJSON). */
  creationOptions(user: User, sessionId: string, nowMs: number) {
    const { id } = this.relyingParty
    return {
      rp: { id, name: RELYING_PARTY_NAME },
      user: { id: userHandle(user.id), name: user.name, displayName: user.name },
      challenge: this.#registrations.make('register', sessionId, nowMs),
      pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
      timeout: CHALLENGE_MS,
      excludeCredentials: this.#store.passkeys.ofUser(user.id).map(descriptorOf),
      authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
      attestation: 'none',
    }
  }

  /**
   * Options for navigator.credentials.get (PublicKeyCredentialRequestOptionsJSON). For sign-in, the
   * authenticator offers the passkeys that it has.
   */
  requestOptions({ purpose, sessionId, userId }: Answerer, nowMs: number) {
    return {
      rpId: this.relyingParty.id,
      challenge: this.#challenges.make(purpose, sessionId, nowMs),
      timeout: CHALLENGE_MS,
      userVerification: 'required',
      allowCredentials: userId === '' ? [] : this.usable(userId).map(descriptorOf),
    }
  }

  /** Verifies the response to `creationOptions`. */
  async register(
    text: string,
    { user, sessionId }: { readonly user: User; readonly sessionId: string },
    nowMs: number,
  ): Promise<Omit<NewPasskey, 'name'> | Refused> {
    const response = readRegistration(text)
    if (response === undefined) return WRONG
    const challenge = challengeOf(response)
    const state = this.#registrations.check(challenge, 'register', sessionId, nowMs)
    if (state !== 'valid') return state === 'expired' ? EXPIRED : WRONG
    const verified = await verifyRegistration(this.relyingParty, response)
    if (verified === undefined || !this.#registrations.use(challenge, user.id, nowMs)) return WRONG
    const { id: rpId } = this.relyingParty
    return { ...verified, userId: user.id, rpId, transports: response.response.transports }
  }

  /**
   * Verifies the response to `requestOptions`, and stores the use of the passkey. The challenge is
   * used up only by the signature of a passkey: others could use up challenges for everyone.
   *
   * @throws OverloadError.
   */
  async authenticate(response: Assertion, answerer: Answerer, nowMs: number): Promise<Passkey | Refused> {
    const passkey = this.#store.passkeys.byCredential(response.id)
    const challenge = challengeOf(response)
    const state = this.#challenges.check(challenge, answerer.purpose, answerer.sessionId, nowMs)
    if (state !== 'valid') return state === 'expired' ? EXPIRED : WRONG
    if (passkey === undefined || !this.#mayAnswer(passkey, response, answerer)) return WRONG
    const verified = await verifyAssertion(this.relyingParty, response, passkey)
    if (verified === undefined || !this.#challenges.use(challenge, passkey.userId, nowMs)) return WRONG
    const { userId, id } = passkey
    try {
      return (await this.#changes.account('passkey.use', { userId, id, ...verified })) ? passkey : BLOCKED
    } catch (error) {
      if (isFault(error, 'NOT_FOUND')) return WRONG
      throw error
    }
  }

  /** Whether it is a passkey for this host, of the user who is to be authenticated. */
  #mayAnswer({ rpId, userId }: Passkey, { response }: Assertion, answerer: Answerer): boolean {
    if (rpId !== this.relyingParty.id) return false
    const isOwnHandle = response.userHandle === userHandle(userId)
    // Authenticators must send the user handle unless the server named the credentials.
    if (answerer.userId === '') return isOwnHandle
    return userId === answerer.userId && (isOwnHandle || (response.userHandle ?? '') === '')
  }
}

function descriptorOf({ credentialId, transports }: Passkey) {
  return { type: 'public-key', id: credentialId, transports }
}

/** The user's id in base64url. It says nothing about the user. */
function userHandle(userId: string): string {
  return Buffer.from(userId.replaceAll('-', ''), 'hex').toString('base64url')
}
