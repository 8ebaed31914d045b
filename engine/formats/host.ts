import { canonicalName, LABEL_BYTE, LABEL_BYTES_MAX, NAME_CHARS_MAX } from '../../registry/domain-name.ts'
import {
  ALPHANUMERIC,
  AT,
  ByteSet,
  CLOSE_BRACKET,
  COLON,
  DOT,
  digitsEnd,
  HYPHEN,
  indexOfByte,
  isDigit,
  isLetter,
  isTextIgnoreCase,
  KeyTable,
  LETTER_SET,
  lastIndexOfByte,
  NOT_FOUND,
  OPEN_BRACKET,
  PERCENT,
  QUOTE,
  SLASH,
  skipBlanks,
  textAtIgnoreCase,
  trimEnd,
  wordsOf,
} from './bytes.ts'
import { AddressKind, addressKind } from './ip-address.ts'

/** What a field names. A reverse lookup (`in-addr.arpa`) names an address, not a host. */
export const HostKind = { none: 0, name: 1, address: 2, reverse: 3 } as const
export type HostKind = (typeof HostKind)[keyof typeof HostKind]

const SLOW_PATH = -1
const STAR = 0x2a
/** The longest scheme that a log writes: `chrome-extension`. */
const SCHEME_BYTES_MAX = 24
/**
 * Longer non-ASCII text cannot become a name (a U-label of RFC 5890 §4.2 has at most 252 bytes).
 */
const ENCODED_BYTES_MAX = 1024

/**
 * Finds the host in a field: a name, `host:port`, `host:port/path`, a URL of any scheme, a DNS name
 * with a trailing dot, an address in brackets; with userinfo, in any case, in Unicode (UTS 46) or
 * percent-encoded (once, RFC 3986 §3.2.2).
 */
export class HostFinder {
  /** The host in the message or the scratch area, in its original case, without a trailing dot. */
  start = 0
  end = 0
  readonly #bytes: Uint8Array
  readonly #scratchStart: number

  /**
   * NAME_CHARS_MAX bytes of `bytes` from `scratchStart` take names that are encoded in the message.
   */
  constructor(bytes: Uint8Array, scratchStart: number) {
    this.#bytes = bytes
    this.#scratchStart = scratchStart
  }

  find(view: DataView, fieldStart: number, fieldEnd: number): HostKind {
    const kind = this.#fastPath(view, fieldStart, fieldEnd)
    return kind === SLOW_PATH ? this.#any(view, fieldStart, fieldEnd) : kind
  }

  /**
   * Fast path in one pass: a name alone, or with a port, path or scheme; SLOW_PATH for everything
   * else. (The passes of #any took a fifth of the time of a message, bench ingest.)
   */
  #fastPath(view: DataView, fieldStart: number, end: number): HostKind | typeof SLOW_PATH {
    let start = fieldStart
    let labelStart = start
    let dots = 0
    let at = start
    for (; at < end; at++) {
      const byte = view.getUint8(at)
      if ((LABEL_BYTE[byte] ?? 0) !== 0) continue
      if (byte === DOT) {
        if (at === labelStart || at - labelStart > LABEL_BYTES_MAX) return SLOW_PATH
        dots++
        labelStart = at + 1
        continue
      }
      if (byte === SLASH) break
      if (byte !== COLON) return SLOW_PATH
      if (at + 3 < end && view.getUint8(at + 1) === SLASH && view.getUint8(at + 2) === SLASH) {
        if (dots > 0 || start !== fieldStart || at - start > SCHEME_BYTES_MAX || !isLetter(view.getUint8(start))) {
          return SLOW_PATH
        }
        start = at + 3
        labelStart = start
        at += 2
        continue
      }
      // A port, then the end or a path: no second colon, no `@` after a password.
      let port = at + 1
      while (port < end && isDigit(view.getUint8(port))) port++
      if (port === at + 1 || (port < end && view.getUint8(port) !== SLASH)) return SLOW_PATH
      break
    }
    const length = at - labelStart
    // A trailing dot, an address, a number and a single word have their own rules.
    if (dots === 0 || length < 2 || length > LABEL_BYTES_MAX || at - start > NAME_CHARS_MAX) return SLOW_PATH
    for (let letter = labelStart; letter < at; letter++) if (!isLetter(view.getUint8(letter))) return SLOW_PATH
    if (view.getUint8(start) === HYPHEN || (length === 4 && textAtIgnoreCase(view, labelStart, at, 'arpa')))
      return SLOW_PATH
    this.start = start
    this.end = at
    return HostKind.name
  }

  #any(view: DataView, fieldStart: number, fieldEnd: number): HostKind {
    let start = skipBlanks(view, fieldStart, fieldEnd)
    let end = trimEnd(view, start, fieldEnd)
    if (start < end && view.getUint8(start) === QUOTE) start++
    start = afterScheme(view, start, end)
    end = AFTER_AUTHORITY.firstIn(view, start, end)
    start = Math.max(start, lastIndexOfByte(view, start, end, AT) + 1)
    if (start >= end) return HostKind.none
    if (view.getUint8(start) === OPEN_BRACKET) {
      start++
      const close = indexOfByte(view, start, end, CLOSE_BRACKET)
      if (close !== NOT_FOUND) end = close
    } else {
      end = withoutPort(view, start, end)
    }
    if (end - start > 1 && view.getUint8(end - 1) === DOT) end--
    // A certificate's wildcard: the parent name replaces the wildcard.
    if (end - start > 2 && view.getUint8(start) === STAR && view.getUint8(start + 1) === DOT) start += 2
    return this.#classify(view, start, end)
  }

  #classify(view: DataView, start: number, end: number): HostKind {
    this.start = start
    this.end = end
    if (end <= start) return HostKind.none
    let dots = 0
    let labelStart = start
    for (let at = start; at < end; at++) {
      const byte = view.getUint8(at)
      if (byte === DOT) {
        if (at === labelStart || at - labelStart > LABEL_BYTES_MAX) return HostKind.none
        dots++
        labelStart = at + 1
      } else if ((LABEL_BYTE[byte] ?? 0) === 0) {
        if (byte >= 0x80 || byte === PERCENT) return this.#encoded(start, end)
        return this.#addressOrNone(view, start, end)
      }
    }
    if (dots === 0 || labelStart === end || end - labelStart > LABEL_BYTES_MAX || end - start > NAME_CHARS_MAX) {
      return HostKind.none
    }
    // A top-level domain has only letters, or is an A-label.
    const last = view.getUint8(labelStart)
    if (isDigit(last)) return this.#addressOrNone(view, start, end)
    if (!isTopLevel(view, labelStart, end)) return HostKind.none
    if (view.getUint8(start) === HYPHEN) return HostKind.none
    return isReverse(view, labelStart, start, end) ? HostKind.reverse : HostKind.name
  }

  #addressOrNone(view: DataView, start: number, end: number): HostKind {
    return addressKind(view, start, end) === AddressKind.none ? HostKind.none : HostKind.address
  }

  /** Slow path through a string, for Unicode and percent-encoded names. */
  #encoded(start: number, end: number): HostKind {
    if (end - start > ENCODED_BYTES_MAX) return HostKind.none
    let text = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + start, end - start).toString('utf8')
    if (text.includes('%')) {
      try {
        text = decodeURIComponent(text)
      } catch {
        // An IPv6 zone (RFC 4007 §11), or no encoding at all.
      }
      const zone = text.indexOf('%')
      if (zone >= 0) text = text.slice(0, zone)
    }
    const name = canonicalName(text)
    if (name === undefined) {
      return text.includes(':') && /^[0-9a-f:.]+$/i.test(text) ? HostKind.address : HostKind.none
    }
    this.#bytes.set(Buffer.from(name), this.#scratchStart)
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength)
    return this.#classify(view, this.#scratchStart, this.#scratchStart + name.length)
  }
}

/** Whether a URL with a scheme begins at `start`. */
export function hasScheme(view: DataView, start: number, end: number): boolean {
  return afterScheme(view, start, end) !== start
}

/**
 * The last labels of file names and of internal machine names. No registry assigns these labels,
 * except zip and mov.
 */
const NO_TOP_LEVEL = new KeyTable(
  wordsOf(
    1,
    'exe zip pdf mov dll doc docx docm xls xlsx xlsm ppt pptx txt rtf log csv json xml yaml yml html htm php asp aspx jsp js css png jpg jpeg gif bmp svg ico tif tiff webp mp3 mp4 avi mkv wav wmv gz tgz tar rar bz xz iso img dmg msi apk jar war cab deb rpm bin dat db tmp bak old cfg conf ini inf sys lnk reg bat cmd vbs pcap pem crt cer der key pfx eml msg esp woff ttf swf torrent local lan internal intranet corp home localdomain localhost workgroup test invalid onion arpa',
  ),
)

const LABEL_SET = new ByteSet(`${ALPHANUMERIC}-_`)
/** The maximum length of a cell with a single name: a name, a port and a dot. */
const HOST_CELL_BYTES_MAX = 260

/**
 * Whether the name in a cell ends as a domain does, not as a file does. A port is sufficient
 * evidence.
 */
export function isPlausibleHost(view: DataView, start: number, end: number): boolean {
  let at = start
  let labelStart = start
  const limit = Math.min(end, start + HOST_CELL_BYTES_MAX)
  for (; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === DOT) {
      // A trailing dot belongs to the name.
      if (at + 1 === end) break
      labelStart = at + 1
    } else if (byte === COLON) {
      return digitsEnd(view, at + 1, end) > at + 1
    } else if (byte === SLASH) break
    else if (byte < 0x80 && !LABEL_SET.has(byte)) return false
  }
  if (at === limit && limit !== end) return false
  return labelStart > start && NO_TOP_LEVEL.find(view, labelStart, at) < 0
}

/** The offset after `scheme://`, or `start` without a scheme. */
function afterScheme(view: DataView, start: number, end: number): number {
  if (start >= end || !isLetter(view.getUint8(start))) return start
  const limit = Math.min(end - 2, start + SCHEME_BYTES_MAX)
  for (let at = start; at < limit; at++) {
    const byte = view.getUint8(at)
    if (byte === COLON) return view.getUint8(at + 1) === SLASH && view.getUint8(at + 2) === SLASH ? at + 3 : start
    if (byte === DOT || byte === SLASH || byte === QUOTE) return start
  }
  return start
}

/** RFC 3986 §3.2: the authority ends at the next slash, question mark or number sign. */
const AFTER_AUTHORITY = new ByteSet('/?#\\ "\t')

/** The end without `:port`. More than one colon is a bare IPv6 address, which has no port. */
function withoutPort(view: DataView, start: number, end: number): number {
  const colon = indexOfByte(view, start, end, COLON)
  return colon === NOT_FOUND || indexOfByte(view, colon + 1, end, COLON) !== NOT_FOUND ? end : colon
}

/** At least two bytes, letters only, or `xn--`. */
function isTopLevel(view: DataView, start: number, end: number): boolean {
  if (end - start < 2) return false
  return textAtIgnoreCase(view, start, end, 'xn--') || LETTER_SET.hasAll(view, start, end)
}

/** `in-addr.arpa` and `ip6.arpa` (RFC 1035 §3.5, RFC 3596 §2.5). */
function isReverse(view: DataView, topStart: number, start: number, end: number): boolean {
  if (end - topStart !== 4 || !textAtIgnoreCase(view, topStart, end, 'arpa')) return false
  let labelStart = topStart - 1
  while (labelStart > start && view.getUint8(labelStart - 1) !== DOT) labelStart--
  return (
    isTextIgnoreCase(view, labelStart, topStart - 1, 'in-addr') ||
    isTextIgnoreCase(view, labelStart, topStart - 1, 'ip6')
  )
}
