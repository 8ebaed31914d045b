/**
 * Reads the records of a capture format in place, in a buffer that its owner fills. next() moves
 * past the record at `at`, and its fields stay valid until the next call. A reader keeps no bytes:
 * the owner calls next() again for an incomplete record when more bytes have arrived.
 */
export interface RecordReader {
  /** Offset of the next record in the buffer. The owner sets it after moving the bytes. */
  at: number
  /**
   * Bytes to skip unread before `at` continues: the rest of a block that may be longer than the
   * buffer.
   */
  skipBytes: number
  /** The record's captured bytes are at [offset, offset + captured). */
  readonly offset: number
  readonly captured: number
  readonly seconds: number
  readonly nanoseconds: number
  readonly linkType: number
  /**
   * What is wrong with the record at `at`: `found ..., expected ...`. Set when next() stopped at
   * damage.
   */
  readonly damage: string | undefined
  /**
   * Moves past the next record in bytes [at, end). Returns false if there are too few bytes, or at
   * damage.
   */
  next(view: DataView, end: number): boolean
  /** Describes the damage if a file ends with `left` bytes of a record. */
  endDamage(left: number): string
}

/**
 * Limit of the fraction of a second in nanoseconds. Keeps it below a second, whatever the file
 * says.
 */
export const NANOSECONDS_MAX = 999_999_999
