/** draft-ietf-opsawg-pcapng §11.1: block types. */
const SECTION_HEADER = 0x0a0d_0d0a
const INTERFACE_DESCRIPTION = 1
const OBSOLETE_PACKET = 2
const SIMPLE_PACKET = 3
const NAME_RESOLUTION = 4
const INTERFACE_STATISTICS = 5
const ENHANCED_PACKET = 6
const DECRYPTION_SECRETS = 10
const CUSTOM = 0x0000_0bad
const CUSTOM_NOT_COPIED = 0x4000_0bad

const BYTE_ORDER_MAGIC = 0x1a2b_3c4d

/** §3.5 and §4.2: option codes. */
const OPTION_END = 0
const OPTION_COMMENT = 1
const INTERFACE_NAME = 2
const INTERFACE_TIME_RESOLUTION = 9
const INTERFACE_TIME_OFFSET = 14
const PACKET_FLAGS = 2

/** The example number of RFC 5612. */
const EXAMPLE_ENTERPRISE = 32_473

/** The value of if_tsresol: a negative power of ten or of two. */
export type TimeResolution = { readonly ten: number } | { readonly two: number }

export interface PcapngInterface {
  readonly linkType?: number
  readonly snaplen?: number
  /** Default: microseconds, without an option. */
  readonly resolution?: TimeResolution
  /** if_tsoffset: seconds to add to every timestamp. */
  readonly offsetSeconds?: number
  readonly comment?: string
  readonly name?: string
}

interface PacketFields {
  readonly interfaceId?: number
  readonly timeMs?: number
  readonly originalBytes?: number
  readonly comment?: string
}

/**
 * Writes a capture block by block (draft-ietf-opsawg-pcapng), in either byte order. `section()`
 * must come first.
 */
export class PcapngWriter {
  readonly #blocks: Buffer[] = []
  #bigEndian = false
  #interfaces: PcapngInterface[] = []

  /**
   * §4.1. A new section drops the interfaces of the previous one. Without `lengthBytes`, the
   * section's length is unspecified.
   */
  section(fields: { bigEndian?: boolean; lengthBytes?: number; comment?: string } = {}): this {
    this.#bigEndian = fields.bigEndian === true
    this.#interfaces = []
    const length = fields.lengthBytes === undefined ? [0xffff_ffff, 0xffff_ffff] : this.#words32(fields.lengthBytes)
    return this.block(
      SECTION_HEADER,
      this.#u32(BYTE_ORDER_MAGIC),
      this.#u16(1, 0),
      this.#u32(...length),
      this.#options(this.#comment(fields.comment)),
    )
  }

  /** §4.2 */
  interface(fields: PcapngInterface = {}): this {
    this.#interfaces.push(fields)
    const { resolution } = fields
    const options = [
      ...(fields.name === undefined ? [] : [this.#option(INTERFACE_NAME, Buffer.from(fields.name))]),
      ...this.#comment(fields.comment),
      ...(resolution === undefined
        ? []
        : [
            this.#option(
              INTERFACE_TIME_RESOLUTION,
              Buffer.from(['ten' in resolution ? resolution.ten : 0x80 | resolution.two]),
            ),
          ]),
      ...(fields.offsetSeconds === undefined
        ? []
        : [this.#option(INTERFACE_TIME_OFFSET, this.#u64(BigInt(fields.offsetSeconds)))]),
    ]
    return this.block(
      INTERFACE_DESCRIPTION,
      this.#u16(fields.linkType ?? 1, 0),
      this.#u32(fields.snaplen ?? 0),
      this.#options(options),
    )
  }

  /** §4.3 */
  enhanced(bytes: Buffer, fields: PacketFields = {}): this {
    const id = fields.interfaceId ?? 0
    const options = fields.comment === undefined ? [] : [this.#option(PACKET_FLAGS, this.#u32(1))]
    return this.block(
      ENHANCED_PACKET,
      this.#u32(id, ...this.#time(id, fields.timeMs ?? 0), bytes.length, fields.originalBytes ?? bytes.length),
      padded(bytes),
      this.#options([...this.#comment(fields.comment), ...options]),
    )
  }

  /**
   * §4.4: a packet of the first interface, without a timestamp, truncated to the interface's
   * snaplen.
   */
  simple(bytes: Buffer): this {
    const snaplen = this.#interfaces[0]?.snaplen ?? 0
    const kept = snaplen === 0 ? bytes : bytes.subarray(0, snaplen)
    return this.block(SIMPLE_PACKET, this.#u32(bytes.length), padded(kept))
  }

  /** §A.1: the obsolete packet block, with a count of drops. */
  obsolete(bytes: Buffer, fields: PacketFields = {}): this {
    const id = fields.interfaceId ?? 0
    return this.block(
      OBSOLETE_PACKET,
      this.#u16(id, 0xffff),
      this.#u32(...this.#time(id, fields.timeMs ?? 0), bytes.length, fields.originalBytes ?? bytes.length),
      padded(bytes),
      this.#options(this.#comment(fields.comment)),
    )
  }

  /** §4.5: one IPv4 entry. */
  nameResolution(address: readonly number[], name: string): this {
    const entry = Buffer.concat([Buffer.from(address), Buffer.from(`${name}\0`)])
    return this.block(NAME_RESOLUTION, this.#u16(1, entry.length), padded(entry), this.#u16(0, 0))
  }

  /** §4.6, without counters. */
  statistics(interfaceId: number, timeMs: number): this {
    return this.block(INTERFACE_STATISTICS, this.#u32(interfaceId, ...this.#time(interfaceId, timeMs)))
  }

  /** §4.7: a TLS key log. Our reader skips it. */
  decryptionSecrets(text: string): this {
    const bytes = Buffer.from(text)
    return this.block(DECRYPTION_SECRETS, this.#u32(0x544c_534b, bytes.length), padded(bytes))
  }

  /** §4.9 */
  custom(bytes: Buffer, copied = true): this {
    return this.block(copied ? CUSTOM : CUSTOM_NOT_COPIED, this.#u32(EXAMPLE_ENTERPRISE), padded(bytes))
  }

  /** §3.1: type, length, body, length. Takes any type, including undefined ones. */
  block(type: number, ...body: readonly Buffer[]): this {
    const length = 12 + body.reduce((total, part) => total + part.length, 0)
    this.#blocks.push(this.#u32(type, length), ...body, this.#u32(length))
    return this
  }

  bytes(): Buffer {
    return Buffer.concat(this.#blocks)
  }

  /** The timestamp in the interface's units as two 32-bit words, the high one first. */
  #time(interfaceId: number, timeMs: number): [number, number] {
    const fields = this.#interfaces[interfaceId]
    const resolution = fields?.resolution ?? { ten: 6 }
    const unitsPerSecond = 'ten' in resolution ? 10n ** BigInt(resolution.ten) : 1n << BigInt(resolution.two)
    const microseconds = BigInt(Math.round(timeMs * 1000)) - BigInt(fields?.offsetSeconds ?? 0) * 1_000_000n
    const units = (microseconds * unitsPerSecond) / 1_000_000n
    if (units < 0n || units >= 1n << 64n) throw new Error(`${timeMs} ms do not fit into 64 bits of this resolution`)
    return [Number(units >> 32n), Number(units & 0xffff_ffffn)]
  }

  #comment(text: string | undefined): Buffer[] {
    return text === undefined ? [] : [this.#option(OPTION_COMMENT, Buffer.from(text))]
  }

  #option(code: number, bytes: Buffer): Buffer {
    return Buffer.concat([this.#u16(code, bytes.length), padded(bytes)])
  }

  /** §3.5: options, then opt_endofopt. No options: no bytes. */
  #options(options: readonly Buffer[]): Buffer {
    return options.length === 0 ? Buffer.alloc(0) : Buffer.concat([...options, this.#u16(OPTION_END, 0)])
  }

  #u16(...values: readonly number[]): Buffer {
    const bytes = Buffer.alloc(values.length * 2)
    for (const [index, value] of values.entries()) {
      if (this.#bigEndian) bytes.writeUInt16BE(value, index * 2)
      else bytes.writeUInt16LE(value, index * 2)
    }
    return bytes
  }

  #u32(...values: readonly number[]): Buffer {
    const bytes = Buffer.alloc(values.length * 4)
    for (const [index, value] of values.entries()) {
      if (this.#bigEndian) bytes.writeUInt32BE(value >>> 0, index * 4)
      else bytes.writeUInt32LE(value >>> 0, index * 4)
    }
    return bytes
  }

  #u64(value: bigint): Buffer {
    const bytes = Buffer.alloc(8)
    if (this.#bigEndian) bytes.writeBigInt64BE(value)
    else bytes.writeBigInt64LE(value)
    return bytes
  }

  /**
   * The section's length is one 64-bit number, so the byte order decides which half comes first.
   */
  #words32(value: number): [number, number] {
    return this.#bigEndian ? [0, value] : [value, 0]
  }
}

/** §3.1: blocks and options are padded to 32 bits. */
function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
}
