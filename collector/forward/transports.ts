import { deferred } from '../../engine/kernel/process/deferred.ts'
import type { Logger } from '../../engine/kernel/process/log.ts'
import { type CollectorSettings, syslogIsOn } from '../config.ts'
import {
  FORWARD_BYTES_MAX,
  FORWARD_EVENTS_MAX,
  FORWARD_LINGER_MS,
  SYSLOG_AHEAD_MS,
  SYSLOG_EVENTS_MAX,
  SYSLOG_LINGER_MS,
} from '../limits.ts'
import type { Outbox } from '../outbox/outbox.ts'
import { httpsPeer, syslogPeer, urlOf } from './connection.ts'
import type { CoverageReporter } from './coverage-reporter.ts'
import { DecidingSource, FollowingSource } from './event-source.ts'
import { type ForwardCounters, type ForwardEnd, ForwardLoop, type ForwardState } from './forward-loop.ts'
import type { Forwarder, Transport } from './forwarder.ts'
import { HttpsForwarder } from './https.ts'
import { SyslogForwarder } from './syslog.ts'

export interface TransportStatus extends ForwardCounters, ForwardState {
  /** Events that left the outbox by the other transport before this one had sent them. */
  readonly missed: number
}

export interface TransportOptions {
  readonly probes: boolean
  /** Receives the version of the registry that the service uses. */
  readonly onRegistry?: (version: string) => void
}

/**
 * The enabled transports. HTTPS decides which events leave the outbox; syslog does if it is the
 * only one. If both are enabled, syslog goes first while it is connected, so that it misses no
 * event. HTTPS waits neither for a disconnected receiver nor for one that is too slow.
 */
export class Transports {
  /** Events that this transport has sent leave the outbox. Undefined if nothing is forwarded. */
  readonly deciding: Transport | undefined
  readonly #loops = new Map<Transport, ForwardLoop>()
  readonly #forwarders: Forwarder[] = []
  readonly #following: FollowingSource | undefined
  readonly #ages = new SequenceAges()
  /** Resolves when finish() or stop() is called. */
  readonly #ended = deferred()

  /** @throws Fault USAGE if the CA certificate cannot be read or the proxy is not a URL. */
  constructor(settings: CollectorSettings, outbox: Outbox, log: Logger, options: TransportOptions) {
    const { httpsEnabled } = settings
    const syslogOn = syslogIsOn(settings)
    this.deciding = httpsEnabled ? 'https' : syslogOn ? 'syslog' : undefined
    if (syslogOn) {
      const peer = syslogPeer(settings)
      if (peer.scheme !== 'tls') {
        log.warn({ protocol: peer.scheme }, 'syslog without TLS: the token and all names go in plain text')
      }
      this.#following = httpsEnabled ? new FollowingSource(outbox, 'syslog') : undefined
      const forwarder = new SyslogForwarder(settings)
      this.#forwarders.push(forwarder)
      const loop = new ForwardLoop({
        source: this.#following ?? new DecidingSource(outbox),
        forwarder,
        log: log.child({ transport: urlOf(peer) }),
        batch: { events: SYSLOG_EVENTS_MAX, bytes: FORWARD_BYTES_MAX, lingerMs: SYSLOG_LINGER_MS },
        onSent: () => this.#loops.get('https')?.poll(),
        ...options,
      })
      this.#loops.set('syslog', loop)
    }
    if (httpsEnabled) {
      const forwarder = new HttpsForwarder(settings, options.onRegistry)
      this.#forwarders.push(forwarder)
      const loop = new ForwardLoop({
        source: new DecidingSource(outbox, () => this.#syslogGoesAheadTo(outbox)),
        forwarder,
        log: log.child({ transport: urlOf(httpsPeer(settings)) }),
        batch: { events: FORWARD_EVENTS_MAX, bytes: FORWARD_BYTES_MAX, lingerMs: FORWARD_LINGER_MS },
        ...options,
      })
      this.#loops.set('https', loop)
    }
  }

  /**
   * Returns the first sequence that HTTPS must not take yet, so that syslog misses no event. The
   * wait for a slow receiver is bounded.
   */
  #syslogGoesAheadTo(outbox: Outbox): number {
    const following = this.#following
    const syslog = this.#loops.get('syslog')
    if (following === undefined || syslog === undefined) return Number.POSITIVE_INFINITY
    const { connected, sinceMs } = syslog.state
    const untried = sinceMs === 0
    if (!connected && !untried) return Number.POSITIVE_INFINITY
    return Math.max(
      following.sentThrough + 1,
      this.#ages.before(outbox.settledBefore, performance.now() - SYSLOG_AHEAD_MS),
    )
  }

  /**
   * Runs until stopped, until no event waits after finish() was called, or until the service
   * rejects the token. The deciding transport sends the coverage reports.
   */
  async run(reporter?: CoverageReporter): Promise<ForwardEnd> {
    if (this.#loops.size === 0) {
      await this.#ended.promise
      return { kind: 'stopped' }
    }
    const ends = await Promise.all(
      [...this.#loops].map(async ([transport, loop]) => {
        try {
          const end = await loop.run(transport === this.deciding ? reporter : undefined)
          if (end.kind === 'unauthorized') this.stop()
          // The other transport cannot send events that the deciding one has removed.
          else if (transport === this.deciding) for (const other of this.#loops.values()) other.stop()
          return end
        } catch (error) {
          this.stop()
          throw error
        }
      }),
    )
    return ends.find(({ kind }) => kind === 'unauthorized') ?? { kind: 'stopped' }
  }

  poll(): void {
    for (const loop of this.#loops.values()) loop.poll()
  }

  finish(): void {
    for (const loop of this.#loops.values()) loop.finish()
    this.#ended.resolve()
  }

  /** Ends after the batches in progress. Waiting events stay in the outbox. */
  stop(): void {
    for (const loop of this.#loops.values()) loop.stop()
    this.#ended.resolve()
  }

  /** Aborts the sends in progress. */
  async close(): Promise<void> {
    await Promise.all(this.#forwarders.map((forwarder) => forwarder.close()))
  }

  get status(): Readonly<Partial<Record<Transport, TransportStatus>>> {
    const status: Partial<Record<Transport, TransportStatus>> = {}
    for (const [transport, { counters, state }] of this.#loops) {
      status[transport] = { ...counters, ...state, missed: transport === 'syslog' ? (this.#following?.missed ?? 0) : 0 }
    }
    return status
  }
}

/** Resolution of the ages, in milliseconds. */
const MARK_EVERY_MS = 500

/** Tracks by sequence how long events have existed. */
export class SequenceAges {
  /** `end` was the end of the sequences at `ms`; in ascending order of time. */
  #marks: { readonly end: number; readonly ms: number }[] = []

  /**
   * Returns the end as of `thenMs`; 0 if it was not recorded by then.
   *
   * @param end the sequence after the newest event, now.
   */
  before(end: number, thenMs: number, nowMs = performance.now()): number {
    const last = this.#marks.at(-1)
    if (last === undefined || (end > last.end && nowMs - last.ms >= MARK_EVERY_MS)) this.#marks.push({ end, ms: nowMs })
    while ((this.#marks[1]?.ms ?? Number.POSITIVE_INFINITY) <= thenMs) this.#marks.shift()
    const [oldest] = this.#marks
    return oldest !== undefined && oldest.ms <= thenMs ? oldest.end : 0
  }
}
