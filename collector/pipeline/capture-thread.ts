import { readFileSync, readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { Fault, type PlainFault, plainFault } from '../../engine/kernel/process/error-codes.ts'
import { allocatePool, BatchPool, type SharedPool } from '../batch/batch-pool.ts'
import { CaptureFile, feedFile } from '../capture/capture-file.ts'
import { LiveCapture, type LiveOptions, type LiveState } from '../capture/live.ts'
import { type Round, RoundFiller } from '../capture/round.ts'
import { BatchDecoder, type DecodeOptions } from '../decode/decode-batch.ts'
import { Layers } from '../decode/layers.ts'
import type { ServerPorts } from '../decode/ports.ts'
import { UdpTunnels } from '../decode/tunnel.ts'
import { CAPTURE_NICE, STOP_CHECK_MS, WARM_UP_ROUNDS } from '../limits.ts'
import type { InlineOrder } from './inline-lane.ts'

interface FileSource {
  readonly kind: 'file'
  readonly path: string
  /** Of the path, from openCapture(). undefined: the thread opens the path. */
  readonly descriptor?: number | undefined
}

/** The source of the frames. */
export type CaptureSource = FileSource | ({ readonly kind: 'interface' } & LiveOptions)

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
    if (source.kind === 'file') await captureFile(source, data.decode, pool, send)
    else captureInterface(source, data.decode, pool, send)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    post({ kind: 'failed', fault: plainFault(error) })
  }
}

type SendRound = (round: Round) => void

async function captureFile(
  { path, descriptor }: FileSource,
  decode: DecodeOptions,
  pool: BatchPool,
  send: SendRound,
): Promise<void> {
  // Opening a pipe without a writer waits until a stop is requested. In a thread, exit() ends only
  // the thread.
  const watch = setInterval(() => pool.stopped && process.exit(), STOP_CHECK_MS)
  const file = await CaptureFile.open(path, descriptor).finally(() => clearInterval(watch))
  const { source } = file
  post({ kind: 'opened', bytesTotal: source.bytesTotal })
  // Only a regular file has positions to resume at. Names from a pipe are needed at once.
  const filler = new RoundFiller(
    pool,
    { whenExhausted: 'wait', holdBack: !source.live, layers: layersOf(decode) },
    send,
  )
  try {
    await feedFile(file, pool, filler)
  } finally {
    file.close()
  }
  const damage = file.damage && plainFault(new Fault('CAPTURE_DAMAGED', `${path}: ${file.damage}`))
  post({ kind: 'ended', bytesRead: source.bytesRead, damage: damage || undefined })
}

function captureInterface(options: LiveOptions, decode: DecodeOptions, pool: BatchPool, send: SendRound): void {
  const filler = new RoundFiller(pool, { whenExhausted: 'drop', holdBack: false, layers: layersOf(decode) }, send)
  const notify = (state: LiveState) => post({ kind: 'live', state })
  const live = new LiveCapture(options, decode, { pool, filler, notify })
  post({ kind: 'opened', bytesTotal: 0 })
  raisePriority()
  warmUp(decode)
  const fault = live.run()
  filler.finish(0)
  post({ kind: 'ended', bytesRead: 0, damage: fault && plainFault(fault) })
}

function layersOf(ports: ServerPorts): Layers {
  return new Layers(new UdpTunnels(ports))
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

/**
 * Raises the priority of the calling thread, if permitted (root, CAP_SYS_NICE). The ring holds 200
 * ms of a busy link, and a capture thread that is scheduled later loses packets. Linux keeps a nice
 * value per thread (sched(7)).
 */
function raisePriority(): void {
  try {
    // The link's target is PID/task/TID of the reading thread.
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
    setPriority(thread, CAPTURE_NICE)
  } catch {
    // Without the priority a busy machine loses packets sooner. Nothing can be done about that.
  }
}

/**
 * A capture of everything that is decoded, also used by `posture-collector selftest`. Classic pcap,
 * little-endian, Ethernet.
 */
const GOLDEN = new URL('../../../collector/selftest/golden.pcap', import.meta.url)
const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const ETHERNET = 1
const SIZES = { frameBytes: 128 * 1024, rowBytes: 1024 * 1024, listFrames: 1024 }

/**
 * Runs the packet path over the golden capture until V8 has compiled it. Otherwise the first second
 * of a busy link would run in the interpreter, which is ten times slower. The names are discarded.
 * Takes about 50 ms, while packets wait in the ring.
 */
function warmUp(options: DecodeOptions): void {
  const capture = readGolden()
  if (capture === undefined) return
  const pool = new BatchPool(allocatePool(1, 1, SIZES))
  // Every name writes a row, as a match does.
  const decoder = new BatchDecoder(0, { ...options, everyName: true })
  const filler = new RoundFiller(pool, { whenExhausted: 'drop', holdBack: false }, (round) => {
    const batch = pool.batch(round.batch)
    while (!decoder.decode(batch));
    pool.free(batch)
  })
  const frames = framesOf(capture)
  for (let round = 0; round < WARM_UP_ROUNDS; round++) {
    for (const { bytes, words, seconds } of frames) filler.put(bytes, words, bytes.length, seconds, 0, ETHERNET)
    filler.flush(0)
  }
}

/** Copies each frame to its own words, as a live capture provides it. */
function framesOf(capture: Buffer): { bytes: Buffer; words: Uint32Array; seconds: number }[] {
  const frames = []
  for (let at = FILE_HEADER_BYTES; at + RECORD_HEADER_BYTES <= capture.length; ) {
    const captured = capture.readUInt32LE(at + 8)
    const start = at + RECORD_HEADER_BYTES
    const words = new Uint32Array((captured + 3) >> 2)
    const bytes = Buffer.from(words.buffer, 0, captured)
    capture.copy(bytes, 0, start, start + captured)
    frames.push({ bytes, words, seconds: capture.readUInt32LE(at) })
    at = start + captured
  }
  return frames
}

/** Without the capture only the start is slower. */
function readGolden(): Buffer | undefined {
  try {
    return readFileSync(GOLDEN)
  } catch {
    return undefined
  }
}
