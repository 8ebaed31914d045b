import { domainToASCII } from 'node:url'

/**
 * Valid host names (RFC 952, RFC 1123 §2.1, RFC 1035 §2.3.4, RFC 5890 §2.3.1), for bytes on the
 * wire and for text in the registry. The two differ in one point: a name seen in DNS may have
 * underscores in the labels left of a rule (`_https.api.example.com`, RFC 8552), a name in the
 * registry may not.
 */
export const LABEL_BYTES_MAX = 63
/** Dotted text without the trailing dot. */
export const NAME_CHARS_MAX = 253
/** On the wire: length bytes, labels and the zero byte of the root. */
export const WIRE_BYTES_MAX = 255
/** 127 one-byte labels and the root fill 255 bytes. */
export const LABELS_MAX = 127

/**
 * The lower-case form of a byte that is valid in a label on the wire (a-z, 0-9, hyphen,
 * underscore), otherwise 0.
 */
export const LABEL_BYTE: Uint8Array = labelBytes()

/** The canonical form of a name: lower case, A-labels, no empty label, no trailing dot. */
const CANONICAL = /^[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/
/** Longer text cannot become a name: a U-label (RFC 5890 §4.2) has at most 252 bytes. */
const ENCODED_CHARS_MAX = 1024
const DOT = 0x2e

const A_LABEL = /^xn--[a-z0-9-]+$/
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
const LABEL_PATTERN = /^[a-z0-9*](?:[a-z0-9*-]*[a-z0-9*])?$/

/**
 * The one form in which names are matched, stored and counted: lower case, A-labels (UTS 46), no
 * trailing dot. Returns undefined for text that is no name. A label may have underscores (RFC
 * 8552).
 */
export function canonicalName(text: string): string | undefined {
  if (text.length > ENCODED_CHARS_MAX) return undefined
  let name = text
  if (!CANONICAL.test(name)) {
    name = isAscii(name) ? name.toLowerCase() : domainToASCII(name)
    if (name.endsWith('.')) name = name.slice(0, -1)
    if (!CANONICAL.test(name)) return undefined
  }
  return name.length <= NAME_CHARS_MAX ? name : undefined
}

/**
 * Whether the bytes [start, end) are a name in its canonical form: canonicalName without a string.
 */
export function isCanonicalName(view: DataView, start: number, end: number): boolean {
  let labelStart = start
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte === DOT) {
      if (at === labelStart || at - labelStart > LABEL_BYTES_MAX) return false
      labelStart = at + 1
    } else if (byte === 0 || LABEL_BYTE[byte] !== byte) return false
  }
  return end > labelStart && end - labelStart <= LABEL_BYTES_MAX && end - start <= NAME_CHARS_MAX
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) >= 0x80) return false
  return true
}

/**
 * Returns why `text` is not valid as a host name in the registry, or undefined if it is valid:
 * lower case, A-labels, no trailing dot.
 */
export function hostNameFault(text: string): string | undefined {
  return nameFault(text, LABEL, 'letters a-z, digits and inner hyphens')
}

/**
 * Like hostNameFault, for a pattern: `*` is one or more characters within one label, and the last
 * label must have none.
 */
export function patternFault(text: string): string | undefined {
  if (!text.includes('*')) return 'a pattern needs a *; use match exact or suffix'
  if (text.includes('**')) return '** is not a pattern; * is one or more characters within one label'
  if (text.slice(text.lastIndexOf('.') + 1).includes('*')) return 'the last label cannot hold a *'
  return nameFault(text, LABEL_PATTERN, 'letters a-z, digits, inner hyphens and *')
}

function nameFault(text: string, label: RegExp, allowed: string): string | undefined {
  if (text.length === 0) return 'an empty name'
  if (text.length > NAME_CHARS_MAX) return `a name of ${text.length} characters; at most ${NAME_CHARS_MAX}`
  if (text !== text.toLowerCase()) return 'upper case; names must be lower case'
  const labels = text.split('.')
  for (const part of labels) {
    if (part.length === 0) return 'an empty label'
    if (part.length > LABEL_BYTES_MAX) return `a label of ${part.length} characters; at most ${LABEL_BYTES_MAX}`
    if (!label.test(part)) return `the label "${part}"; a label has ${allowed} (write Unicode names as A-labels, xn--)`
    if (part.slice(2, 4) === '--' && !A_LABEL.test(part))
      return `the label "${part}"; hyphens in 3rd and 4th place mark A-labels`
  }
  if (labels.length < 2) return 'a single label; a top-level domain is no platform'
  if (/^[0-9]+$/.test(labels.at(-1) ?? '')) return 'an IP address or a number as the last label'
  return undefined
}

function labelBytes(): Uint8Array {
  const table = new Uint8Array(256)
  for (const char of 'abcdefghijklmnopqrstuvwxyz0123456789-_') {
    table[char.charCodeAt(0)] = char.charCodeAt(0)
    table[char.toUpperCase().charCodeAt(0)] = char.charCodeAt(0)
  }
  return table
}
