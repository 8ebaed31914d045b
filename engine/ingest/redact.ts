/** The longest sample of a message that is kept, in characters. */
export const SAMPLE_CHARS_MAX = 256

const SECRET = /svc(?:_|%5f)(?:mt|pk)(?:_|%5f)[0-9a-f]*/gi
const MAIL = /[^\s"'=,;:<>|()[\]]+@[^\s"'=,;:<>|()[\]]+/g
/** A query string, a password or a session may stand behind it. */
const QUERY = /\?[^\s"',|]*/g
/** User and password before the host of a URL. */
const URL_USER = /(:\/\/)[^\s/@"']{1,256}@/g
/** All that follows is a secret: its scheme, and what that scheme has (RFC 9110 §11.4, RFC 6265). */
const CREDENTIALS = /\b((?:proxy-)?authorization|www-authenticate|(?:set-)?cookie2?)(\W{1,8})[^\r\n]*/gi
const BEARER = /\b(bearer|basic|negotiate|ntlm|digest)( +)[^\s"',;]+/gi
/** `DOMAIN\user`. A backslash before a quote escapes it. */
const DOMAIN_USER = /\b([A-Za-z][\w.-]{0,62})\\{1,2}(?=[\w.$-])(?!(?:x[0-9a-f]{2}|u[0-9a-f]{4}))[\w.$-]+/g
/**
 * Names of fields that tell who it was, or a secret, in any spelling, and what follows their `=`, `:` or TAB, with or without quotes around both, also
 * escaped ones. Without quotes a value goes on over words until the next name, since names of people have blanks.
 */
const NAME =
  '(?:[\\w.-]*(?:user|passw|passphrase|secret|token|credential|session|cookie|api[_-]?key|private[_-]?key|access[_-]?key)[\\w.-]*|[\\w.-]*(?:login|account|[_-]key)|usr\\w*|usrname|suid|duid|uid|pwd|passwd|pass|pw|psk|pin|key|sid|auth|otp|jwt|nonce|signature|sig)'
const QUOTE = '(?:\\\\{0,3}["\'])'
const NAMED = new RegExp(
  `(?<![\\w.-])(${NAME}${QUOTE}?(?: {0,3}[=:]+ {0,3}|\\t))(?:\\\\{1,3}"(?:[^"\\\\]|\\\\(?!"))*(?:\\\\{1,3}"|$)|"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?|[^\\s,;|&"'}\\]]+(?: (?![\\w.-]+ ?[=:])[^\\s,;|&=:"'}\\]]+)*)`,
  'gi',
)
/** `passwd hunter2`, as people write in sentences. */
const SPOKEN = /\b(passw(?:or)?d|passphrase|secret|user(?:name)?)( +)(?![=:…])[^\s,;|"'=:]+(?![^\s]*[=:])/gi
/** The last part of an address identifies a person. Host names have addresses with hyphens (`ip-192-0-2-45`). */
const IPV4 = /(\d{1,3}([.-])\d{1,3}\2\d{1,3}\2)\d{1,3}/g
/** Candidates: hex digits and colons, with at least two colons. Also matches times and hardware addresses; their end is not needed. */
const IPV6 = /(?:[0-9a-f:]|%3a)*(?::|%3a)(?:[0-9a-f:]|%3a)*/gi
const COLON = /:|%3a/i
/** Hardware addresses as Windows (`00-53-00-ab-cd-ef`) and Cisco devices (`0053.00ab.cdef`) write them. */
const HARDWARE =
  /([0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f]{2})(?:-[0-9a-f]{2}){3}|([0-9a-f]{4}\.[0-9a-f]{2})[0-9a-f]{2}\.[0-9a-f]{4}/gi
/** Controls, directions of text, and what stands for bytes that are not text. */
const CONTROL = /[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/gu
/** Keys, hashes and other words that nobody reads. */
const LONG_WORD = /\b(?=[\w+/-]*\d)[\w+/-]{24,}={0,2}/g

/**
 * The beginning of a message as an operator may see it: its shape stays, but who and what went through the device does not. Secrets, addresses of
 * people, mail addresses, names of users and query strings are masked, and bytes that are no text are shown as \xNN.
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
      .replace(SPOKEN, '$1$2…')
      .replace(DOMAIN_USER, '$1\\…')
      // Before addresses are masked: the digits of an escape next to the rest of one must not look like an address.
      .replace(CONTROL, escaped)
      .replace(HARDWARE, '$1$2…')
      .replace(IPV4, '$1x')
      .replace(IPV6, withoutEnd)
      .replace(LONG_WORD, '…')
      .slice(0, SAMPLE_CHARS_MAX)
  )
}

/** `2001:db8:1::5` becomes `2001:db8:x`, `fe80::1` `fe80:x`: no `::` stays, because `fe80::` is an address, too. */
function withoutEnd(text: string): string {
  const [first = '', second = '', ...rest] = text.split(COLON)
  if (rest.length === 0) return text
  return second === '' ? `${first}:x` : `${first}:${second}:x`
}

/** So that a message cannot steer the terminal that shows it. */
function escaped(character: string): string {
  const code = character.charCodeAt(0)
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}
