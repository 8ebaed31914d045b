/** Progress of delivery. */
export interface Position {
  /**
   * Frames from the start of the source whose names are all delivered. No name of a later frame is.
   * A file can be read again from here (deliveredFrames) without losing or repeating a name.
   */
  readonly framesDone: number
}

/** Receives the rows of names one by one, in the order of their frames, and the progress. */
export interface RowConsumer {
  /**
   * Receives the row at `at` in `view` and `bytes`, the same memory, valid only during the call.
   * name-rows.ts shows the layout.
   */
  row(view: DataView, bytes: Buffer, at: number): void
  /** Exactly the names up to this position were delivered. A returned promise pauses the source. */
  delivered(position: Position): void | Promise<void>
}
