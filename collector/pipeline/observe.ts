import { strict as assert } from 'node:assert'
import { deferredFailure } from '../../engine/kernel/process/deferred.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import type { Network } from '../../engine/kernel/process/network.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { allocatePool, BatchPool, resetPool, type SharedPool } from '../batch/batch-pool.ts'
import type { CounterName } from '../batch/counters.ts'
import type { PacketClassName } from '../batch/packet-class.ts'
import type { LiveState } from '../capture/live.ts'
import type { DecodeOptions } from '../decode/decode-batch.ts'
import { DEFAULT_PORTS, type ServerPorts, serverPorts } from '../decode/ports.ts'
import type { RowConsumer } from '../decode/row-consumer.ts'
import {
  BATCH_FRAME_BYTES,
  BATCH_LIST_FRAMES,
  BATCH_ROW_BYTES,
  BATCHES,
  LANES_MAX,
  LIVE_BATCH_FRAME_BYTES,
  LIVE_BATCH_LIST_FRAMES,
  LIVE_BATCH_ROW_BYTES,
  LIVE_BATCHES,
} from '../limits.ts'
import { RESOLVERS } from '../visibility.ts'
import type { CaptureMessage, CaptureSource, CaptureThreadData } from './capture-thread.ts'
import { CaptureWorker } from './capture-worker.ts'
import { type DecodeLane, Delivery, NameList, type OnNames } from './delivery.ts'
import { InlineLane } from './inline-lane.ts'
import type { DecodeWorkerData } from './worker-data.ts'

export type { PacketClassName } from '../batch/packet-class.ts'
export type { ObservedName } from '../decode/name-rows.ts'
export type { CaptureSource } from './capture-thread.ts'

export interface ObserveCounts {
  /** Decoded frames: the sum of all classes. */
  readonly frames: number
  /** Their captured bytes. */
  readonly bytes: number
  readonly classes: Readonly<Record<PacketClassName, number>>
  /** Outcomes of ClientHellos, encrypted DNS, and the effects of the reassembly limits. */
  readonly counters: Readonly<Record<CounterName, number>>
  /** Names seen: matched + unmatched. */
  readonly names: number
  readonly matched: number
  readonly unmatched: number
  /** Names that were not delivered because they had been delivered before. */
  readonly repeated: number
}

export interface ObserveOptions extends Partial<ServerPorts> {
  /** The compiled registry, from compileTrie(). */
  readonly trie: SharedArrayBuffer
  /**
   * Number of decode workers. With 0 the capture thread also decodes, for machines with one or two
   * cores and little memory.
   */
  readonly lanes: number
  /** Deliver unmatched names too. */
  readonly everyName?: boolean
  /** Deliver unmatched names that look like AI services. */
  readonly candidates?: boolean
  /**
   * Frames of the source whose names were delivered before. They are decoded again, because later
   * packets may depend on them, but not delivered.
   */
  readonly deliveredFrames?: number
  /** Networks whose PROXY headers are believed. By default none. */
  readonly loadBalancers?: readonly Network[]
  readonly onProgress?: (bytesRead: number, bytesTotal: number) => void
  /**
   * Stops waiting for a source that does not open, such as a pipe without a writer. The observation
   * is then empty and `done` resolves.
   */
  readonly cancel?: Promise<unknown>
  /** A thread that was constructed early. By default, a new one. */
  readonly thread?: CaptureWorker
  /** Limits of the pool, for tests. limits.ts has the defaults. */
  readonly pool?: PoolSizes
  /**
   * The memory of filePool(), for reading files one after the other. The memory of a thread's pool
   * returns to the system only when it is garbage-collected, which may be many files later.
   */
  readonly memory?: SharedPool
}

interface PoolSizes {
  readonly batches?: number
  readonly frameBytes?: number
  readonly rowBytes?: number
}

export interface Observation {
  /** Updated while the observation runs. */
  readonly counts: ObserveCounts
  /** State of a live capture, updated once a second and at its end. Undefined for a file. */
  readonly live: LiveState | undefined
  /** Age of `live`, in milliseconds. */
  readonly liveAgeMs: number
  /**
   * Resolves when every name was delivered, with the Fault that ended the source early, if any.
   * Rejects if onNames threw.
   */
  readonly done: Promise<{ damage?: Fault }>
  /** Switches to another registry from compileTrie(). Resolves when it is in use. */
  useTrie(trie: SharedArrayBuffer): Promise<void>
  /** Stops capturing. Captured packets are still delivered. */
  stop(): Promise<void>
}

const FILE_POOL = {
  batches: BATCHES,
  frameBytes: BATCH_FRAME_BYTES,
  rowBytes: BATCH_ROW_BYTES,
  listFrames: BATCH_LIST_FRAMES,
}
const LIVE_POOL = {
  batches: LIVE_BATCHES,
  frameBytes: LIVE_BATCH_FRAME_BYTES,
  rowBytes: LIVE_BATCH_ROW_BYTES,
  listFrames: LIVE_BATCH_LIST_FRAMES,
}

/**
 * Observes the names in a capture file or on an interface. Like observeRows(), with an object for
 * each name.
 */
export function observe(
  source: CaptureSource,
  options: ObserveOptions & { readonly onNames: OnNames },
): Promise<Observation> {
  return observeRows(source, options, new NameList(options.onNames))
}

/**
 * Observes the names in a capture file or on an interface: capture thread -> batches -> decode
 * workers -> rows -> consumer. Rejects with a Fault if the source cannot be opened.
 */
export async function observeRows(
  source: CaptureSource,
  options: ObserveOptions,
  consumer: RowConsumer,
): Promise<Observation> {
  const { lanes } = options
  assert(
    Number.isInteger(lanes) && lanes >= 0 && lanes <= LANES_MAX,
    `lanes: found ${lanes}, expected 0 to ${LANES_MAX}`,
  )
  const shared = options.memory ?? poolFor(source.kind, lanes, options.pool)
  resetPool(shared)
  const pool = new BatchPool(shared)
  const decode: DecodeOptions = {
    trie: options.trie,
    resolvers: compileTrie(RESOLVERS),
    everyName: options.everyName ?? false,
    candidates: options.candidates ?? false,
    ...serverPorts({ ...DEFAULT_PORTS, ...options }),
    loadBalancers: options.loadBalancers ?? [],
  }
  const threadData: CaptureThreadData = { source, pool: shared, decode, decodeHere: lanes === 0 }
  const thread = options.thread ?? new CaptureWorker()
  thread.start(threadData)
  const failure = deferredFailure()
  // The lanes start while the source is being opened.
  const inline = new InlineLane(pool, (order) => thread.order(order))
  const decoders =
    lanes === 0 ? [inline] : await startLanes(lanes, { ...decode, batches: shared.batches }, failure.reject)
  const delivery = new Delivery(pool, decoders, options.deliveredFrames ?? 0, consumer)
  const { counts } = delivery
  const opened = await Promise.race([thread.first(), ...(options.cancel ? [options.cancel.then(() => undefined)] : [])])
  if (opened === undefined) {
    // The thread ends by itself. Terminating a thread that is loading its modules aborts the
    // process (Node 20).
    pool.stop()
    await Promise.all([thread.exited, ...decoders.map((lane) => lane.stop())])
    return {
      counts,
      live: undefined,
      liveAgeMs: 0,
      done: Promise.resolve({}),
      useTrie: async () => {},
      stop: async () => {},
    }
  }
  if (opened.kind !== 'opened') {
    await Promise.all([thread.exited, ...decoders.map((lane) => lane.stop())])
    if (opened.kind === 'failed') throw new Fault(opened.fault.code, opened.fault.message)
    throw new Error(`capture thread: found "${opened.kind}" as its first message`)
  }

  let live: LiveState | undefined
  let liveMs = performance.now()
  const delivered = deliverAll(thread, delivery, {
    decoded: (done) => inline.decoded(done),
    trieTaken: () => inline.trieTaken(),
    live: (state) => {
      live = state
      liveMs = performance.now()
    },
    progress: (bytesRead) => options.onProgress?.(bytesRead, opened.bytesTotal),
  })
  const done = Promise.race([delivered, failure.promise])
    .finally(() => pool.abandon())
    .finally(() => Promise.all(decoders.map((lane) => lane.stop())))
  // The caller may await `done` later.
  done.catch(() => {})
  return {
    counts,
    get live() {
      return live
    },
    get liveAgeMs() {
      return performance.now() - liveMs
    },
    done,
    async useTrie(trie) {
      await Promise.all(decoders.map((lane) => lane.useTrie(trie)))
    },
    async stop() {
      pool.stop()
      // The caller that awaits `done` receives its error.
      await done.catch(() => {})
    },
  }
}

/** Memory for files that are observed one after the other with this number of lanes. */
export function filePool(lanes: number): SharedPool {
  return poolFor('file', lanes)
}

function poolFor(kind: CaptureSource['kind'], lanes: number, given: PoolSizes = {}): SharedPool {
  const { batches, ...sizes } = { ...(kind === 'file' ? FILE_POOL : LIVE_POOL), ...given }
  return allocatePool(batches, Math.max(1, lanes), sizes)
}

/** Imported only if there are lanes: the thread pool takes 9 MB. */
async function startLanes(
  lanes: number,
  data: Omit<DecodeWorkerData, 'lane'>,
  onFailure: (error: Error) => void,
): Promise<DecodeLane[]> {
  const { Lane } = await import('./lane.ts')
  return Array.from({ length: lanes }, (_lane, lane) => new Lane({ ...data, lane }, onFailure))
}

/** Receives the capture thread's messages other than rounds. */
interface Listener {
  decoded(done: boolean): void
  trieTaken(): void
  live(state: LiveState): void
  progress(bytesRead: number): void
}

/** Delivers the thread's rounds until the thread has ended and all rounds are delivered. */
async function deliverAll(thread: CaptureWorker, delivery: Delivery, listener: Listener): Promise<{ damage?: Fault }> {
  let rounds = Promise.resolve()
  let ended: Extract<CaptureMessage, { kind: 'ended' }> | undefined
  await new Promise<void>((resolve, reject) => {
    thread.exited.then(resolve, reject)
    thread.open((message) => {
      if (message.kind === 'ended') ended = message
      if (message.kind === 'live') listener.live(message.state)
      if (message.kind === 'decoded') listener.decoded(message.done)
      if (message.kind === 'trieTaken') listener.trieTaken()
      if (message.kind !== 'round') return
      const { round, done } = message
      if (done !== undefined) listener.decoded(done)
      // All lanes start decoding at once. Delivery is in the order of the rounds.
      const decoding = delivery.decode(round)
      rounds = rounds.then(async () => {
        await delivery.deliver(round, decoding)
        listener.progress(round.bytesRead)
      })
      rounds.catch(reject)
    })
  })
  await rounds
  if (ended === undefined) throw new Error('the capture thread ended without a result')
  listener.progress(ended.bytesRead)
  return ended.damage === undefined ? {} : { damage: new Fault(ended.damage.code, ended.damage.message) }
}
