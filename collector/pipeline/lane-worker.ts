import { Piscina } from 'piscina'
import { FrameBatch } from '../batch/frame-batch.ts'
import { BatchDecoder } from '../decode/decode-batch.ts'
import { type DecodeAnswer, type DecodeTask, type DecodeWorkerData, NO_BATCH } from './worker-data.ts'

const data = Piscina.workerData as DecodeWorkerData
const batches = data.batches.map((memory, number) => new FrameBatch(memory, number))
const decoder = new BatchDecoder(data.lane, data)
let sequence = 0

/**
 * The piscina task: decodes one batch, or switches to another registry. Several batches may be
 * queued for a worker. If one of them is incomplete, the worker returns the later ones unread, so
 * that a lane's frames are always decoded in order.
 */
export default function decodeBatch(task: DecodeTask): DecodeAnswer {
  if (typeof task !== 'number') {
    decoder.useTrie(task.trie)
    return 'done'
  }
  const number = task
  if (number === NO_BATCH) return 'done'
  const batch = batches[number]
  if (batch === undefined) throw new RangeError(`no batch ${number}`)
  if (batch.sequence !== sequence) return 'notYet'
  if (!decoder.decode(batch)) return 'rowsFull'
  sequence = (sequence + 1) >>> 0
  return 'done'
}
