/**
 * The unspecified address (RFC 4291 §2.5.2): the client is unknown, or known by something other
 * than an address.
 */
export const NO_CLIENT = '::'

/** A client (p-) or user (u-) whose address or name is encrypted, see process/client-key.ts. */
const PSEUDONYM = /^[pu]-[A-Za-z0-9_-]{22,220}$/

export function isPseudonym(text: string): boolean {
  return PSEUDONYM.test(text)
}
