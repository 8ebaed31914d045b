import { parentPort, workerData } from 'node:worker_threads'
import { Fault, type FaultCode } from '../../engine/process/error-codes.ts'
import { BatchPool, type SharedPool } from './batch-pool.ts'
import { LiveCapture, type LiveOptions } from './live.ts'
import { openPcapFile, withPath } from './pcap-file.ts'
import { type Round, RoundFiller } from './round.ts'

/** Where frames come from. */
export type CaptureSource =
  | {
      readonly kind: 'file'
      readonly path: string /** Frames that were delivered before. */
      readonly skipFrames?: number
    }
  | ({ readonly kind: 'interface' } & LiveOptions)

export interface CaptureThreadData {
  readonly source: CaptureSource
  readonly pool: SharedPool
  readonly lanes: number
}

/** A Fault as it crosses threads, where an error loses its class. */
export interface PlainFault {
  readonly code: FaultCode
  readonly message: string
}

/** What the thread says, in this order: failed; or opened, any number of rounds, ended. */
export type CaptureMessage =
  | { readonly kind: 'failed'; readonly fault: PlainFault }
  | { readonly kind: 'opened'; readonly linkType: number; readonly bytesTotal: number }
  | { readonly kind: 'round'; readonly round: Round }
  | { readonly kind: 'ended'; readonly bytesRead: number; readonly damage: PlainFault | undefined }

/** The thread: opens the source and fills batches until the source or the observation ends. It blocks, and does nothing else. */
function capture({ source, pool: shared, lanes }: CaptureThreadData): void {
  const pool = new BatchPool(shared)
  if (source.kind === 'file') captureFile(source.path, source.skipFrames ?? 0, pool, lanes)
  else captureInterface(source, pool, lanes)
}

function captureFile(path: string, skipFrames: number, pool: BatchPool, lanes: number): void {
  const opened = orFailed(() => openPcapFile(path))
  if (opened === undefined) return
  const { file, bytesTotal } = opened
  say({ kind: 'opened', linkType: file.linkType, bytesTotal })
  let damage: Fault | undefined
  try {
    for (let skipped = 0; skipped < skipFrames && !pool.stopped && file.next(); skipped++);
    const filler = new RoundFiller(pool, lanes, file.linkType, skipFrames, 'wait', sayRound)
    while (file.next()) {
      const put = filler.put(
        file.bytes,
        file.view,
        file.offset,
        file.captured,
        file.original,
        file.seconds,
        file.nanoseconds,
        file.position,
      )
      if (!put) break
    }
    filler.flush(file.position)
    damage = file.damage && (withPath(path, file.damage) as Fault)
  } catch (error) {
    // A read error in the middle of the file: what was read is on its way.
    const fault = withPath(path, error)
    if (!(fault instanceof Fault)) throw fault
    damage = fault
  } finally {
    opened.close()
  }
  say({ kind: 'ended', bytesRead: file.position, damage: damage && plain(damage) })
}

function captureInterface(options: LiveOptions, pool: BatchPool, lanes: number): void {
  const live = orFailed(() => new LiveCapture(options))
  if (live === undefined) return
  say({ kind: 'opened', linkType: live.linkType, bytesTotal: 0 })
  const filler = new RoundFiller(pool, lanes, live.linkType, 0, 'drop', sayRound)
  const lost = live.run(pool, filler)
  filler.flush(0)
  say({ kind: 'ended', bytesRead: 0, damage: lost && plain(lost) })
}

/** The source, or undefined when it could not be opened and that was said. */
function orFailed<Source>(open: () => Source): Source | undefined {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    say({ kind: 'failed', fault: plain(error) })
    return undefined
  }
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

capture(workerData as CaptureThreadData)
