export interface PcapFields {
  readonly linkType?: number
  readonly bigEndian?: boolean
  readonly nanoseconds?: boolean
  readonly snaplen?: number
  /** Major and minor. Default: 2.4. */
  readonly version?: readonly [number, number]
  /** Kuznetzov's patch of libpcap 0.4 (magic a1b2cd34): record headers have eight more bytes. */
  readonly modified?: boolean
  /**
   * Writes the original length before the captured one, as libpcap did before version 2.3 of the
   * format.
   */
  readonly swappedLengths?: boolean
}

export interface CapturedFrame {
  readonly bytes: Buffer
  /** Milliseconds since 1970, with a fraction. */
  readonly timeMs: number
  /** Set when the capture truncated the frame. */
  readonly originalBytes?: number
}

/** A classic capture file (draft-ietf-opsawg-pcap) or one of its variants. */
export function pcapFile(frames: readonly CapturedFrame[], fields: PcapFields = {}): Buffer {
  const numbers = (...values: readonly number[]) => {
    const bytes = Buffer.alloc(values.length * 4)
    for (const [index, value] of values.entries()) {
      if (fields.bigEndian === true) bytes.writeUInt32BE(value, index * 4)
      else bytes.writeUInt32LE(value, index * 4)
    }
    return bytes
  }
  const [major, minor] = fields.version ?? [2, 4]
  const version = fields.bigEndian === true ? (major << 16) | minor : (minor << 16) | major
  const magic = fields.modified === true ? 0xa1b2_cd34 : fields.nanoseconds === true ? 0xa1b2_3c4d : 0xa1b2_c3d4
  const unitsPerMs = fields.nanoseconds === true ? 1e6 : 1e3
  // Index of the interface, EtherType, packet type, padding, in the file's byte order. No reader
  // uses them.
  const rest = fields.modified === true ? [numbers(1, 0)] : []
  return Buffer.concat([
    numbers(magic, version, 0, 0, fields.snaplen ?? 262_144, fields.linkType ?? 1),
    ...frames.flatMap(({ bytes, timeMs, originalBytes = bytes.length }) => {
      const seconds = Math.floor(timeMs / 1000)
      const fraction = Math.round((timeMs - seconds * 1000) * unitsPerMs)
      const lengths = fields.swappedLengths === true ? [originalBytes, bytes.length] : [bytes.length, originalBytes]
      return [numbers(seconds, fraction, ...lengths), ...rest, bytes]
    }),
  ])
}

/** Frames one millisecond apart. */
export function framesAt(startMs: number, frames: readonly Buffer[]): CapturedFrame[] {
  return frames.map((bytes, index) => ({ bytes, timeMs: startMs + index }))
}
