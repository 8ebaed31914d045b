/**
 * Tor makes up the server name of its connections to relays: `www.`, a label of 4 to 25 random
 * base32 letters (a to z, 2 to 7), and `.com` or `.net` (tor-spec, "TLS connections"). Such a name
 * cannot be known for certain from its letters, so short labels and those that could be words do
 * not count.
 */
const WWW = 0x7777_772e
const DOT_COM = 0x2e63_6f6d
const DOT_NET = 0x2e6e_6574
const LABEL_BYTES_MIN = 8
const LABEL_BYTES_MAX = 25
/** Signs of randomness that a name must have. */
const SIGNS_MIN = 2
/** More consonants in a row than in words. */
const CONSONANTS_MIN = 5

const isVowel = new Uint8Array(256)
for (const letter of 'aeiouy') isVowel[letter.charCodeAt(0)] = 1
const LETTER_Q = 0x71
const LETTER_U = 0x75

/** Whether bytes [start, end) of `view`, a name with dots, look like a name that Tor made up. */
export function isTorName(view: DataView, start: number, end: number): boolean {
  const first = start + 4
  const last = end - 4
  if (last - first < LABEL_BYTES_MIN || last - first > LABEL_BYTES_MAX) return false
  if (view.getUint32(start) !== WWW) return false
  const suffix = view.getUint32(last)
  if (suffix !== DOT_COM && suffix !== DOT_NET) return false
  let signs = 0
  let consonants = 0
  for (let at = first; at < last; at++) {
    const byte = view.getUint8(at)
    const isDigit = byte >= 0x32 && byte <= 0x37
    if (!isDigit && (byte < 0x61 || byte > 0x7a)) return false
    // A digit between letters, as no word and no year has.
    if (isDigit && at > first && at + 1 < last && isLetter(view, at - 1) && isLetter(view, at + 1)) signs++
    if (byte === LETTER_Q && view.getUint8(at + 1) !== LETTER_U) signs++
    consonants = isDigit || isVowel[byte] === 1 ? 0 : consonants + 1
    if (consonants === CONSONANTS_MIN) signs++
  }
  return signs >= SIGNS_MIN
}

function isLetter(view: DataView, at: number): boolean {
  return view.getUint8(at) >= 0x61
}
