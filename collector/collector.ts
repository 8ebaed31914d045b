import { STANDARD_INPUT } from '../engine/process/byte-source.ts'
import { Fault } from '../engine/process/error-codes.ts'
import type { Logger } from '../engine/process/log.ts'
import { within } from '../engine/process/shutdown.ts'
import type { Catalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { latestTimeMs } from './capture/capture-file.ts'
import { identityOf } from './capture/file-identity.ts'
import { LinkWatch } from './capture/link-watch.ts'
import type { LiveOptions } from './capture/live.ts'
import { type CollectorSettings, lanesFor, outboxLimits } from './config.ts'
import { coverageOf } from './coverage.ts'
import { CoverageReporter, coverageInstance } from './forward/coverage-reporter.ts'
import type { ForwardEnd } from './forward/forward-loop.ts'
import { Ways } from './forward/ways.ts'
import { COLLECTOR_QUIET_TICK_MS, COLLECTOR_TICK_MS } from './limits.ts'
import { Aggregate } from './outbox/aggregate.ts'
import { MatchWriter } from './outbox/match-writer.ts'
import { Outbox } from './outbox/outbox.ts'
import { OUTBOX_IN_MEMORY } from './outbox/outbox-limits.ts'
import { OutboxLock } from './outbox/outbox-lock.ts'
import { type Observation, observeRows } from './pipeline/observe.ts'
import type { CollectorStatus } from './status.ts'

const SAY_DROPPED_MS = 60_000

export type CollectorSource =
  | {
      readonly kind: 'interface'
      readonly live: LiveOptions /** Called when the interface is open. */
      readonly onOpen?: () => void
    }
  | {
      readonly kind: 'file'
      readonly path: string
      /** Times are moved so that the last packet was seen now. */
      readonly shiftToNow: boolean
      readonly onProgress?: (bytesRead: number, bytesTotal: number) => void
    }

/** The collector's stages wired together: source, decode, aggregate, outbox, forwarder. */
export class Collector {
  readonly #settings: CollectorSettings
  readonly #log: Logger
  readonly #source: CollectorSource
  readonly #outbox: Outbox
  readonly #ways: Ways
  readonly #found: number
  readonly #startedMs = performance.now()
  readonly #platforms = new Set<string>()
  /** Matches whose platforms are in the set. */
  #notedMatches = 0
  #catalog: Catalog
  #aggregate: Aggregate
  #writer: MatchWriter
  #link: LinkWatch | undefined
  #lock: OutboxLock | undefined
  #observation: Observation | undefined
  #reporter: CoverageReporter | undefined
  #ended = false
  #stopped = false
  #said = { dropped: 0, atMs: Number.NEGATIVE_INFINITY }
  #onBusy: () => void = () => {}
  #open: () => void = () => {}
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve
  })
  /** Ends the wait for a source that does not open. */
  #giveUp: () => void = () => {}
  readonly #givenUp = new Promise<void>((resolve) => {
    this.#giveUp = resolve
  })

  /** @throws Fault of the outbox; USAGE where the authority's file cannot be read. */
  constructor(settings: CollectorSettings, source: CollectorSource, catalog: Catalog, log: Logger) {
    this.#settings = settings
    this.#source = source
    this.#catalog = catalog
    this.#log = log
    this.#outbox = new Outbox(settings.outbox, outboxLimits(settings))
    if (settings.outbox === OUTBOX_IN_MEMORY) {
      log.warn('--outbox memory: what is not forwarded when the collector ends or crashes is lost')
    }
    this.#found = this.#outbox.waiting
    this.#ways = new Ways(settings, this.#outbox, log, { probes: source.kind === 'interface' })
    this.#aggregate = new Aggregate(0)
    this.#writer = this.#writerOf(undefined)
  }

  /**
   * Runs until the source has ended and every event is with the service, or until stopped.
   *
   * @returns the Fault that ended the source early, if one did; what stood before it was used.
   * @throws Fault STORE_IN_USE. TOKEN_REFUSED; the events then wait in the outbox. Faults of the source.
   */
  async run(): Promise<Fault | undefined> {
    this.#lock = await OutboxLock.take(this.#settings.outbox)
    // Not before the source is open: who mistyped its name is not told of a service besides.
    const forwarding = this.#opened.then(() => this.#ways.run(this.#reporter))
    try {
      const damage = await this.#watch(forwarding)
      this.#reporter?.finish()
      this.#ways.finish()
      const ended = await forwarding
      if (ended.kind === 'unauthorised') throw tokenRefused(ended.why, this.#outbox.waiting)
      return damage
    } finally {
      this.#ways.stop()
      this.#open()
      await forwarding
      this.#ended = true
      await within(1000, this.#ways.close())
    }
  }

  /** Releases the outbox; no figures are told after this. */
  async close(): Promise<void> {
    await this.#outbox.close()
    await this.#lock?.release()
  }

  /** Stops the source, gives what waits `deadlineMs` to be forwarded, and ends the run. What then waits stays on disk. */
  async drain(deadlineMs: number): Promise<void> {
    this.#stopped = true
    this.#writer.stop()
    this.#giveUp()
    setTimeout(() => {
      this.#ways.stop()
      void this.#ways.close()
    }, deadlineMs).unref()
    await this.#observation?.stop()
  }

  /** Matches by another registry from now on. */
  async useCatalog(catalog: Catalog): Promise<void> {
    // Before the source is open nothing is matched, and what opens it takes the registry that is known then.
    await this.#opened
    await this.#observation?.useTrie(compileTrie(catalog.rules))
    this.#notePlatforms(this.#writer.takeMatchedRules(catalog.rules.length))
    this.#catalog = catalog
  }

  /** Whether the source is open, and so there are figures. */
  get started(): boolean {
    return this.#observation !== undefined
  }

  get status(): CollectorStatus {
    const observation = this.#observation
    if (observation === undefined) throw new Error('a status before anything was observed')
    const { matches, events, unwritten, closedEarly } = this.#aggregate
    if (matches !== this.#notedMatches) this.#notePlatforms(this.#writer.matchedRules)
    this.#notedMatches = matches
    return {
      source: this.#source.kind === 'file' ? this.#source.path : this.#source.live.name,
      uptimeSeconds: Math.floor((performance.now() - this.#startedMs) / 1000),
      ended: this.#ended,
      observed: observation.counts,
      live: observation.live,
      liveAgeMs: observation.liveAgeMs,
      link: this.#link?.state,
      matches,
      matchesByMethod: this.#writer.matchesByMethod,
      platforms: this.#platforms.size,
      lastMatchMs: this.#writer.lastMatchMs,
      events: {
        made: events,
        found: this.#found,
        unwritten,
        waiting: this.#outbox.waiting,
        dropped: this.#outbox.dropped,
        closedEarly,
        oldestMs: this.#outbox.oldestWrittenMs,
        outboxBytes: this.#outbox.footprintBytes,
      },
      ways: this.#ways.status,
      coverageReports: this.#reporter?.counts ?? { sent: 0, failed: 0 },
      deciding: this.#ways.deciding,
      outboxFull: this.#writer.full,
    }
  }

  async #watch(forwarding: ReturnType<Ways['run']>): Promise<Fault | undefined> {
    const source = this.#source
    const file = source.kind === 'file' ? await this.#fileOf(source) : undefined
    this.#aggregate = new Aggregate(this.#settings.aggregateSeconds * 1000, file?.shiftMs)
    this.#writer = this.#writerOf(file?.identity)
    const { decodeWorkers, dnsPorts, tlsPorts } = this.#settings
    const observation = await observeRows(
      source.kind === 'file' ? { kind: 'file', path: source.path } : { kind: 'interface', ...source.live },
      {
        trie: compileTrie(this.#catalog.rules),
        lanes: lanesFor(source.kind, decodeWorkers),
        dnsPorts,
        tlsPorts,
        deliveredFrames: file?.deliveredFrames ?? 0,
        giveUp: this.#givenUp,
        ...(source.kind === 'file' && source.onProgress ? { onProgress: source.onProgress } : {}),
      },
      this.#writer,
    )
    this.#observation = observation
    this.#reporter = new CoverageReporter({
      instance: coverageInstance(file?.identity),
      counters: () => coverageOf({ observed: observation.counts, live: observation.live, link: this.#link?.state }),
      log: this.#log,
    })
    this.#open()
    if (this.#stopped) void observation.stop()
    // Without a valid token there is no point in watching on: the run ends, and says so.
    const stopUnauthorised = ({ kind }: ForwardEnd) => (kind === 'unauthorised' ? observation.stop() : undefined)
    // A fault of forwarding ends the run, too; it is told where the run awaits it.
    forwarding.then(stopUnauthorised, () => observation.stop())
    let stopTicking: () => void = () => {}
    try {
      // A file can be read again, and is as fast as it is read; what else comes, comes once and when it happens.
      if (file?.identity !== undefined) return (await observation.done).damage
      const ticking = this.#tick(source, observation)
      stopTicking = ticking.stop
      return (await Promise.race([observation.done, ticking.failed])).damage
    } finally {
      stopTicking()
      await observation.stop()
      await this.#writer.finish()
    }
  }

  /** What a capture file needs to be read on, and to be shifted. */
  async #fileOf({ path, shiftToNow }: Extract<CollectorSource, { kind: 'file' }>) {
    // What comes through a pipe comes once: there is nothing to read on.
    const identity = path === STANDARD_INPUT ? undefined : identityOf(path, this.#outbox.sources)
    const deliveredFrames = identity === undefined ? 0 : this.#outbox.framesDone(identity)
    if (deliveredFrames > 0)
      this.#log.info({ frames: deliveredFrames }, 'the capture file was read to this frame before, continuing')
    const shiftMs = shiftToNow ? Date.now() - ((await latestTimeMs(path)) ?? 0) : 0
    return { identity, deliveredFrames, shiftMs }
  }

  /** What has its time while packets come as they happen. */
  #tick(source: CollectorSource, observation: Observation) {
    const link = source.kind === 'interface' ? this.#watchLink(source) : undefined
    let fail: (error: unknown) => void = () => {}
    const failed = new Promise<never>((_resolve, reject) => {
      fail = reject
    })
    failed.catch(() => {})
    let seconds = 0
    let timer: NodeJS.Timeout | undefined
    let stopped = false
    const tickIn = (ms: number): void => {
      clearTimeout(timer)
      if (!stopped) timer = setTimeout(tick, ms)
    }
    const tick = (): void => {
      const nowMs = performance.now()
      // While the disk is full this lasts; the rest goes on. A write that fails ends the run, as one does that a packet caused.
      Promise.resolve()
        .then(() => this.#writer.tick(nowMs))
        .catch(fail)
      const second = Math.floor(nowMs / 1000)
      if (second !== seconds) {
        seconds = second
        try {
          this.#outbox.dropExpired()
        } catch (error) {
          fail(error)
        }
        this.#sayDropped()
        link?.second(observation.live?.received ?? 0, namesAndHellos(observation), nowMs)
      }
      tickIn(this.#writer.busy ? COLLECTOR_TICK_MS : COLLECTOR_QUIET_TICK_MS)
    }
    tickIn(0)
    this.#onBusy = () => tickIn(COLLECTOR_TICK_MS)
    const stop = (): void => {
      stopped = true
      clearTimeout(timer)
    }
    return { failed, stop }
  }

  #watchLink(source: Extract<CollectorSource, { kind: 'interface' }>): LinkWatch {
    source.onOpen?.()
    this.#link = new LinkWatch(source.live.name, performance.now())
    return this.#link
  }

  #writerOf(source: string | undefined): MatchWriter {
    return new MatchWriter(this.#aggregate, this.#outbox, {
      source,
      rules: this.#catalog.rules.length,
      onFull: (reason) => this.#log.error({ reason }, 'the outbox has no space, the source waits'),
      onBusy: () => this.#onBusy(),
      onWritten: () => {
        this.#ways.look()
        this.#sayDropped()
      },
    })
  }

  /** At most once a minute. */
  #sayDropped(): void {
    const { full, tooOld, damaged } = this.#outbox.dropped
    const nowMs = performance.now()
    const dropped = full + tooOld + damaged
    if (dropped === this.#said.dropped || nowMs - this.#said.atMs < SAY_DROPPED_MS) return
    this.#said = { dropped, atMs: nowMs }
    this.#log.error({ full, tooOld, damaged }, 'events were dropped from the outbox, total so far')
  }

  #notePlatforms(rules: readonly number[]): void {
    for (const rule of rules) {
      const platform = this.#catalog.rules[rule]?.platform.name
      if (platform !== undefined) this.#platforms.add(platform)
    }
  }
}

/** What a healthy link shows of: queries, and ClientHellos with a name or without. */
function namesAndHellos({ counts }: Observation): number {
  const { helloNoName, helloIncomplete, helloQuicUnknownVersion } = counts.counters
  return counts.names + helloNoName + helloIncomplete + helloQuicUnknownVersion
}

function tokenRefused(why: string, waiting: number): Fault {
  return new Fault('TOKEN_REFUSED', `${why}; ${waiting} events wait in the outbox until a valid --token is given`)
}
