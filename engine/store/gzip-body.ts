import { constants, crc32, deflateRawSync } from 'node:zlib'

/*
 * A body in gzip (RFC 1952) whose middle can be used again when the text before it changes:
 *
 *   0   4   offset of the middle after this table
 *   4   4   its length
 *   8   n   one gzip member: curl refuses a second one
 *             10  header
 *             .   the text before, in stored blocks (RFC 1951 §3.2.4)
 *             .   the middle, compressed, ended by an empty stored block, which ends at a byte
 *             .   the text after, in a stored block that is marked as the last one
 *             4   CRC-32 of the body, little-endian
 *             4   length of the body, little-endian
 */
const TABLE_BYTES = 8
/** Method deflate, no flags, no time, no hint of the level, unknown system. */
const HEADER = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])
const TRAILER_BYTES = 8
const STORED_HEADER_BYTES = 5
const STORED_BYTES_MAX = 0xffff
/** For shorter bodies, compression and decompression take more time than they save. */
const BODY_BYTES_MIN = 1024
/** A fifth less time than zlib's default, for 4 % more bytes. */
const LEVEL = 4

/** A text that may have been compressed before. */
export interface Middle {
  readonly text: Uint8Array
  readonly compressed: Uint8Array | undefined
}

/** Returns the stored form of a body in gzip. undefined: compression does not pay. */
export function packGzipBody(before: Uint8Array, { text, compressed }: Middle, after: Uint8Array): Buffer | undefined {
  const length = before.length + text.length + after.length
  if (length < BODY_BYTES_MIN) return undefined
  const first = storedBlocks(before, false)
  const middle = compressed ?? deflateRawSync(text, { level: LEVEL, finishFlush: constants.Z_SYNC_FLUSH })
  const table = Buffer.alloc(TABLE_BYTES)
  table.writeUInt32BE(HEADER.length + first.length, 0)
  table.writeUInt32BE(middle.length, 4)
  const trailer = Buffer.alloc(TRAILER_BYTES)
  trailer.writeUInt32LE(crc32(after, crc32(text, crc32(before))), 0)
  trailer.writeUInt32LE(length, 4)
  const packed = Buffer.concat([table, HEADER, first, middle, storedBlocks(after, true), trailer])
  return packed.length - TABLE_BYTES < length ? packed : undefined
}

/** The gzip member, as sent. A view. */
export function gzipOf(packed: Uint8Array): Uint8Array {
  return packed.subarray(TABLE_BYTES)
}

/** The compressed middle, for the next packGzipBody(). A view. */
export function compressedMiddle(packed: Buffer): Uint8Array {
  const offset = TABLE_BYTES + packed.readUInt32BE(0)
  return packed.subarray(offset, offset + packed.readUInt32BE(4))
}

function storedBlocks(text: Uint8Array, isLast: boolean): Buffer {
  const blocks: Uint8Array[] = []
  for (let at = 0; at < text.length; at += STORED_BYTES_MAX) {
    const bytes = text.subarray(at, at + STORED_BYTES_MAX)
    const header = Buffer.alloc(STORED_HEADER_BYTES)
    header[0] = isLast && at + STORED_BYTES_MAX >= text.length ? 1 : 0
    header.writeUInt16LE(bytes.length, 1)
    header.writeUInt16LE(~bytes.length & STORED_BYTES_MAX, 3)
    blocks.push(header, bytes)
  }
  return Buffer.concat(blocks)
}
