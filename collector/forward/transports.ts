import { deferred } from '../../engine/process/deferred.ts'
import type { Logger } from '../../engine/process/log.ts'
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
import { type ForwardCounters, type ForwardEnd, ForwardLoop, type ForwardState } from './forward-loop.ts'
import type { Forwarder, Transport } from './forwarder.ts'
import { HttpsForwarder } from './https.ts'
import { SequenceAges } from './sequence-ages.ts'
import { DecidingSupply, FollowingSupply } from './supply.ts'
import { SyslogForwarder } from './syslog.ts'

export interface TransportStatus extends ForwardCounters, ForwardState {
  /** Left the outbox by the other way before this one had sent them. */
  readonly missed: number
}

/**
 * The ways that are on. HTTPS decides what leaves the outbox, or syslog where it is alone. Where both are on syslog goes ahead while its
 * connection stands, so that it misses nothing; HTTPS waits neither for one that does not stand nor for a receiver that is too slow.
 */
export class Transports {
  /** What this way takes leaves the outbox; undefined when nothing is forwarded. */
  readonly deciding: Transport | undefined
  readonly #loops = new Map<Transport, ForwardLoop>()
  readonly #forwarders: Forwarder[] = []
  readonly #following: FollowingSupply | undefined
  readonly #ages = new SequenceAges()
  /** Resolved when asked to finish or to stop. */
  readonly #ended = deferred()

  /** @throws Fault USAGE where the file of the authority cannot be read, or the proxy is no URL. */
  constructor(settings: CollectorSettings, outbox: Outbox, log: Logger, options: { readonly probes: boolean }) {
    const { httpsEnabled } = settings
    const syslogOn = syslogIsOn(settings)
    this.deciding = httpsEnabled ? 'https' : syslogOn ? 'syslog' : undefined
    if (syslogOn) {
      const { syslogProtocol } = settings
      if (syslogProtocol !== 'tls') {
        log.warn({ protocol: syslogProtocol }, 'syslog without TLS: the token and all names go in plain text')
      }
      this.#following = httpsEnabled ? new FollowingSupply(outbox, 'syslog') : undefined
      const forwarder = new SyslogForwarder(settings)
      this.#forwarders.push(forwarder)
      const loop = new ForwardLoop({
        supply: this.#following ?? new DecidingSupply(outbox),
        forwarder,
        log: log.child({ transport: urlOf(syslogPeer(settings)) }),
        batch: { events: SYSLOG_EVENTS_MAX, bytes: FORWARD_BYTES_MAX, lingerMs: SYSLOG_LINGER_MS },
        onSent: () => this.#loops.get('https')?.poll(),
        ...options,
      })
      this.#loops.set('syslog', loop)
    }
    if (httpsEnabled) {
      const forwarder = new HttpsForwarder(settings)
      this.#forwarders.push(forwarder)
      const loop = new ForwardLoop({
        supply: new DecidingSupply(outbox, () => this.#syslogGoesAheadTo(outbox)),
        forwarder,
        log: log.child({ transport: urlOf(httpsPeer(settings)) }),
        batch: { events: FORWARD_EVENTS_MAX, bytes: FORWARD_BYTES_MAX, lingerMs: FORWARD_LINGER_MS },
        ...options,
      })
      this.#loops.set('https', loop)
    }
  }

  /** Events from this sequence on HTTPS does not take yet, so that syslog misses none; but none waits for a receiver that is slow for long. */
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
   * Runs until stopped, or until nothing waits after `finish` was called; or until the token turns out to be unknown. The way that
   * decides sends the coverage reports.
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
          // What it has taken away nobody else can send.
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

  /** Ends after the batches that are under way. What waits stays in the outbox. */
  stop(): void {
    for (const loop of this.#loops.values()) loop.stop()
    this.#ended.resolve()
  }

  /** Cuts what is under way. */
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
