import { keyedNames } from '../../registry/keyed-hash.ts'
import { NAME_BYTES_MAX } from '../limits.ts'

/** The two encodings of a name on the wire. */
export const NameForm = {
  /** RFC 1035 §3.1: length-prefixed labels, uncompressed, including the final zero byte. */
  wire: 0,
  /** RFC 6066 §3: the HostName of server_name, labels separated by dots. */
  dotted: 1,
} as const
export type NameForm = (typeof NameForm)[keyof typeof NameForm]

/**
 * Where a name was found: bytes [start, end) of `view`. One per worker, overwritten by each name.
 */
export class FoundName {
  view: DataView
  start = 0
  end = 0
  form: NameForm = NameForm.wire

  constructor(view: DataView) {
    this.view = view
  }

  set(view: DataView, start: number, end: number, form: NameForm): void {
    this.view = view
    this.start = start
    this.end = end
    this.form = form
  }
}

/**
 * The hash of the name in bytes [start, end), of either form, in any case; never 0. No length of a
 * label is a letter. Names are taken as equal by their hash, so a client must not be able to choose
 * a name with the hash of another.
 */
export function nameHash(view: DataView, start: number, end: number): number {
  return keyedNames.bytes(view, start, end) >>> 0 || 1
}

/** The longest text of a name: every octet written as \DDD. */
export const NAME_TEXT_BYTES_MAX = 4 * NAME_BYTES_MAX

const DOT = 0x2e
const BACKSLASH = 0x5c
const ZERO = 0x30

/**
 * For each byte, its lower-case form if the byte is written unescaped, otherwise 0. Unescaped is
 * printable ASCII (RFC 20 §5.2), except the dot (separates labels) and the backslash (starts an
 * escape).
 */
const plainByte = new Uint8Array(256)
for (let byte = 0x21; byte < 0x7f; byte++) plainByte[byte] = String.fromCharCode(byte).toLowerCase().charCodeAt(0)
plainByte[DOT] = 0
plainByte[BACKSLASH] = 0

/**
 * Writes the name in lower-case dotted ASCII at `at`. Returns the offset after the text. A
 * non-printing byte, a dot inside a label and a backslash are written as \DDD (RFC 4343 §2.1), so
 * that one label cannot be mistaken for two. The root is written as one dot.
 */
export function writeNameText(name: FoundName, target: DataView, at: number): number {
  return name.form === NameForm.wire ? writeLabels(name, target, at) : writeHostName(name, target, at)
}

function writeLabels(name: FoundName, target: DataView, start: number): number {
  const view = name.view
  let from = name.start
  let at = start
  for (let length = view.getUint8(from); length !== 0; length = view.getUint8(from)) {
    if (at !== start) target.setUint8(at++, DOT)
    for (const labelEnd = ++from + length; from < labelEnd; from++) at = writeByte(view.getUint8(from), target, at)
  }
  if (at === start) target.setUint8(at++, DOT)
  return at
}

function writeHostName(name: FoundName, target: DataView, start: number): number {
  const view = name.view
  let at = start
  for (let from = name.start; from < name.end; from++) {
    const byte = view.getUint8(from)
    if (byte === DOT) target.setUint8(at++, DOT)
    else at = writeByte(byte, target, at)
  }
  return at
}

function writeByte(byte: number, target: DataView, at: number): number {
  const plain = plainByte[byte] ?? 0
  if (plain !== 0) {
    target.setUint8(at, plain)
    return at + 1
  }
  target.setUint8(at, BACKSLASH)
  target.setUint8(at + 1, ZERO + ((byte / 100) | 0))
  target.setUint8(at + 2, ZERO + (((byte / 10) | 0) % 10))
  target.setUint8(at + 3, ZERO + (byte % 10))
  return at + 4
}

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
