/**
 * What reads the records of a capture format, in place. The bytes stand in a buffer that its owner fills: next() moves over the record
 * at `at`, and its fields stay until the next call. A reader keeps no bytes, so a record that is not all there is asked for again when
 * there are more.
 */
export interface RecordReader {
  /** Offset in the buffer of what comes next. Set anew by the owner when it moved the bytes. */
  at: number
  /** Bytes to pass over unread before `at` goes on: the rest of a block that may be longer than the buffer. */
  skipBytes: number
  /** The record's captured bytes stand at [offset, offset + captured). */
  readonly offset: number
  readonly captured: number
  readonly seconds: number
  readonly nanoseconds: number
  readonly linkType: number
  /** What is wrong with the record at `at`: `found ..., expected ...`. Set when next() ended at damage. */
  readonly damage: string | undefined
  /** Moves over the next record in bytes [at, end). False when there are too few bytes, or at damage. */
  next(view: DataView, end: number): boolean
  /** What is wrong when a file ends with `left` bytes of a record. */
  endDamage(left: number): string
}

/** The decimal fraction of a second in nanoseconds, kept below a second whatever the file says. */
export const NANOSECONDS_MAX = 999_999_999
