import { parentPort, workerData } from 'node:worker_threads'
import { Fault, type FaultCode } from '../../engine/process/error-codes.ts'
import { STOP_CHECK_MS } from '../limits.ts'
import { BatchPool, type SharedPool } from './batch-pool.ts'
import { CaptureFile } from './capture-file.ts'
import { feedFile } from './feed-file.ts'
import { LiveCapture, type LiveOptions } from './live.ts'
import { type Round, RoundFiller } from './round.ts'

/** Where frames come from. */
export type CaptureSource =
  | { readonly kind: 'file'; readonly path: string }
  | ({ readonly kind: 'interface' } & LiveOptions)

export interface CaptureThreadData {
  readonly source: CaptureSource
  readonly pool: SharedPool
  /** What a live capture lets through. */
  readonly dnsPorts: readonly number[]
  readonly tlsPorts: readonly number[]
}

/** A Fault as it crosses threads, where an error loses its class. */
export interface PlainFault {
  readonly code: FaultCode
  readonly message: string
}

/** What the thread says, in this order: failed; or opened, any number of rounds, ended. */
export type CaptureMessage =
  | { readonly kind: 'failed'; readonly fault: PlainFault }
  | { readonly kind: 'opened'; readonly bytesTotal: number }
  | { readonly kind: 'round'; readonly round: Round }
  | { readonly kind: 'ended'; readonly bytesRead: number; readonly damage: PlainFault | undefined }

/** The thread: opens the source and fills batches until the source or the observation ends. It blocks, and does nothing else. */
async function capture(data: CaptureThreadData): Promise<void> {
  const { source } = data
  const pool = new BatchPool(data.pool)
  try {
    if (source.kind === 'file') await captureFile(source.path, pool)
    else captureInterface(source, data, pool)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    say({ kind: 'failed', fault: plain(error) })
  }
}

async function captureFile(path: string, pool: BatchPool): Promise<void> {
  // A pipe that nobody writes to is waited for until a stop is asked for. In a thread, exit() ends the thread.
  const watch = setInterval(() => pool.stopped && process.exit(), STOP_CHECK_MS)
  const file = await CaptureFile.open(path).finally(() => clearInterval(watch))
  const { source } = file
  say({ kind: 'opened', bytesTotal: source.bytesTotal })
  // Only a file that is read again has positions, and a pipe's names are wanted at once.
  const filler = new RoundFiller(pool, { whenExhausted: 'wait', holdBack: !source.live }, sayRound)
  try {
    await feedFile(file, pool, filler)
  } finally {
    file.close()
  }
  const damage = file.damage && plain(new Fault('CAPTURE_DAMAGED', `${path}: ${file.damage}`))
  say({ kind: 'ended', bytesRead: source.bytesRead, damage: damage || undefined })
}

function captureInterface(options: LiveOptions, ports: CaptureThreadData, pool: BatchPool): void {
  const live = new LiveCapture(options, ports.dnsPorts, ports.tlsPorts)
  say({ kind: 'opened', bytesTotal: 0 })
  const filler = new RoundFiller(pool, { whenExhausted: 'drop', holdBack: false }, sayRound)
  const lost = live.run(pool, filler)
  filler.finish(0)
  say({ kind: 'ended', bytesRead: 0, damage: lost && plain(lost) })
}

function plain(fault: Fault): PlainFault {
  return { code: fault.code, message: fault.message }
}

function sayRound(round: Round): void {
  say({ kind: 'round', round })
}

function say(message: CaptureMessage): void {
  parentPort?.postMessage(message)
}

await capture(workerData as CaptureThreadData)
