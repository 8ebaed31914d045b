import { createHash } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { Fault } from '../engine/process/error-codes.ts'
import type { Logger } from '../engine/process/log.ts'
import { within } from '../engine/process/shutdown.ts'
import type { Catalog } from '../registry/catalog.ts'
import { compileTrie } from '../registry/compile-trie.ts'
import { STANDARD_INPUT } from './capture/byte-source.ts'
import { latestTimeMs } from './capture/capture-file.ts'
import type { CollectorSettings } from './config.ts'
import { ForwardLoop } from './forward/forward-loop.ts'
import { HttpsForwarder } from './forward/https.ts'
import { type CaptureSource, type Observation, type ObserveCounts, type ObservedName, observe } from './observe.ts'
import { type NewEvent, Outbox } from './outbox/outbox.ts'

/** How often a file is asked again whether the outbox has space. */
const FULL_DISK_RETRY_MS = 1000

export interface CollectorSource {
  readonly capture: CaptureSource
  /** Times of a capture file are moved so that its last packet was seen now. */
  readonly shiftToNow: boolean
  readonly onProgress?: (bytesRead: number, bytesTotal: number) => void
}

/** What a run of the collector counted. */
export interface CollectorReport {
  readonly observed: ObserveCounts
  /** Events that were made of matched names in this run. */
  readonly events: number
  readonly acknowledged: number
  readonly duplicates: number
  readonly refused: number
  readonly dropped: number
  readonly waiting: number
  /** The Fault that ended the source early; what stood before it was used. */
  readonly damage?: Fault
}

/** The collector's stages wired together: source, decode, outbox, forwarder. */
export class Collector {
  readonly #settings: CollectorSettings
  readonly #log: Logger
  readonly #trie: SharedArrayBuffer
  readonly #outbox: Outbox
  readonly #forwarder: HttpsForwarder
  readonly #loop: ForwardLoop
  #observation: Observation | undefined
  #stopped = false
  /** Ends the wait for a source that does not open. */
  #giveUp: () => void = () => {}
  readonly #givenUp = new Promise<void>((resolve) => {
    this.#giveUp = resolve
  })
  #events = 0

  /** @throws Fault of the outbox; USAGE where the authority's file cannot be read. */
  constructor(settings: CollectorSettings, catalog: Catalog, log: Logger) {
    this.#settings = settings
    this.#log = log
    this.#trie = compileTrie(catalog.rules)
    this.#forwarder = new HttpsForwarder(settings)
    this.#outbox = new Outbox(settings.outbox)
    this.#loop = new ForwardLoop(this.#outbox, this.#forwarder, log)
  }

  /**
   * Runs until the source has ended and every event is with the service, or until stopped.
   *
   * @throws Fault TOKEN_REFUSED; the events then wait in the outbox. Faults of the source.
   */
  async run(source: CollectorSource): Promise<CollectorReport> {
    const forwarding = this.#loop.run()
    try {
      const damage = await this.#watch(source, forwarding)
      this.#loop.finish()
      const ended = await forwarding
      if (ended.kind === 'unauthorised') throw tokenRefused(ended.why, this.#outbox.waiting)
      return this.#report(damage)
    } finally {
      this.#loop.stop()
      await forwarding
      await within(1000, this.#forwarder.close())
      await this.#outbox.close()
    }
  }

  /** Stops the source, gives what waits `deadlineMs` to be forwarded, and ends the run. What then waits stays on disk. */
  async drain(deadlineMs: number): Promise<void> {
    this.#stopped = true
    this.#giveUp()
    await this.#observation?.stop()
    this.#loop.finish()
    setTimeout(() => {
      this.#loop.stop()
      void this.#forwarder.close()
    }, deadlineMs).unref()
  }

  async #watch(source: CollectorSource, forwarding: ReturnType<ForwardLoop['run']>): Promise<Fault | undefined> {
    const { capture, shiftToNow } = source
    // What comes through a pipe comes once: there is nothing to read on.
    const identity = capture.kind === 'file' && capture.path !== STANDARD_INPUT ? identityOf(capture.path) : undefined
    const deliveredFrames = identity === undefined ? 0 : this.#outbox.framesDone(identity)
    if (deliveredFrames > 0)
      this.#log.info({ frames: deliveredFrames }, 'the capture file was read up to here before: it is read on')
    const shiftMs = capture.kind === 'file' && shiftToNow ? Date.now() - ((await latestTimeMs(capture.path)) ?? 0) : 0
    const { decodeWorkers, dnsPorts, tlsPorts } = this.#settings
    const observation = await observe(capture, {
      trie: this.#trie,
      lanes: decodeWorkers,
      dnsPorts,
      tlsPorts,
      deliveredFrames,
      giveUp: this.#givenUp,
      ...(source.onProgress ? { onProgress: source.onProgress } : {}),
      onNames: async (names, position) => {
        const events = names.map((name) => eventOf(name, shiftMs))
        await this.#keep(
          events,
          identity === undefined ? undefined : { source: identity, framesDone: position.framesDone },
        )
      },
    })
    this.#observation = observation
    if (this.#stopped) await observation.stop()
    // Without a valid token there is no point in watching on: the run ends, and says so.
    void forwarding.then(({ kind }) => (kind === 'unauthorised' ? observation.stop() : undefined))
    return (await observation.done).damage
  }

  /** Appends to the outbox; waits while the disk is full, and with it the source, where it can wait. */
  async #keep(events: NewEvent[], position: { source: string; framesDone: number } | undefined): Promise<void> {
    if (events.length === 0 && position === undefined) return
    for (let complained = false; ; complained = true) {
      try {
        this.#outbox.append(events, position)
        this.#events += events.length
        return
      } catch (error) {
        if (!(error instanceof Fault) || error.code !== 'STORE_FULL' || this.#stopped) throw error
        if (!complained) this.#log.error({ reason: error.message }, 'the outbox has no space, the source waits')
        await new Promise((resolve) => setTimeout(resolve, FULL_DISK_RETRY_MS))
      }
    }
  }

  #report(damage: Fault | undefined): CollectorReport {
    const { acknowledged, duplicates, refused } = this.#loop.counters
    const observed = this.#observation?.counts
    if (observed === undefined) throw new Error('a report before anything was observed')
    return {
      observed,
      events: this.#events,
      acknowledged,
      duplicates,
      refused,
      dropped: this.#outbox.dropped,
      waiting: this.#outbox.waiting,
      ...(damage ? { damage } : {}),
    }
  }
}

function eventOf(name: ObservedName, shiftMs: number): NewEvent {
  const timeMs = Math.floor(name.timeMs + shiftMs)
  return {
    name: name.name,
    client: name.client,
    method: name.method,
    firstSeenMs: timeMs,
    lastSeenMs: timeMs,
    count: 1,
  }
}

function tokenRefused(why: string, waiting: number): Fault {
  return new Fault('TOKEN_REFUSED', `${why}; ${waiting} events wait in the outbox until a valid --token is given`)
}

const IDENTITY_BYTES = 65_536

/**
 * What a capture file is known by: the SHA-256 of its first 64 KiB, so that a renamed or copied file is the same, and one
 * that is still being written stays the same.
 *
 * @throws Fault CAPTURE_UNREADABLE
 */
function identityOf(path: string): string {
  const head = Buffer.alloc(IDENTITY_BYTES)
  try {
    const file = openSync(path, 'r')
    try {
      const bytes = readSync(file, head, 0, IDENTITY_BYTES, 0)
      return createHash('sha256').update(head.subarray(0, bytes)).digest('hex')
    } finally {
      closeSync(file)
    }
  } catch (error) {
    throw new Fault('CAPTURE_UNREADABLE', `${path}: ${(error as Error).message}`, { cause: error })
  }
}
