import { createHash } from 'node:crypto'
import { readSync } from 'node:fs'
import { deferredFailure } from '../engine/kernel/process/deferred.ts'
import type { Fault } from '../engine/kernel/process/error-codes.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { Catalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { Candidates } from './candidates.ts'
import { latestTimeMs, openCapture } from './capture/capture-file.ts'
import { LinkWatch } from './capture/link-watch.ts'
import type { LiveOptions } from './capture/live.ts'
import { type CollectorSettings, lanesFor } from './config.ts'
import { coverageOf } from './coverage.ts'
import { serverPorts } from './decode/ports.ts'
import { CoverageReporter, coverageInstance } from './forward/coverage-reporter.ts'
import { COLLECTOR_QUIET_TICK_MS, COLLECTOR_TICK_MS } from './limits.ts'
import { Aggregate } from './outbox/aggregate.ts'
import { MatchWriter } from './outbox/match-writer.ts'
import type { Outbox } from './outbox/outbox.ts'
import type { CaptureWorker } from './pipeline/capture-worker.ts'
import { type Observation, observeRows } from './pipeline/observe.ts'
import type { CollectorStatus } from './status.ts'

const HEAD_BYTES = 65_536
/**
 * A shorter file holds no distinguishing packet, so a shorter identity matches only a file of the
 * same length.
 */
const GROWN_BYTES_MIN = 128

/**
 * The identity of a capture file: the number of its first bytes, up to 64 KiB, and their SHA-256:
 * `4096 9f86d0…`. The identity survives renaming and copying. A file that has grown keeps its
 * earlier identity.
 *
 * @param known identities of files that were read before.
 * @throws Error of the system
 */
export function identityOf(descriptor: number, known: readonly string[]): string {
  const buffer = Buffer.alloc(HEAD_BYTES)
  // At a position, so that the file is still at its start for its reader.
  const head = buffer.subarray(0, readSync(descriptor, buffer, 0, HEAD_BYTES, 0))
  const hashes = new Map<number, string>()
  const hashOf = (bytes: number): string => {
    const hash = hashes.get(bytes) ?? createHash('sha256').update(head.subarray(0, bytes)).digest('hex')
    hashes.set(bytes, hash)
    return hash
  }
  const before = known
    .map((identity) => ({ identity, bytes: Number.parseInt(identity, 10) }))
    .filter(({ bytes }) => bytes === head.length || (bytes >= GROWN_BYTES_MIN && bytes < head.length))
    .sort((a, b) => b.bytes - a.bytes)
    .find(({ identity, bytes }) => identity.endsWith(hashOf(bytes)))
  return before?.identity ?? `${head.length} ${hashOf(head.length)}`
}

/** The AI platforms of all matches of a run, across changes of the registry. */
export class FoundPlatforms {
  readonly #names = new Set<string>()
  #catalog: Catalog
  /** Number of matches whose platforms are in the set. */
  #matches = 0

  constructor(catalog: Catalog) {
    this.#catalog = catalog
  }

  /**
   * Returns the number of platforms. `rules` returns the rules that matched so far. It is called
   * only if `matches` has changed.
   */
  count(matches: number, rules: () => readonly number[]): number {
    if (matches !== this.#matches) this.#add(rules())
    this.#matches = matches
    return this.#names.size
  }

  get catalog(): Catalog {
    return this.#catalog
  }

  /** Switches to another registry. `rules` are the rules that matched in the previous one. */
  useCatalog(catalog: Catalog, rules: readonly number[]): void {
    this.#add(rules)
    this.#catalog = catalog
  }

  #add(rules: readonly number[]): void {
    for (const rule of rules) {
      const platform = this.#catalog.rules[rule]?.platform.name
      if (platform !== undefined) this.#names.add(platform)
    }
  }
}

export interface TickerWork {
  /** Called at each tick, with the time of the monotonic clock in milliseconds. */
  readonly tick: (nowMs: number) => void | Promise<void>
  /** Called at the first tick of each second. */
  readonly second: (nowMs: number) => void
  /**
   * Selects the delay of the next tick: COLLECTOR_TICK_MS if busy, otherwise
   * COLLECTOR_QUIET_TICK_MS.
   */
  readonly isBusy: () => boolean
}

/** Runs the periodic work of a live source: often while there is work, rarely on a quiet link. */
export class Ticker {
  readonly #work: TickerWork
  readonly #failure = deferredFailure()
  #timer: NodeJS.Timeout | undefined
  #state: 'waiting' | 'running' | 'stopped' = 'waiting'
  #second = -1

  constructor(work: TickerWork) {
    this.#work = work
  }

  /**
   * Starts the ticks. The promise never resolves. It rejects with the error of the work, and the
   * ticks continue until stop().
   */
  start(): Promise<never> {
    if (this.#state === 'waiting') this.#state = 'running'
    this.#tickIn(0)
    return this.#failure.promise
  }

  /**
   * Call when there is work after there was none. Has no effect before start() and after stop().
   */
  wake(): void {
    this.#tickIn(COLLECTOR_TICK_MS)
  }

  stop(): void {
    this.#state = 'stopped'
    clearTimeout(this.#timer)
  }

  #tickIn(ms: number): void {
    clearTimeout(this.#timer)
    if (this.#state === 'running') this.#timer = setTimeout(() => this.#tick(), ms)
  }

  #tick(): void {
    const nowMs = performance.now()
    // While the disk is full a tick does not finish, and further ticks follow meanwhile.
    void this.#run(() => this.#work.tick(nowMs))
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) {
      this.#second = second
      void this.#run(() => this.#work.second(nowMs))
    }
    this.#tickIn(this.#work.isBusy() ? COLLECTOR_TICK_MS : COLLECTOR_QUIET_TICK_MS)
  }

  async #run(work: () => void | Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#failure.reject(error)
    }
  }
}

interface InterfaceSource {
  readonly kind: 'interface'
  readonly live: LiveOptions
  /** Loads its modules already. By default, a new one. */
  readonly thread: CaptureWorker | undefined
  /** Called when the interface is open. */
  readonly onOpen?: () => void
}

interface FileSource {
  readonly kind: 'file'
  readonly path: string
  /** Shift times so that the last packet was seen now. */
  readonly shiftToNow: boolean
  readonly onProgress?: (bytesRead: number, bytesTotal: number) => void
}

export type CollectorSource = InterfaceSource | FileSource

interface WatchOptions {
  readonly settings: CollectorSettings
  readonly catalog: Catalog
  /** Not called before the source is open. */
  readonly outbox: () => Outbox
  readonly log: Logger
  /** Stops waiting for a source that does not open. */
  readonly cancel: Promise<void>
  /** Called when events were written to the outbox. */
  readonly onWritten: () => void
  /** Called about once a second to drop expired events, except while a capture file is read. */
  readonly onSecond: () => void
}

/** The part of the status that the watch provides. */
type WatchStatus = Pick<
  CollectorStatus,
  | 'observed'
  | 'live'
  | 'liveAgeMs'
  | 'link'
  | 'matches'
  | 'matchesByMethod'
  | 'platforms'
  | 'lastMatchMs'
  | 'outboxFull'
  | 'candidatesDropped'
>

/** An open source and the path of its matches to the outbox: observation, aggregate, writer. */
export class Watch {
  readonly reporter: CoverageReporter
  readonly #source: CollectorSource
  readonly #parts: WatchParts
  readonly #platforms: FoundPlatforms
  #link: LinkWatch | undefined

  private constructor(source: CollectorSource, parts: WatchParts, { catalog, log }: WatchOptions) {
    this.#source = source
    this.#parts = parts
    this.#platforms = new FoundPlatforms(catalog)
    const { observation, identity } = parts
    this.reporter = new CoverageReporter({
      instance: coverageInstance(identity),
      counters: () => coverageOf({ observed: observation.counts, live: observation.live, link: this.#link?.state }),
      registry: () => this.#platforms.catalog.version,
      candidates: parts.candidates,
      log,
    })
  }

  /** Resolves when the source is open, or after `cancel`. @throws Faults of the source. */
  static async open(source: CollectorSource, options: WatchOptions): Promise<Watch> {
    const { settings, catalog, outbox, log } = options
    const file = source.kind === 'file' ? await progressOf(source, outbox, log) : undefined
    const aggregate = new Aggregate(settings.aggregateSeconds * 1000, file?.shiftMs)
    const ticker = new Ticker({
      tick: (nowMs) => writer.tick(nowMs),
      second: (nowMs) => {
        options.onSecond()
        watch.#checkLink(nowMs)
      },
      isBusy: () => writer.busy,
    })
    const candidates = settings.candidates ? new Candidates() : undefined
    const writer = new MatchWriter(aggregate, outbox, {
      source: file?.identity,
      rules: catalog.rules.length,
      onFull: (reason) => log.error({ reason }, 'the outbox has no space, the source waits'),
      onBusy: () => ticker.wake(),
      onWritten: options.onWritten,
      candidates,
    })
    const observation = await observeRows(
      source.kind === 'file'
        ? { kind: 'file', path: source.path, descriptor: file?.descriptor }
        : { kind: 'interface', ...source.live },
      {
        trie: compileTrie(catalog.rules),
        candidates: settings.candidates,
        lanes: lanesFor(source.kind, settings.decodeWorkers),
        ...serverPorts(settings),
        loadBalancers: settings.loadBalancers,
        deliveredFrames: file?.deliveredFrames ?? 0,
        cancel: options.cancel,
        ...(source.kind === 'interface' && source.thread ? { thread: source.thread } : {}),
        ...(source.kind === 'file' && source.onProgress ? { onProgress: source.onProgress } : {}),
      },
      writer,
    )
    const watch = new Watch(
      source,
      { observation, aggregate, writer, ticker, candidates, identity: file?.identity },
      options,
    )
    return watch
  }

  /**
   * Runs until the source has ended or is stopped, then writes the remaining events.
   *
   * @returns the Fault that ended the source early, if any.
   */
  async run(): Promise<Fault | undefined> {
    const { observation, writer, ticker, identity } = this.#parts
    try {
      // A file can be read again, and paces itself. A live source delivers each packet once, when
      // it occurs.
      if (identity !== undefined) return (await observation.done).damage
      if (this.#source.kind === 'interface') {
        this.#source.onOpen?.()
        this.#link = new LinkWatch(this.#source.live.name, performance.now())
      }
      return (await Promise.race([observation.done, ticker.start()])).damage
    } finally {
      ticker.stop()
      await observation.stop()
      await writer.finish()
    }
  }

  /** Stops the source. Delivered matches are still written. */
  stop(): Promise<void> {
    return this.#parts.observation.stop()
  }

  /** Like stop(), without waiting for space on a full disk. */
  drain(): Promise<void> {
    this.#parts.writer.stop()
    return this.stop()
  }

  /** Switches to another registry. */
  async useCatalog(catalog: Catalog): Promise<void> {
    const { observation, writer } = this.#parts
    await observation.useTrie(compileTrie(catalog.rules))
    this.#platforms.useCatalog(catalog, writer.takeMatchedRules(catalog.rules.length))
  }

  get status(): WatchStatus {
    const { observation, aggregate, writer, candidates } = this.#parts
    const { matches } = aggregate
    return {
      observed: observation.counts,
      live: observation.live,
      liveAgeMs: observation.liveAgeMs,
      link: this.#link?.state,
      matches,
      matchesByMethod: writer.matchesByMethod,
      platforms: this.#platforms.count(matches, () => writer.matchedRules),
      lastMatchMs: writer.lastMatchMs,
      outboxFull: writer.full,
      candidatesDropped: candidates?.dropped ?? 0,
    }
  }

  /** Number of events created from matches, and of those not yet in the outbox. */
  get events(): Pick<CollectorStatus['events'], 'made' | 'unwritten' | 'closedEarly'> {
    const { events: made, unwritten, closedEarly } = this.#parts.aggregate
    return { made, unwritten, closedEarly }
  }

  #checkLink(nowMs: number): void {
    const { observation } = this.#parts
    this.#link?.second(observation.live?.received ?? 0, namesAndHellos(observation), nowMs)
  }
}

interface WatchParts {
  readonly observation: Observation
  readonly aggregate: Aggregate
  readonly writer: MatchWriter
  readonly ticker: Ticker
  readonly candidates: Candidates | undefined
  /** Identity of a capture file that can be read again. */
  readonly identity: string | undefined
}

/** Determines where to resume a capture file and how far to shift its times. */
async function progressOf({ path, shiftToNow }: FileSource, outboxOf: () => Outbox, log: Logger) {
  const descriptor = openCapture(path)
  const shiftMs = shiftToNow ? Date.now() - ((await latestTimeMs(path)) ?? 0) : 0
  // A pipe can be read only once, so its position is not stored.
  if (descriptor === undefined) return { descriptor, identity: undefined, deliveredFrames: 0, shiftMs }
  const outbox = outboxOf()
  const identity = identityOf(descriptor, outbox.sources)
  const deliveredFrames = outbox.framesDone(identity)
  if (deliveredFrames > 0)
    log.info({ frames: deliveredFrames }, 'the capture file was read to this frame before, continuing')
  return { descriptor, identity, deliveredFrames, shiftMs }
}

/**
 * Counts the messages that a healthy link must show: queries, and ClientHellos with or without a
 * name.
 */
function namesAndHellos({ counts }: Observation): number {
  const { helloNoName, helloIncomplete, helloQuicUnknownVersion } = counts.counters
  return counts.names + helloNoName + helloIncomplete + helloQuicUnknownVersion
}
