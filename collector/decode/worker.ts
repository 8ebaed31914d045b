import { Piscina } from 'piscina'
import { FrameBatch } from '../capture/frame-batch.ts'
import { BatchDecoder, type DecodeOptions } from './decode-batch.ts'

/** What a lane gives its worker at the start. */
export interface DecodeWorkerData extends DecodeOptions {
  readonly lane: number
  readonly batches: readonly SharedArrayBuffer[]
}

/** `done`: all frames were decoded. `rowsFull`: run the batch again when its rows were read. `notYet`: an earlier batch comes first. */
export type DecodeAnswer = 'done' | 'rowsFull' | 'notYet'

const data = Piscina.workerData as DecodeWorkerData
const held = data.batches.map((memory, number) => new FrameBatch(memory, number))
const decoder = new BatchDecoder(data.lane, data)
let sequence = 0

/**
 * The piscina task: decodes one batch. Several may be on the way to a worker; when one of them does not come to its end, those behind
 * it are handed back untouched, so that a lane's frames are always decoded in their order.
 */
export default function decodeBatch(number: number): DecodeAnswer {
  const batch = held[number]
  if (batch === undefined) throw new RangeError(`no batch ${number}`)
  if (batch.sequence !== sequence) return 'notYet'
  if (!decoder.decode(batch)) return 'rowsFull'
  sequence = (sequence + 1) >>> 0
  return 'done'
}
