import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Fault, type PlainFault, plainFault } from '../../engine/process/error-codes.ts'
import { BatchPool, type SharedPool } from '../batch/batch-pool.ts'
import { CaptureFile } from '../capture/capture-file.ts'
import { feedFile } from '../capture/feed-file.ts'
import { LiveCapture, type LiveOptions, type LiveState } from '../capture/live.ts'
import { raisePriority } from '../capture/priority.ts'
import { type Round, RoundFiller } from '../capture/round.ts'
import { BatchDecoder, type DecodeOptions } from '../decode/decode-batch.ts'
import { STOP_CHECK_MS } from '../limits.ts'
import type { InlineOrder } from './inline-lane.ts'
import { warmUp } from './warm-up.ts'

/** The source of the frames. */
export type CaptureSource =
  | { readonly kind: 'file'; readonly path: string }
  | ({ readonly kind: 'interface' } & LiveOptions)

export interface CaptureThreadData {
  readonly source: CaptureSource
  readonly pool: SharedPool
  readonly decode: DecodeOptions
  /** Decode in this thread, without lanes. */
  readonly decodeHere: boolean
}

/**
 * Messages of the thread, in this order: failed; or opened, any number of rounds and states, ended.
 * If the thread decodes, a round carries the result of decode(). After each result of false, a
 * `decoded` message follows when the batch has run again.
 */
export type CaptureMessage =
  | { readonly kind: 'failed'; readonly fault: PlainFault }
  | { readonly kind: 'opened'; readonly bytesTotal: number }
  | { readonly kind: 'round'; readonly round: Round; readonly done?: boolean }
  | { readonly kind: 'decoded'; readonly done: boolean }
  | { readonly kind: 'trieTaken' }
  | { readonly kind: 'live'; readonly state: LiveState }
  | { readonly kind: 'ended'; readonly bytesRead: number; readonly damage: PlainFault | undefined }

/** The thread's program: waits for its work, which the main thread prepares meanwhile. */
async function run(): Promise<void> {
  const work = workerData as MessagePort
  const data = await new Promise<CaptureThreadData | undefined>((resolve) => {
    work.once('message', resolve).once('close', () => resolve(undefined))
  })
  work.close()
  if (data !== undefined) await capture(data)
}

/**
 * Opens the source and fills batches until the source or the observation ends. It blocks the
 * thread.
 */
async function capture(data: CaptureThreadData): Promise<void> {
  const { source } = data
  const pool = new BatchPool(data.pool)
  const send = data.decodeHere ? decodeHere(data.decode, pool) : postRound
  try {
    if (source.kind === 'file') await captureFile(source.path, pool, send)
    else captureInterface(source, data.decode, pool, send)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    post({ kind: 'failed', fault: plainFault(error) })
  }
}

type SendRound = (round: Round) => void

async function captureFile(path: string, pool: BatchPool, send: SendRound): Promise<void> {
  // Opening a pipe without a writer waits until a stop is requested. In a thread, exit() ends only
  // the thread.
  const watch = setInterval(() => pool.stopped && process.exit(), STOP_CHECK_MS)
  const file = await CaptureFile.open(path).finally(() => clearInterval(watch))
  const { source } = file
  post({ kind: 'opened', bytesTotal: source.bytesTotal })
  // Only a regular file has positions to resume at. Names from a pipe are needed at once.
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: !source.live }, send)
  try {
    await feedFile(file, pool, filler)
  } finally {
    file.close()
  }
  const damage = file.damage && plainFault(new Fault('CAPTURE_DAMAGED', `${path}: ${file.damage}`))
  post({ kind: 'ended', bytesRead: source.bytesRead, damage: damage || undefined })
}

function captureInterface(options: LiveOptions, decode: DecodeOptions, pool: BatchPool, send: SendRound): void {
  const filler = new RoundFiller(pool, { whenExhausted: 'drop', holdBack: false }, send)
  const notify = (state: LiveState) => post({ kind: 'live', state })
  const live = new LiveCapture(options, decode, { pool, filler, notify })
  post({ kind: 'opened', bytesTotal: 0 })
  raisePriority()
  warmUp(decode)
  const fault = live.run()
  filler.finish(0)
  post({ kind: 'ended', bytesRead: 0, damage: fault && plainFault(fault) })
}

/**
 * Decodes each round before sending it. If the rows area is full, this thread waits until the rows
 * were read.
 */
function decodeHere(options: DecodeOptions, pool: BatchPool): SendRound {
  const decoder = new BatchDecoder(0, options)
  return (round) => {
    const order = parentPort ? (receiveMessageOnPort(parentPort)?.message as InlineOrder | undefined) : undefined
    if (order !== undefined) {
      decoder.useTrie(order.trie)
      post({ kind: 'trieTaken' })
    }
    const batch = pool.batch(round.batch)
    let done = decoder.decode(batch)
    post({ kind: 'round', round, done })
    while (!done && pool.awaitRunAgain()) {
      done = decoder.decode(batch)
      post({ kind: 'decoded', done })
    }
  }
}

function postRound(round: Round): void {
  post({ kind: 'round', round })
}

function post(message: CaptureMessage): void {
  parentPort?.postMessage(message)
}

await run()
