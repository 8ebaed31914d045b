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

/** FNV-1a of the lower-case name in bytes [start, end) of a dotted name; never 0. */
export function nameHash(view: DataView, start: number, end: number): number {
  let hash = 0x811c9dc5
  for (let at = start; at < end; at++) {
    const byte = view.getUint8(at)
    hash = Math.imul(hash ^ (byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte), 0x01000193)
  }
  return hash >>> 0 || 1
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
