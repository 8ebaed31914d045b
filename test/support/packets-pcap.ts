export interface PcapFields {
  readonly linkType?: number
  readonly bigEndian?: boolean
  readonly nanoseconds?: boolean
  readonly snaplen?: number
}

export interface CapturedFrame {
  readonly bytes: Buffer
  /** Milliseconds since 1970, with a fraction. */
  readonly timeMs: number
  /** When the capture cut the frame short. */
  readonly originalBytes?: number
}

/** A classic capture file (draft-ietf-opsawg-pcap). */
export function pcapFile(frames: readonly CapturedFrame[], fields: PcapFields = {}): Buffer {
  const numbers = (...values: readonly number[]) => {
    const bytes = Buffer.alloc(values.length * 4)
    for (const [index, value] of values.entries()) {
      if (fields.bigEndian === true) bytes.writeUInt32BE(value, index * 4)
      else bytes.writeUInt32LE(value, index * 4)
    }
    return bytes
  }
  const version = fields.bigEndian === true ? 0x0002_0004 : 0x0004_0002
  const magic = fields.nanoseconds === true ? 0xa1b2_3c4d : 0xa1b2_c3d4
  const unitsPerMs = fields.nanoseconds === true ? 1e6 : 1e3
  return Buffer.concat([
    numbers(magic, version, 0, 0, fields.snaplen ?? 262_144, fields.linkType ?? 1),
    ...frames.flatMap(({ bytes, timeMs, originalBytes }) => {
      const seconds = Math.floor(timeMs / 1000)
      const fraction = Math.round((timeMs - seconds * 1000) * unitsPerMs)
      return [numbers(seconds, fraction, bytes.length, originalBytes ?? bytes.length), bytes]
    }),
  ])
}

/** Frames one millisecond apart. */
export function framesAt(startMs: number, frames: readonly Buffer[]): CapturedFrame[] {
  return frames.map((bytes, index) => ({ bytes, timeMs: startMs + index }))
}
