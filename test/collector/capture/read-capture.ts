import { CaptureFile } from '../../../collector/capture/capture-file.ts'
import { BATCH_FRAME_BYTES } from '../../../collector/limits.ts'
import type { ByteSource } from '../../../engine/kernel/process/byte-source.ts'

export interface ReadRecord {
  /** In hexadecimal. */
  readonly bytes: string
  readonly timeMs: number
  readonly linkType: number
}

/** A source of bytes in memory. No read crosses the offsets in `pieces`. */
export function bytesInPieces(bytes: Buffer, pieces: readonly number[] = []): ByteSource {
  let at = 0
  const borders = [...pieces, bytes.length]
  return {
    bytesTotal: bytes.length,
    live: false,
    get bytesRead() {
      return at
    },
    read(into, offset, length) {
      const border = borders.find((candidate) => candidate > at) ?? at
      const got = Math.min(length, border - at)
      into.set(bytes.subarray(at, at + got), offset)
      at += got
      return got
    },
    close() {},
  }
}

/** Reads all records of a capture file, and its damage. */
export async function readCapture(
  bytes: Buffer,
  options: { pieces?: readonly number[]; bufferBytes?: number } = {},
): Promise<{ records: ReadRecord[]; damage: string | undefined }> {
  const file = await CaptureFile.of(bytesInPieces(bytes, options.pieces))
  const { reader } = file
  const buffer = Buffer.alloc(options.bufferBytes ?? BATCH_FRAME_BYTES)
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length)
  const records: ReadRecord[] = []
  for (let end = 0; ; ) {
    end = await file.fill(buffer, end, buffer.length)
    while (reader.next(view, end)) {
      records.push({
        bytes: buffer.toString('hex', reader.offset, reader.offset + reader.captured),
        timeMs: reader.seconds * 1000 + reader.nanoseconds / 1e6,
        linkType: reader.linkType,
      })
    }
    if (file.ended || reader.damage !== undefined) {
      file.finish(end)
      return { records, damage: file.damage }
    }
    buffer.copyWithin(0, reader.at, end)
    end -= reader.at
    file.moved(0)
  }
}
