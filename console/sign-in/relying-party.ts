/** The identity of this console toward authenticators (WebAuthn: relying party). */
export interface RelyingParty {
  /** The RP ID: the host name to which passkeys are bound. */
  readonly id: string
  /** The origin that browsers must report. */
  readonly origin: string
}

/** The name that authenticators show. */
export const RELYING_PARTY_NAME = 'Security Posture Service'

/**
 * The relying party of a console at this origin (--console-origin). undefined if passkeys do not
 * work there: WebAuthn requires a host name, and HTTPS or `localhost`. The Host field of a request
 * is not used instead, because a passkey for a temporary name would be lost with that name.
 */
export function relyingPartyOf(origin: string): RelyingParty | undefined {
  if (origin === '') return undefined
  const { protocol, hostname } = new URL(origin)
  const isAddress = hostname.startsWith('[') || /^[\d.]+$/.test(hostname)
  if (isAddress || (protocol !== 'https:' && hostname !== 'localhost')) return undefined
  return { id: hostname, origin }
}
