/** The longest sample of a message that is kept, in characters. */
export const SAMPLE_CHARS_MAX = 256

const SECRET = /svc_(?:mt|pk)_[0-9a-f]*/gi
const MAIL = /[^\s"'=,;:<>|()[\]]+@[^\s"'=,;:<>|()[\]]+/g
/** A query string, a password or a session may stand behind it. */
const QUERY = /\?[^\s"',|]*/g
const NAMED =
  /\b((?:\w*user\w*|login|usr|suser|duser|account|\w*pass\w*|\w*secret\w*|\w*token\w*|cookie|authorization)\s*[=:]\s*)("[^"]*"?|[^\s,;|]+)/gi
/** The last part of an address is a person. */
const IPV4 = /(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}/g
/** What may be one: hex digits and colons, with two colons at least. Also times and hardware addresses, whose end nobody needs. */
const IPV6 = /[0-9a-f:]{3,}/gi
/** Keys, hashes and other words that nobody reads. */
const LONG_WORD = /\b(?=[\w+/-]*\d)[\w+/-]{24,}={0,2}/g

/**
 * The beginning of a message as an operator may see it: its shape stays, but who and what went through the device does not. Secrets, addresses of
 * people, mail addresses, names of users and query strings are masked, and bytes that are no text are shown as \xNN.
 */
export function redact(text: string): string {
  return text
    .slice(0, SAMPLE_CHARS_MAX * 2)
    .replace(SECRET, 'svc_…')
    .replace(MAIL, '…@…')
    .replace(QUERY, '?…')
    .replace(NAMED, '$1…')
    .replace(IPV4, '$1.x')
    .replace(IPV6, withoutEnd)
    .replace(LONG_WORD, '…')
    .replace(/[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/gu, escaped)
    .slice(0, SAMPLE_CHARS_MAX)
}

/** `2001:db8:1::5` becomes `2001:db8:x`, `fe80::1` `fe80::x`. */
function withoutEnd(text: string): string {
  const [first = '', second = '', ...rest] = text.split(':')
  return rest.length === 0 ? text : `${first}:${second}:x`
}

/** So that a message cannot steer the terminal that shows it. */
function escaped(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}
