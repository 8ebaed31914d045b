/**
 * The unspecified address (RFC 4291 §2.5.2): the client is unknown, or known by something other
 * than an address.
 */
export const NO_CLIENT = '::'
