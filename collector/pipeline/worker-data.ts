import type { DecodeOptions } from '../decode/decode-batch.ts'

/** What a lane gives its worker at the start. */
export interface DecodeWorkerData extends DecodeOptions {
  readonly lane: number
  readonly batches: readonly SharedArrayBuffer[]
}

/** `done`: all frames were decoded. `rowsFull`: run the batch again when its rows were read. `notYet`: an earlier batch comes first. */
export type DecodeAnswer = 'done' | 'rowsFull' | 'notYet'

/** The task that only asks whether the worker is there. */
export const NO_BATCH = -1

/** The number of a batch, or what compileTrie() made of the registry that is in force from now on. */
export type DecodeTask = number | { readonly trie: SharedArrayBuffer }
