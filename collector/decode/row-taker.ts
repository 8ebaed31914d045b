/** How far the delivery came. */
export interface Position {
  /**
   * Frames of the source, from its first, whose names have all been delivered; no name of a later frame has. A file can be observed
   * again from here on (deliveredFrames) without losing or repeating a name.
   */
  readonly framesDone: number
}

/** Takes the rows of names, one by one in the order of their frames, and hears how far that is. */
export interface RowTaker {
  /** The row at `at` of the memory that `view` and `bytes` show; it is gone when this returns. name-rows.ts draws it. */
  row(view: DataView, bytes: Buffer, at: number): void
  /** Every name up to here was given, and no other. A promise holds back the source. */
  delivered(position: Position): void | Promise<void>
}
