import { Fault } from '../../engine/process/error-codes.ts'
import type { BatchPool } from '../batch/batch-pool.ts'
import {
  LIVE_FLUSH_MS,
  LIVE_IDLE_MS,
  LIVE_QUIET_MS,
  LIVE_RING_BYTES,
  LIVE_SNAPLEN_BYTES,
  REOPENINGS_MAX,
  SILENCES_MAX,
  SNAPLEN_BYTES_MAX,
} from '../limits.ts'
import { captureFilter, carriesVlan, type FilterOptions, type FilterWidth, showsLoopback } from './bpf.ts'
import { InterfaceAbsent, PcapSession } from './pcap-session.ts'
import { Pressure } from './pressure.ts'
import type { RoundFiller } from './round.ts'
import { Watchdog } from './watchdog.ts'

/**
 * Live capture. Runs in the capture thread and blocks it: empties the ring, sleeps LIVE_IDLE_MS and looks again. dispatch() does not return
 * while packets flow, so all that has its time is seen to in onPacket, too.
 *
 * libpcap's filter cannot be changed through the addon, so a new filter is a new capture, beside the old one:
 *
 *     old   ....taken....|H  not taken
 *     new        not taken|H ....taken....
 *
 * H is the instant behind the opening of the new one. What both have seen is taken once; the other one counts as handed over.
 */

export interface LiveOptions {
  readonly name: string
  readonly snaplenBytes?: number
  readonly ringBytes?: number
  readonly promiscuous?: boolean
  /** Pass tunnels as a whole. */
  readonly tunnels?: boolean
  /** The operator's own filter expression, which packets must pass besides. */
  readonly expression?: string
  /** For tests; limits.ts has the default. */
  readonly widenAfterSeconds?: number
}

/** How a live capture stands. Packets: received = taken + seenByBoth + skipped + waiting + kernel + pool + unread. */
export interface LiveState {
  /** Packets that passed the filter, by the kernel's count. */
  readonly received: number
  /** Packets that went on to be decoded. */
  readonly taken: number
  /** Packets that two captures saw while the filter changed. */
  readonly seenByBoth: number
  /** Loopback's packets as sent, which libpcap passes over, since they come again as received. With them what waits in the ring. */
  readonly skipped: number
  /** Packets in the ring. */
  readonly waiting: number
  readonly dropped: {
    /** The ring was full. */
    readonly kernel: number
    /** No batch was free. */
    readonly pool: number
    /** They stood in a ring that was given up. */
    readonly unread: number
  }
  readonly filter: FilterWidth
  /** Why the filter cannot be changed, where it should have been. */
  readonly refused: string
  /** Why nothing is captured at the moment; empty when the interface is open. */
  readonly lost: string
  /** How often the interface was opened again, because it had vanished or the capture had fallen silent. */
  readonly reopened: number
}

const SECOND_MS = 1000
/** By then the kernel has handed over what it received before. */
const DRAINED_MS = LIVE_FLUSH_MS + 2 * LIVE_QUIET_MS

/** A session, and which of its packets are taken. */
class Capture {
  readonly session: PcapSession
  /** Packets from and until here are taken, in milliseconds since 1970. */
  fromMs = 0
  untilMs = Number.POSITIVE_INFINITY
  /** By then it shall be closed whatever the packets' times say, for the clock may be set: in milliseconds of the monotonic clock. */
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
  /** Packets that the kernel counted and that have neither arrived nor were dropped. */
  get waiting(): number {
    return Math.max(0, this.session.received - this.session.dropped - this.arrived)
  }
}

/** Ports of the servers whose names are looked for. */
type Ports = Pick<FilterOptions, 'dnsPorts' | 'tlsPorts'>

/** Opens the interface. Throws a Fault that says what to do. */
export function openSession(options: LiveOptions, ports: Ports, width: FilterWidth, onPacket: () => void): PcapSession {
  const { name, expression = '', tunnels = false } = options
  return new PcapSession(
    {
      device: name,
      filter: captureFilter(
        { dnsPorts: ports.dnsPorts, tlsPorts: ports.tlsPorts, tunnels, expression },
        carriesVlan(name),
        width,
      ),
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
  readonly #ports: Ports
  readonly #options: LiveOptions
  readonly #pool: BatchPool
  readonly #filler: RoundFiller
  readonly #notify: (state: LiveState) => void
  readonly #pressure: Pressure
  readonly #watchdog = new Watchdog()
  readonly #loopback: boolean
  #width: FilterWidth = 'wide'
  /** The capture whose packets are taken; none while the interface is gone. */
  #capture: Capture | undefined
  /** The one before, until it is closed. */
  #leaving: Capture | undefined
  #lost = ''
  #fault: Fault | undefined
  #reopened = 0
  #vanished = 0
  /** Times in a row that the capture had fallen silent. */
  #silences = 0
  #roundStartMs = 0
  #secondMs = Number.NEGATIVE_INFINITY
  #checkedMs = 0
  #packetMs = 0
  #lostPackets = 0
  /** Why no other capture can be opened: the permission of the first opening is gone. */
  #refused = ''
  /** Of the captures that are closed. */
  readonly #past = { received: 0, taken: 0, seenByBoth: 0, skipped: 0, kernel: 0, pool: 0, unread: 0 }

  /** Opens the interface. Throws a Fault that says what to do. `tell` hears once a second how the capture stands. */
  constructor(
    options: LiveOptions,
    ports: Ports,
    out: { readonly pool: BatchPool; readonly filler: RoundFiller; readonly notify: (state: LiveState) => void },
  ) {
    this.#name = options.name
    this.#options = options
    this.#ports = ports
    this.#pool = out.pool
    this.#filler = out.filler
    this.#notify = out.notify
    this.#loopback = showsLoopback(options.name)
    this.#pressure = new Pressure(options.widenAfterSeconds)
    this.#capture = this.#open('wide')
  }

  /** Captures until the pool is stopped. The Fault that ended it before, if one did. */
  run(): Fault | undefined {
    while (!this.#pool.stopped && this.#fault === undefined) {
      this.#poll()
      const nowMs = Date.now()
      if (this.#filler.frames > 0 && elapsed(this.#roundStartMs, nowMs) >= LIVE_FLUSH_MS) this.#filler.flush(0)
      this.#secondWhenDue(nowMs)
      this.#pool.pause(elapsed(this.#packetMs, nowMs) < SECOND_MS ? LIVE_IDLE_MS : LIVE_QUIET_MS)
    }
    this.#takeTheRest()
    this.#notify(this.#state())
    return this.#fault
  }

  /** Takes what the rings hold. Packets of a capture that leaves come before those of its successor. */
  #poll(): void {
    const leaving = this.#leaving
    if (leaving !== undefined) {
      if (leaving.session.dispatch() !== 'empty') this.#forget(leaving)
      else if (performance.now() < leaving.closeByMs) return
      else leaving.session.close()
    }
    const capture = this.#capture
    if (capture === undefined) return
    // No packet from before the change is on its way any more; and a clock that is set back makes none look so.
    if (this.#leaving === undefined || performance.now() >= this.#leaving.closeByMs) capture.fromMs = 0
    switch (capture.session.dispatch()) {
      case 'empty':
        return
      case 'closed':
        // It left while its packets were being taken.
        this.#forget(capture)
        return
      case 'lost':
        this.#forget(capture)
        this.#lost = `${this.#name}: the interface is gone`
    }
  }

  /** Called for each packet of a capture, also of one that leaves. */
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

  /** By the monotonic clock: packets carry another time than Date.now(), and either may be set. */
  #secondWhenDue(nowMs: number): void {
    const monotonicMs = performance.now()
    if (monotonicMs - this.#secondMs < SECOND_MS) return
    this.#secondMs = monotonicMs
    this.#second(nowMs)
  }

  /** What is seen to once a second; `nowMs` as packets have it. */
  #second(nowMs: number): void {
    const capture = this.#capture
    capture?.session.readStats()
    this.#leaving?.session.readStats()
    const state = this.#state()
    this.#notify(state)
    const lostPackets = state.dropped.kernel + state.dropped.pool
    const width = this.#pressure.second(lostPackets - this.#lostPackets)
    this.#lostPackets = lostPackets
    // On a quiet link the lanes learn from this that what they wait for does not come.
    if (this.#filler.frames === 0) this.#filler.tick(Math.floor(nowMs / 1000))
    if (capture === undefined) {
      this.#reopen()
    } else if (this.#watchdog.second(capture.session.received, capture.session.dropped, capture.arrived)) {
      if (++this.#silences <= SILENCES_MAX && this.#replace(capture, this.#width)) this.#reopened++
      else this.#fault = new Fault('CAPTURE_LOST', `${this.#name}: packets come, but the capture has fallen silent`)
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

  /** Opens another capture beside this one, and lets this one leave. False when that cannot be: this one stays. */
  #replace(capture: Capture, width: FilterWidth): boolean {
    if (this.#leaving !== undefined || this.#refused !== '') return false
    try {
      const next = this.#open(width)
      next.fromMs = Date.now()
      this.#leave(capture)
      capture.untilMs = next.fromMs
      this.#capture = next
      return true
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      if (!(error instanceof InterfaceAbsent)) this.#refused = error.message
      return false
    }
  }

  /** The interface was gone: looks whether it is back. */
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

  /** From now on its packets are no longer taken; those before still are. */
  #leave(capture: Capture): void {
    capture.untilMs = Date.now()
    capture.closeByMs = performance.now() + DRAINED_MS
    this.#leaving = capture
    this.#capture = undefined
  }

  /** The capture shall end. One that is still leaving is not waited for. */
  #retire(capture: Capture): void {
    if (this.#leaving !== undefined) this.#forget(this.#leaving)
    this.#leave(capture)
  }

  /** What was captured before the stop is not lost. */
  #takeTheRest(): void {
    if (this.#capture !== undefined) this.#retire(this.#capture)
    const leaving = this.#leaving
    if (leaving === undefined) return
    while (leaving.session.dispatch() === 'empty' && performance.now() < leaving.closeByMs) sleep(LIVE_IDLE_MS)
    leaving.session.readStats()
    this.#forget(leaving)
  }

  /** A capture is closed, or is read no more: its figures stay. */
  #forget(capture: Capture): void {
    const past = this.#past
    past.received += capture.session.received
    past.kernel += capture.session.dropped
    past.taken += capture.taken
    past.pool += capture.droppedByPool
    past.seenByBoth += capture.seenByBoth
    // What stands in the ring of a capture that was replaced came behind the change, and the next one has it.
    if (this.#loopback) past.skipped += capture.waiting
    else if (capture === this.#leaving && this.#capture !== undefined) past.seenByBoth += capture.waiting
    else past.unread += capture.waiting
    if (capture === this.#leaving) this.#leaving = undefined
    if (capture === this.#capture) this.#capture = undefined
  }

  #state(): LiveState {
    const { unread } = this.#past
    const sum = { ...this.#past, waiting: 0 }
    for (const capture of [this.#leaving, this.#capture]) {
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

/** Time since `startMs`; a clock that was set back has run out. */
function elapsed(startMs: number, nowMs: number): number {
  return nowMs < startMs ? Number.POSITIVE_INFINITY : nowMs - startMs
}

const sleeper = new Int32Array(new SharedArrayBuffer(4))
function sleep(milliseconds: number): void {
  Atomics.wait(sleeper, 0, 0, milliseconds)
}
