import { PCAPNG_INTERFACES_MAX, SNAPLEN_BYTES_MAX } from '../limits.ts'
import { NANOSECONDS_MAX, type RecordReader } from './pcap-file.ts'

/**
 * pcapng (draft-ietf-opsawg-pcapng): sections in either byte order, each with its own interfaces.
 * Packets come from enhanced, simple and obsolete packet blocks. All other blocks are skipped.
 *
 *     block: u32 type, u32 total length in bytes, body, u32 total length again
 */
export const BLOCK_SECTION_HEADER = 0x0a0d_0d0a
const BLOCK_INTERFACE = 1
const BLOCK_PACKET_OBSOLETE = 2
const BLOCK_SIMPLE_PACKET = 3
const BLOCK_ENHANCED_PACKET = 6

const BLOCK_HEADER_BYTES = 8
/** Type and both lengths. */
const BLOCK_BYTES_MIN = 12
const BYTE_ORDER_MAGIC = 0x1a2b_3c4d
/** Includes byte-order magic, version and section length. */
const SECTION_BYTES_MIN = 28
const VERSION_MAJOR = 1
/** Includes link type, reserved and snaplen. */
const INTERFACE_BYTES_MIN = 20
/**
 * Interface, time, captured and original length. The obsolete block has the same length with other
 * fields.
 */
const PACKET_HEADER_BYTES = 20
const SIMPLE_HEADER_BYTES = 4

/** §4.2: options of an interface. */
const OPTION_END = 0
const OPTION_TIME_RESOLUTION = 9
const OPTION_TIME_OFFSET = 14

/** The high bit of a resolution option selects negative powers of 2 instead of 10. */
const RESOLUTION_BINARY = 0x80
const RESOLUTION_DEFAULT = 6

/**
 * The number of units in a second is the divisor of a long division in steps of 16 bits. Doubles
 * are exact up to 2^37 units; finer resolutions use BigInt.
 */
const UNITS_MAX = 2 ** 37

/** Maximum size of a block beyond the longest packet, in bytes: options and comments. */
const BLOCK_LENGTH_SLACK = 262_144

interface Interface {
  readonly linkType: number
  readonly snaplen: number
  /** Units of time in a second. */
  readonly units: number
  readonly offsetSeconds: number
}

export class PcapngReader implements RecordReader {
  at: number
  skipBytes = 0
  offset = 0
  captured = 0
  seconds = 0
  nanoseconds = 0
  linkType = 0
  damage: string | undefined = undefined
  #littleEndian = true
  #interfaces: Interface[] = []

  /** The first block, a section header, is at `at`. */
  constructor(at: number) {
    this.at = at
  }

  next(view: DataView, end: number): boolean {
    while (this.damage === undefined && this.skipBytes === 0) {
      const block = this.at
      if (block + BLOCK_BYTES_MIN > end) return false
      // The type of a section header reads the same in both byte orders. Its magic says which byte
      // order applies from here on.
      if (view.getUint32(block, true) === BLOCK_SECTION_HEADER) {
        const littleEndian = view.getUint32(block + 8, true) === BYTE_ORDER_MAGIC
        if (!littleEndian && view.getUint32(block + 8, false) !== BYTE_ORDER_MAGIC) {
          return this.#damaged('found no byte-order magic, expected 1a2b3c4d in a section header')
        }
        this.#littleEndian = littleEndian
      }
      const littleEndian = this.#littleEndian
      const type = view.getUint32(block, littleEndian)
      const length = view.getUint32(block + 4, littleEndian)
      if (length < BLOCK_BYTES_MIN) {
        return this.#damaged(`found a block length of ${length}, expected at least ${BLOCK_BYTES_MIN}`)
      }
      // Blocks are padded to 4 bytes. Some writers omit the padding from the length.
      const blockBytes = length % 4 === 0 ? length : length + 4 - (length % 4)
      switch (type) {
        case BLOCK_SECTION_HEADER:
        case BLOCK_INTERFACE:
          if (block + blockBytes > end) return this.#more(length)
          if (
            type === BLOCK_SECTION_HEADER ? !this.#section(view, block, length) : !this.#interface(view, block, length)
          )
            return false
          this.at = block + blockBytes
          break
        case BLOCK_ENHANCED_PACKET:
        case BLOCK_PACKET_OBSOLETE:
        case BLOCK_SIMPLE_PACKET: {
          if (block + blockBytes > end) return this.#more(length)
          const read =
            type === BLOCK_SIMPLE_PACKET
              ? this.#simplePacket(view, block, length)
              : this.#packet(view, block, length, type)
          if (!read) return false
          this.at = block + blockBytes
          return true
        }
        default:
          this.at = Math.min(block + blockBytes, end)
          this.skipBytes = block + blockBytes - this.at
      }
    }
    return false
  }

  endDamage(left: number): string {
    if (left < BLOCK_BYTES_MIN) return `found ${left} bytes, expected a block of at least ${BLOCK_BYTES_MIN}`
    return `found ${left} bytes of a block, expected the whole block`
  }

  /**
   * A block that must be read whole is incomplete: needs more bytes, unless the block exceeds any
   * buffer.
   */
  #more(length: number): false {
    const longest = SNAPLEN_BYTES_MAX + BLOCK_LENGTH_SLACK
    return length > longest ? this.#damaged(`found a block length of ${length}, expected at most ${longest}`) : false
  }

  #damaged(what: string): false {
    this.damage = what
    return false
  }

  #section(view: DataView, block: number, length: number): boolean {
    if (length < SECTION_BYTES_MIN) {
      return this.#damaged(`found a section header of ${length} bytes, expected at least ${SECTION_BYTES_MIN}`)
    }
    const major = view.getUint16(block + 12, this.#littleEndian)
    if (major !== VERSION_MAJOR) {
      return this.#damaged(`found version ${major} of pcapng, expected ${VERSION_MAJOR}`)
    }
    // Interfaces are numbered from 0 in each section.
    this.#interfaces = []
    return true
  }

  #interface(view: DataView, block: number, length: number): boolean {
    if (length < INTERFACE_BYTES_MIN) {
      return this.#damaged(`found an interface of ${length} bytes, expected at least ${INTERFACE_BYTES_MIN}`)
    }
    if (this.#interfaces.length === PCAPNG_INTERFACES_MAX) {
      return this.#damaged(`found one interface more in a section, expected at most ${PCAPNG_INTERFACES_MAX}`)
    }
    const littleEndian = this.#littleEndian
    let resolution = RESOLUTION_DEFAULT
    let offsetSeconds = 0
    const optionsEnd = block + length - 4
    for (let at = block + 16; at + 4 <= optionsEnd; ) {
      const code = view.getUint16(at, littleEndian)
      const bytes = view.getUint16(at + 2, littleEndian)
      if (code === OPTION_END || at + 4 + bytes > optionsEnd) break
      if (code === OPTION_TIME_RESOLUTION && bytes >= 1) resolution = view.getUint8(at + 4)
      if (code === OPTION_TIME_OFFSET && bytes >= 8) offsetSeconds = Number(view.getBigInt64(at + 4, littleEndian))
      at += 4 + ((bytes + 3) & ~3)
    }
    this.#interfaces.push({
      linkType: view.getUint16(block + 8, littleEndian),
      snaplen: view.getUint32(block + 12, littleEndian),
      units: (resolution & RESOLUTION_BINARY) === 0 ? 10 ** resolution : 2 ** (resolution & ~RESOLUTION_BINARY),
      offsetSeconds,
    })
    return true
  }

  /**
   * §4.3 and appendix A: the two block types differ in the width of the interface number. The
   * obsolete type has a drop count after it.
   */
  #packet(view: DataView, block: number, length: number, type: number): boolean {
    const littleEndian = this.#littleEndian
    const space = length - BLOCK_BYTES_MIN - PACKET_HEADER_BYTES
    if (space < 0) return this.#damaged(`found a packet block of ${length} bytes, expected at least 32`)
    const number =
      type === BLOCK_PACKET_OBSOLETE ? view.getUint16(block + 8, littleEndian) : view.getUint32(block + 8, littleEndian)
    const captured = view.getUint32(block + 20, littleEndian)
    return (
      this.#on(number, captured, space, block + BLOCK_HEADER_BYTES + PACKET_HEADER_BYTES) &&
      this.#time(view.getUint32(block + 12, littleEndian), view.getUint32(block + 16, littleEndian), number)
    )
  }

  /** §4.4: no time, no captured length, and always the section's first interface. */
  #simplePacket(view: DataView, block: number, length: number): boolean {
    const space = length - BLOCK_BYTES_MIN - SIMPLE_HEADER_BYTES
    if (space < 0) return this.#damaged(`found a simple packet block of ${length} bytes, expected at least 16`)
    const original = view.getUint32(block + 8, this.#littleEndian)
    const snaplen = this.#interfaces[0]?.snaplen ?? 0
    const captured = Math.min(original, space, snaplen === 0 ? space : snaplen)
    this.seconds = 0
    this.nanoseconds = 0
    return this.#on(0, captured, space, block + BLOCK_HEADER_BYTES + SIMPLE_HEADER_BYTES)
  }

  #on(number: number, captured: number, space: number, offset: number): boolean {
    const from = this.#interfaces[number]
    if (from === undefined) {
      return this.#damaged(`found a packet of interface ${number}, expected one of ${this.#interfaces.length}`)
    }
    if (captured > space || captured > SNAPLEN_BYTES_MAX) {
      const longest = Math.min(space, SNAPLEN_BYTES_MAX)
      return this.#damaged(`found a captured length of ${captured}, expected at most ${longest}`)
    }
    this.linkType = from.linkType
    this.offset = offset
    this.captured = captured
    return true
  }

  /** Converts the 64-bit count of units in `high` and `low` to seconds and nanoseconds. */
  #time(high: number, low: number, number: number): boolean {
    const { units, offsetSeconds } = this.#interfaces[number] as Interface
    if (units > UNITS_MAX) {
      const count = (BigInt(high) << 32n) | BigInt(low)
      const second = BigInt(units)
      this.#setTime(Number(count / second) + offsetSeconds, Number(((count % second) * 1_000_000_000n) / second))
      return true
    }
    // Long division in steps of 16 bits: no 64-bit number, and every step is exact.
    let seconds = 0
    let rest = 0
    for (let shift = 48; shift >= 0; shift -= 16) {
      const digit = shift >= 32 ? (high >>> (shift - 32)) & 0xffff : (low >>> shift) & 0xffff
      const part = rest * 65_536 + digit
      const quotient = Math.floor(part / units)
      rest = part - quotient * units
      seconds = seconds * 65_536 + quotient
    }
    this.#setTime(seconds + offsetSeconds, Math.floor((rest / units) * 1e9 + 1e-3))
    return true
  }

  #setTime(seconds: number, nanoseconds: number): void {
    // The rest of the program keeps seconds in 32 bits, which last until 2106.
    this.seconds = Math.min(Math.max(seconds, 0), 0xffff_ffff)
    this.nanoseconds = Math.min(nanoseconds, NANOSECONDS_MAX)
  }
}
