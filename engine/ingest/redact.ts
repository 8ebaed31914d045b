/** Maximum length of a stored sample, in characters. */
export const SAMPLE_CHARS_MAX = 256

const SECRET = /svc(?:_|%5f)(?:mt|pk)(?:_|%5f)[0-9a-f]*/gi
const MAIL = /[^\s"'=,;:<>|()[\]]+@[^\s"'=,;:<>|()[\]]+/g
/** A query string can contain a password or a session id. */
const QUERY = /\?[^\s"',|]*/g
/** User name and password before the host of a URL. */
const URL_USER = /(:\/\/)[^\s/@"']{1,256}@/g
/**
 * The rest of the line is a secret: scheme and credentials (RFC 9110 §11.4), or cookies (RFC 6265).
 */
const CREDENTIALS = /\b((?:proxy-)?authorization|www-authenticate|(?:set-)?cookie2?)(\W{1,8})[^\r\n]*/gi
const BEARER = /\b(bearer|basic|negotiate|ntlm|digest)( +)[^\s"',;]+/gi
/** `DOMAIN\user`, but not an escape sequence such as `\x41`. */
const DOMAIN_USER = /\b([A-Za-z][\w.-]{0,62})\\{1,2}(?=[\w.$-])(?!(?:x[0-9a-f]{2}|u[0-9a-f]{4}))[\w.$-]+/g
/**
 * Fields that identify a person or hold a secret, in any spelling, and their value after `=`, `:`
 * or TAB, each with or without (escaped) quotes. An unquoted value extends to the next field name,
 * since names of people contain blanks.
 */
const NAME =
  '(?:[\\w.-]*(?:user|passw|passphrase|secret|token|credential|session|cookie|api[_-]?key|private[_-]?key|access[_-]?key)[\\w.-]*|[\\w.-]*(?:login|account|[_-]key)|usr\\w*|usrname|suid|duid|uid|pwd|passwd|pass|pw|psk|pin|key|sid|auth|otp|jwt|nonce|signature|sig)'
const QUOTE = '(?:\\\\{0,3}["\'])'
const NAMED = new RegExp(
  `(?<![\\w.-])(${NAME}${QUOTE}?(?: {0,3}[=:]+ {0,3}|\\t))(?:\\\\{1,3}"(?:[^"\\\\]|\\\\(?!"))*(?:\\\\{1,3}"|$)|"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?|[^\\s,;|&"'}\\]]+(?: (?![\\w.-]+ ?[=:])[^\\s,;|&=:"'}\\]]+)*)`,
  'gi',
)
/** `passwd hunter2`, in prose. A colon, equals sign or ellipsis (U+2026) is no value. */
const IN_PROSE = /\b(passw(?:or)?d|passphrase|secret|user(?:name)?)( +)(?![=:\u2026])[^\s,;|"'=:]+(?![^\s]*[=:])/gi
/**
 * The last part of an address identifies a person. Host names contain addresses with hyphens or
 * underscores (`ip-192-0-2-45`), URLs may encode the dots.
 */
const IPV4 = /(\d{1,3}([._-]|%2e)\d{1,3}\2\d{1,3}\2)\d{1,3}/gi
/** Names for reverse lookups (RFC 1035 §3.5, RFC 3596 §2.5) begin with the end of the address. */
const REVERSE = /(?:[0-9a-f]{1,3}(?:[/-]\d{1,3})?\.)+(?=(?:in-addr|ip6)\.arpa\b)/gi
/**
 * Candidates: hex digits and at least two colons. Times and hardware addresses match, too; masking
 * their end does no harm.
 */
const IPV6 = /(?:[0-9a-f:]|%3a)*(?::|%3a)(?:[0-9a-f:]|%3a)*/gi
const COLON = /:|%3a/i
/**
 * Hardware addresses as written by Windows (`00-53-00-ab-cd-ef`) and Cisco devices
 * (`0053.00ab.cdef`).
 */
const HARDWARE =
  /([0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2})(?:-[0-9a-f]{2}){3}|([0-9a-f]{4}\.[0-9a-f]{2})[0-9a-f]{2}\.[0-9a-f]{4}/gi
/** Control and format characters, and the replacement character for invalid UTF-8. */
const CONTROL = /[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/gu
/** Keys, hashes and other opaque words. */
const LONG_WORD = /\b(?=[\w+/-]*\d)[\w+/-]{24,}={0,2}/g

/**
 * Returns the beginning of a message as an operator may see it. Its structure remains visible.
 * Secrets, client addresses, mail addresses, user names and query strings are masked. Control
 * characters and invalid bytes become \xNN or \uNNNN.
 */
export function redact(text: string): string {
  return (
    text
      .slice(0, SAMPLE_CHARS_MAX * 2)
      .replace(SECRET, 'svc_…')
      .replace(URL_USER, '$1…@')
      .replace(MAIL, '…@…')
      .replace(QUERY, '?…')
      .replace(CREDENTIALS, '$1$2…')
      .replace(BEARER, '$1$2…')
      .replace(NAMED, '$1…')
      .replace(IN_PROSE, '$1$2…')
      .replace(DOMAIN_USER, '$1\\…')
      // Escape before masking addresses: otherwise the digits of an escape and of a masked address
      // could form a new address.
      .replace(CONTROL, escaped)
      .replace(HARDWARE, '$1$2…')
      .replace(REVERSE, 'x.')
      .replace(IPV4, '$1x')
      .replace(IPV6, withoutEnd)
      .replace(LONG_WORD, '…')
      .slice(0, SAMPLE_CHARS_MAX)
  )
}

/**
 * `2001:db8:1::5` becomes `2001:db8:x`, `fe80::1` becomes `fe80:x`. No `::` remains, because
 * `fe80::` is an address, too.
 */
function withoutEnd(text: string): string {
  const [first = '', second = '', ...rest] = text.split(COLON)
  if (rest.length === 0) return text
  return second === '' ? `${first}:x` : `${first}:${second}:x`
}

/** Escaped, so that a message cannot control the terminal that displays it. */
function escaped(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}
