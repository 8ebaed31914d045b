/**
 * Returns the name or address in an origin; '' if it is not valid. The Host field can contain
 * anything, and instructions for senders repeat it in commands.
 */
export function hostNameOf(origin: string): string {
  const name = URL.canParse(origin) ? new URL(origin).hostname.replace(/^\[|\]$/g, '') : ''
  return /^[a-z0-9.:-]+$/.test(name) ? name : ''
}
