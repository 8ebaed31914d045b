import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { BoundedMap } from '../../engine/kernel/process/bounded-map.ts'
import { MINUTE_MS } from '../../engine/kernel/process/clock.ts'

/**
 * The path to which the provider of an organization sends browsers back. Each has its own: a
 * provider could pass its visitors on to the provider of another organization, whose code the
 * console would then send to the first one (mix-up attack, RFC 9700 §4.4).
 */
export const CALLBACK_PATH = '/sign-in/callback/:organization'

export function callbackPath(organizationId: string): string {
  return CALLBACK_PATH.replace(':organization', organizationId)
}

/** How long a person may take at the provider. */
export const FLOW_MS = 10 * MINUTE_MS
/** Longer addresses are replaced by the start page. A cookie has at most 4 KB. */
const TO_CHARS_MAX = 1000
const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Why a browser is at the provider. */
export type FlowPurpose =
  /** To sign in. */
  | 'sign-in'
  /** To prove again who the user is, before a sensitive change. */
  | 'confirm'
  /** To let a signed-in user also sign in with the provider. */
  | 'connect'

/** A sign-in between its start and the provider's answer. */
export interface OidcFlow {
  readonly purpose: FlowPurpose
  readonly organizationId: string
  readonly issuer: string
  readonly clientId: string
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  /** The page to show in the end. */
  readonly to: string
  /** The session of the browser at the start; '' if none. */
  readonly sessionHash: string
  readonly startedAtMs: number
}

/**
 * Maximum number of ended flows in memory, each for ten minutes. Beyond it the oldest is forgotten:
 * its user signs in again.
 */
const ENDED_MAX = 10_000

/**
 * Keeps flows in a cookie, encrypted, so that the server keeps nothing for visitors who never come
 * back. The key is in memory: a restart of the service ends all flows.
 */
export class FlowCookies {
  readonly #key = randomBytes(32)
  /** The states of flows whose answer arrived. */
  readonly #ended = new BoundedMap<string, true>(ENDED_MAX)

  seal(flow: OidcFlow): string {
    const to = flow.to.length > TO_CHARS_MAX ? '/' : flow.to
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, this.#key, nonce)
    const ciphertext = Buffer.concat([cipher.update(JSON.stringify({ ...flow, to })), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), ciphertext]).toString('base64url')
  }

  /**
   * Ends a flow, whatever the provider's answer: a copy of its cookie could otherwise make the
   * service send codes to the provider until the flow expires.
   */
  end({ state }: OidcFlow): void {
    this.#ended.set(state, true)
  }

  /** undefined if the cookie is missing, of another process or changed, or the flow is over. */
  open(cookie: string | undefined, nowMs: number): OidcFlow | undefined {
    const bytes = Buffer.from(cookie ?? '', 'base64url')
    if (bytes.length <= NONCE_BYTES + TAG_BYTES) return undefined
    const decipher = createDecipheriv(CIPHER, this.#key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
    let flow: OidcFlow
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()])
      flow = JSON.parse(text.toString()) as OidcFlow
    } catch {
      return undefined
    }
    const isOver = Math.abs(nowMs - flow.startedAtMs) >= FLOW_MS || this.#ended.has(flow.state)
    return isOver ? undefined : flow
  }
}
