import { Fault } from '../../engine/kernel/process/error-codes.ts'
import type { BatchPool } from '../batch/batch-pool.ts'
import { type ServerPorts, serverPorts } from '../decode/ports.ts'
import {
  CAPTURE_SILENT_SECONDS,
  LIVE_FLUSH_MS,
  LIVE_IDLE_MS,
  LIVE_QUIET_MS,
  LIVE_RING_BYTES,
  LIVE_SNAPLEN_BYTES,
  NARROW_AFTER_SECONDS,
  REOPENINGS_MAX,
  SILENCES_MAX,
  SNAPLEN_BYTES_MAX,
  WIDEN_AFTER_SECONDS,
  WIDEN_AFTER_SECONDS_MAX,
} from '../limits.ts'
import { captureFilter, capturesLoopback, carriesVlan, type FilterWidth } from './bpf.ts'
import { InterfaceAbsent, PcapSession } from './pcap-session.ts'
import type { RoundFiller } from './round.ts'

/**
 * Live capture. It runs in the capture thread and blocks it: it empties the ring, sleeps
 * LIVE_IDLE_MS and polls again. dispatch() does not return while packets flow, so onPacket also
 * does the periodic work.
 *
 * The addon cannot change the filter of an open capture. A new filter therefore needs a new
 * capture, opened next to the old one:
 *
 *     old   ....taken....|H  not taken
 *     new        not taken|H ....taken....
 *
 * H is the moment directly after the new capture was opened. A packet seen by both captures is
 * taken once; the other copy counts as seenByBoth.
 *
 * States, by the captures that are open, and what follows:
 *
 *     state      #capture  #draining  another filter, or silence  interface lost  drained  stop
 *     open       yes       no         replacing; open if refused  gone                     ending
 *     replacing  yes       yes        (waits)                     gone            open     ending, without #draining
 *     gone       no        perhaps    (opened again each second: open, or gone, or a fault) ended
 *     ending     no        yes                                    ended           ended
 */

export interface LiveOptions {
  readonly name: string
  readonly snaplenBytes?: number
  readonly ringBytes?: number
  readonly promiscuous?: boolean
  /** Pass all tunnel packets. */
  readonly tunnels?: boolean
  /** The operator's own filter expression, which packets must also match. */
  readonly expression?: string
  /** For tests; limits.ts has the default. */
  readonly widenAfterSeconds?: number
}

/**
 * Counts of packets: received = taken + seenByBoth + skipped + waiting + kernel + pool + unread.
 */
export interface LiveState {
  /** Packets that passed the filter, by the kernel's count. */
  readonly received: number
  /** Packets passed on to decoding. */
  readonly taken: number
  /** Packets that two captures saw during a filter change. */
  readonly seenByBoth: number
  /**
   * Loopback packets as sent. libpcap skips them because they also arrive as received. On loopback
   * this includes packets waiting in the ring.
   */
  readonly skipped: number
  /** Packets in the ring. */
  readonly waiting: number
  readonly dropped: {
    /** Dropped because the ring was full. */
    readonly kernel: number
    /** Dropped because no batch was free. */
    readonly pool: number
    /** In a ring that was abandoned. */
    readonly unread: number
  }
  readonly filter: FilterWidth
  /** Why a filter change failed; empty if none failed. */
  readonly refused: string
  /** Why nothing is captured now; empty if the interface is open. */
  readonly lost: string
  /**
   * How often the interface was reopened, because it had vanished or the capture had fallen silent.
   */
  readonly reopened: number
}

const SECOND_MS = 1000
/** After this time the kernel has delivered every packet that it received before. */
const DRAINED_MS = LIVE_FLUSH_MS + 2 * LIVE_QUIET_MS

/** A session, and which of its packets are taken. */
class Capture {
  readonly session: PcapSession
  /** Packets in [fromMs, untilMs) are taken, in milliseconds since 1970. */
  fromMs = 0
  untilMs = Number.POSITIVE_INFINITY
  /**
   * The capture is closed by then, whatever the times of its packets, because the clock may be set.
   * In milliseconds of the monotonic clock.
   */
  closeByMs = Number.POSITIVE_INFINITY
  taken = 0
  droppedByPool = 0
  seenByBoth = 0

  constructor(session: PcapSession) {
    this.session = session
  }

  get arrived(): number {
    return this.taken + this.droppedByPool + this.seenByBoth
  }
  /** Packets that the kernel counted and that neither arrived nor were dropped. */
  get waiting(): number {
    return Math.max(0, this.session.received - this.session.dropped - this.arrived)
  }
}

/** Opens the interface. @throws Fault that says what to do. */
export function openSession(
  options: LiveOptions,
  ports: ServerPorts,
  width: FilterWidth,
  onPacket: () => void,
): PcapSession {
  const { name, expression = '', tunnels = false } = options
  return new PcapSession(
    {
      device: name,
      filter: captureFilter({ ...serverPorts(ports), tunnels, expression }, carriesVlan(name), width),
      expression,
      snaplenBytes: Math.min(options.snaplenBytes ?? LIVE_SNAPLEN_BYTES, SNAPLEN_BYTES_MAX),
      ringBytes: options.ringBytes ?? LIVE_RING_BYTES,
      promiscuous: options.promiscuous ?? false,
    },
    onPacket,
  )
}

export class LiveCapture {
  readonly #name: string
  readonly #ports: ServerPorts
  readonly #options: LiveOptions
  readonly #pool: BatchPool
  readonly #filler: RoundFiller
  readonly #notify: (state: LiveState) => void
  readonly #pressure: Pressure
  readonly #watchdog = new Watchdog()
  readonly #loopback: boolean
  #width: FilterWidth = 'wide'
  /** The capture whose packets are taken. Undefined while the interface is gone. */
  #capture: Capture | undefined
  /** The previous capture, until it is drained and closed. */
  #draining: Capture | undefined
  #lost = ''
  #fault: Fault | undefined
  #reopened = 0
  #vanished = 0
  /** Consecutive times that the capture fell silent. */
  #silences = 0
  #roundStartMs = 0
  #secondMs = Number.NEGATIVE_INFINITY
  #checkedMs = 0
  #packetMs = 0
  #lostPackets = 0
  /** Why no other capture can be opened: the process dropped its permission after the first one. */
  #refused = ''
  /** Totals of the closed captures. */
  readonly #past = { received: 0, taken: 0, seenByBoth: 0, skipped: 0, kernel: 0, pool: 0, unread: 0 }

  /**
   * Opens the interface and calls `notify` with the state once a second. @throws Fault that says
   * what to do.
   */
  constructor(
    options: LiveOptions,
    ports: ServerPorts,
    out: { readonly pool: BatchPool; readonly filler: RoundFiller; readonly notify: (state: LiveState) => void },
  ) {
    this.#name = options.name
    this.#options = options
    this.#ports = ports
    this.#pool = out.pool
    this.#filler = out.filler
    this.#notify = out.notify
    this.#loopback = capturesLoopback(options.name)
    this.#pressure = new Pressure(options.widenAfterSeconds)
    this.#capture = this.#open('wide')
  }

  /**
   * Captures until the pool is stopped. Returns the Fault that ended the capture earlier, if any.
   */
  run(): Fault | undefined {
    while (!this.#pool.stopped && this.#fault === undefined) {
      this.#poll()
      const nowMs = Date.now()
      if (this.#filler.frames > 0 && elapsed(this.#roundStartMs, nowMs) >= LIVE_FLUSH_MS) this.#filler.flush(0)
      this.#secondWhenDue(nowMs)
      this.#pool.pause(elapsed(this.#packetMs, nowMs) < SECOND_MS ? LIVE_IDLE_MS : LIVE_QUIET_MS)
    }
    this.#drain()
    this.#notify(this.#state())
    return this.#fault
  }

  /** Empties the rings. Packets of a replaced capture come before those of its successor. */
  #poll(): void {
    const draining = this.#draining
    if (draining !== undefined) {
      if (draining.session.dispatch() !== 'empty') this.#forget(draining)
      else if (performance.now() < draining.closeByMs) return
      else draining.session.close()
    }
    const capture = this.#capture
    if (capture === undefined) return
    // No packet from before the change can still arrive, so all packets are taken from here on.
    // This also keeps packets whose time is earlier because the clock was set back.
    if (this.#draining === undefined || performance.now() >= this.#draining.closeByMs) capture.fromMs = 0
    switch (capture.session.dispatch()) {
      case 'empty':
        return
      case 'closed':
        // The capture was replaced while its packets were being taken.
        this.#forget(capture)
        return
      case 'lost':
        this.#forget(capture)
        this.#lost = `${this.#name}: the interface is gone`
    }
  }

  /** Called for each packet of a capture, also of a replaced one. */
  #onPacket(capture: Capture): void {
    const { session } = capture
    const { seconds, microseconds } = session
    const nowMs = seconds * 1000 + microseconds / 1000
    if (nowMs >= capture.untilMs) {
      session.close()
      return
    }
    if (nowMs < capture.fromMs) {
      capture.seenByBoth++
      return
    }
    const filler = this.#filler
    if (filler.put(session.bytes, session.words, session.captured, seconds, microseconds * 1000, session.linkType)) {
      capture.taken++
      this.#packetMs = nowMs
      this.#silences = 0
      if (filler.frames === 1) this.#roundStartMs = nowMs
      else if (elapsed(this.#roundStartMs, nowMs) >= LIVE_FLUSH_MS) filler.flush(0)
    } else {
      capture.droppedByPool++
    }
    if (elapsed(this.#checkedMs, nowMs) < LIVE_IDLE_MS) return
    this.#checkedMs = nowMs
    if (capture !== this.#capture) {
      if (performance.now() >= capture.closeByMs) session.close()
      return
    }
    if (this.#pool.stopped) this.#retire(capture)
    else this.#secondWhenDue(nowMs)
  }

  /** Uses the monotonic clock: packet times differ from Date.now(), and either clock may be set. */
  #secondWhenDue(nowMs: number): void {
    const monotonicMs = performance.now()
    if (monotonicMs - this.#secondMs < SECOND_MS) return
    this.#secondMs = monotonicMs
    this.#second(nowMs)
  }

  /** Work done once a second. `nowMs` is in packet time. */
  #second(nowMs: number): void {
    const capture = this.#capture
    capture?.session.readStats()
    this.#draining?.session.readStats()
    const state = this.#state()
    this.#notify(state)
    const lostPackets = state.dropped.kernel + state.dropped.pool
    const width = this.#pressure.second(lostPackets - this.#lostPackets)
    this.#lostPackets = lostPackets
    // On a quiet link the tick lets lanes time out what they wait for.
    if (this.#filler.frames === 0) this.#filler.tick(Math.floor(nowMs / 1000))
    if (capture === undefined) {
      this.#reopen()
    } else if (this.#watchdog.second(capture.session.received, capture.session.dropped, capture.arrived)) {
      if (++this.#silences <= SILENCES_MAX && this.#replace(capture, this.#width)) this.#reopened++
      else
        this.#fault = new Fault(
          'CAPTURE_LOST',
          `${this.#name}: packets arrive at the interface, but the capture has fallen silent`,
        )
    } else if (width !== this.#width) {
      this.#replace(capture, width)
    }
  }

  #open(width: FilterWidth): Capture {
    const session = openSession(this.#options, this.#ports, width, () => this.#onPacket(capture))
    const capture = new Capture(session)
    this.#width = width
    this.#watchdog.reset()
    return capture
  }

  /**
   * Opens another capture and retires this one. Returns false and keeps this one if the other
   * cannot be opened.
   */
  #replace(capture: Capture, width: FilterWidth): boolean {
    if (this.#draining !== undefined || this.#refused !== '') return false
    try {
      const next = this.#open(width)
      next.fromMs = Date.now()
      this.#startDraining(capture)
      capture.untilMs = next.fromMs
      this.#capture = next
      return true
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (!(error instanceof InterfaceAbsent)) this.#refused = error.message
      return false
    }
  }

  /** The interface was gone: tries to open it again. */
  #reopen(): void {
    if (this.#vanished >= REOPENINGS_MAX) {
      this.#fault = new Fault('CAPTURE_LOST', `${this.#name}: the interface vanished ${REOPENINGS_MAX + 1} times`)
      return
    }
    try {
      this.#capture = this.#open(this.#width)
      this.#vanished++
      this.#reopened++
      this.#lost = ''
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      this.#lost = error.message
      if (!(error instanceof InterfaceAbsent)) this.#fault = error
    }
  }

  /** Takes this capture's earlier packets, but none from now on. */
  #startDraining(capture: Capture): void {
    capture.untilMs = Date.now()
    capture.closeByMs = performance.now() + DRAINED_MS
    this.#draining = capture
    this.#capture = undefined
  }

  /** Ends the capture. A replaced capture that is still open is abandoned. */
  #retire(capture: Capture): void {
    if (this.#draining !== undefined) this.#forget(this.#draining)
    this.#startDraining(capture)
  }

  /** Takes the packets that were captured before the stop. */
  #drain(): void {
    if (this.#capture !== undefined) this.#retire(this.#capture)
    const draining = this.#draining
    if (draining === undefined) return
    while (draining.session.dispatch() === 'empty' && performance.now() < draining.closeByMs) sleep(LIVE_IDLE_MS)
    draining.session.readStats()
    this.#forget(draining)
  }

  /** Adds the figures of a closed or abandoned capture to the totals. */
  #forget(capture: Capture): void {
    const past = this.#past
    past.received += capture.session.received
    past.kernel += capture.session.dropped
    past.taken += capture.taken
    past.pool += capture.droppedByPool
    past.seenByBoth += capture.seenByBoth
    // Packets in the ring of a replaced capture arrived after the change, and its successor has
    // them.
    if (this.#loopback) past.skipped += capture.waiting
    else if (capture === this.#draining && this.#capture !== undefined) past.seenByBoth += capture.waiting
    else past.unread += capture.waiting
    if (capture === this.#draining) this.#draining = undefined
    if (capture === this.#capture) this.#capture = undefined
  }

  #state(): LiveState {
    const { unread } = this.#past
    const sum = { ...this.#past, waiting: 0 }
    for (const capture of [this.#draining, this.#capture]) {
      if (capture === undefined) continue
      sum.received += capture.session.received
      sum.taken += capture.taken
      sum.seenByBoth += capture.seenByBoth
      if (this.#loopback) sum.skipped += capture.waiting
      else sum.waiting += capture.waiting
      sum.kernel += capture.session.dropped
      sum.pool += capture.droppedByPool
    }
    return {
      received: sum.received,
      taken: sum.taken,
      seenByBoth: sum.seenByBoth,
      skipped: sum.skipped,
      waiting: sum.waiting,
      dropped: { kernel: sum.kernel, pool: sum.pool, unread },
      filter: this.#width,
      refused: this.#refused,
      lost: this.#lost,
      reopened: this.#reopened,
    }
  }
}

/** Time since `startMs`. Infinite if the clock was set back. */
function elapsed(startMs: number, nowMs: number): number {
  return nowMs < startMs ? Number.POSITIVE_INFINITY : nowMs - startMs
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))
function sleep(milliseconds: number): void {
  Atomics.wait(sleeper, 0, 0, milliseconds)
}

/**
 * Decides when the filter of a live capture narrows and widens. It narrows after
 * NARROW_AFTER_SECONDS consecutive seconds with losses, because a single burst is over before a new
 * filter is active. It widens after WIDEN_AFTER_SECONDS without a loss. If that was too early, the
 * delay doubles for the next time.
 */
export class Pressure {
  #width: FilterWidth = 'wide'
  #lossySeconds = 0
  #calmSeconds = 0
  readonly #widenAfterFirst: number
  #widenAfter: number

  constructor(widenAfterSeconds = WIDEN_AFTER_SECONDS) {
    this.#widenAfterFirst = widenAfterSeconds
    this.#widenAfter = widenAfterSeconds
  }

  /**
   * Called once a second with the number of packets lost in that second. Returns the width that the
   * filter should have.
   */
  second(lost: number): FilterWidth {
    this.#lossySeconds = lost > 0 ? this.#lossySeconds + 1 : 0
    this.#calmSeconds = lost > 0 ? 0 : this.#calmSeconds + 1
    if (this.#width === 'wide') {
      if (this.#lossySeconds >= NARROW_AFTER_SECONDS) this.#narrow()
      // The wide filter has lasted without a loss as long as the narrow one had to: the delay
      // starts from its first value again.
      else if (this.#calmSeconds >= this.#widenAfter) this.#widenAfter = this.#widenAfterFirst
    } else if (this.#calmSeconds >= this.#widenAfter) {
      this.#width = 'wide'
      this.#calmSeconds = 0
      this.#widenAfter = Math.min(this.#widenAfter * 2, WIDEN_AFTER_SECONDS_MAX)
    }
    return this.#width
  }

  #narrow(): void {
    this.#width = 'narrow'
    this.#lossySeconds = 0
    this.#calmSeconds = 0
  }
}

/**
 * Detects a capture that fell silent: the kernel counts packets that pass the filter, but none
 * arrives here. (libpcap users reported this upstream as "capture stops, no error".)
 */
export class Watchdog {
  #silentSeconds = 0
  #received = 0
  #arrived = 0

  /**
   * Called once a second for the open capture. `received` and `dropped` are the kernel's counts,
   * `arrived` counts packets that arrived here. Returns true if the capture should be reopened.
   */
  second(received: number, dropped: number, arrived: number): boolean {
    const moved = received - dropped > this.#received
    const silent = moved && arrived === this.#arrived
    this.#silentSeconds = silent ? this.#silentSeconds + 1 : 0
    // Packets that the kernel counted during silence are still expected, so they are acknowledged
    // only once packets arrive.
    if (!silent) this.#received = received - dropped
    this.#arrived = arrived
    if (this.#silentSeconds < CAPTURE_SILENT_SECONDS) return false
    this.reset()
    return true
  }

  /** Call after another capture was opened. */
  reset(): void {
    this.#silentSeconds = 0
    this.#received = 0
    this.#arrived = 0
  }
}
