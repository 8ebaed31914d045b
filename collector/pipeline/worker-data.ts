import type { DecodeOptions } from '../decode/decode-batch.ts'

/** Start data of a lane's worker. */
export interface DecodeWorkerData extends DecodeOptions {
  readonly lane: number
  readonly batches: readonly SharedArrayBuffer[]
}

/**
 * `done`: all frames are decoded. `rowsFull`: run the batch again after its rows were read.
 * `notYet`: an earlier batch must come first.
 */
export type DecodeAnswer = 'done' | 'rowsFull' | 'notYet'

/** A task that only checks whether the worker has started. */
export const NO_BATCH = -1

/** The number of a batch, or another registry from compileTrie(). */
export type DecodeTask = number | { readonly trie: SharedArrayBuffer }
