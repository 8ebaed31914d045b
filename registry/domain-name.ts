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

const A_LABEL = /^xn--[a-z0-9-]+$/
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/
const LABEL_PATTERN = /^[a-z0-9*](?:[a-z0-9*-]*[a-z0-9*])?$/

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
