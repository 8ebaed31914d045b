import { NAMELESS_MS, NAMELESS_PACKETS, SILENCE_LINK_PACKETS, SILENCE_MS } from '../limits.ts'
import { ANY_INTERFACE, attributeOf, type InterfaceCounters, readCounters, sysMatches } from './interfaces.ts'

/**
 * The state of an interface by the kernel's own counters, which count before any filter or ring.
 */
export interface LinkState {
  /** Why no packet can arrive; empty if packets can arrive. */
  readonly problem: string
  /** Packets received and sent since the interface was created. */
  readonly packets: number
  /**
   * Packets that the interface dropped for lack of space: rx_missed_errors and rx_fifo_errors, as
   * libpcap counts them.
   */
  readonly missed: number
}

/** <linux/if.h> */
const IFF_UP = 0x1

/** Reads the state of the interface, or the sum of all interfaces for `any`. */
function readLinkState(name: string): LinkState {
  const counters = readCounters()
  const inSys = sysMatches(counters)
  if (name !== ANY_INTERFACE) return stateOf(name, counters.get(name), inSys)
  const sum = { problem: '', packets: 0, missed: 0 }
  for (const [each, counted] of counters) {
    const { packets, missed } = stateOf(each, counted, inSys)
    sum.packets += packets
    sum.missed += missed
  }
  return sum
}

function stateOf(name: string, counters: InterfaceCounters | undefined, inSys: boolean): LinkState {
  if (counters === undefined) return { problem: `${name} is gone`, packets: 0, missed: 0 }
  const packets = counters.received + counters.sent
  if (!inSys) return { problem: '', packets, missed: counters.fifo }
  let problem = ''
  if ((Number(attributeOf(name, 'flags') ?? IFF_UP) & IFF_UP) === 0) problem = `${name} is down`
  else if (attributeOf(name, 'carrier') === '0') problem = `${name} has no carrier`
  return { problem, packets, missed: counters.fifo + Number(attributeOf(name, 'statistics/rx_missed_errors') ?? 0) }
}

/** Compares the kernel's counters of the interface with what was captured. */
export class LinkWatch {
  readonly #name: string
  readonly #read: (name: string) => LinkState
  #state: LinkState & { silence: string }
  #missedBefore: number
  #captured = 0
  #packetsAtCapture: number
  #capturedMs: number
  /** The same for names. */
  #named = 0
  #capturedAtName = 0
  #nameMs: number

  constructor(name: string, nowMs: number, read: (name: string) => LinkState = readLinkState) {
    this.#name = name
    this.#read = read
    this.#state = { ...read(name), silence: '' }
    this.#missedBefore = this.#state.missed
    this.#packetsAtCapture = this.#state.packets
    this.#capturedMs = nowMs
    this.#nameMs = nowMs
  }

  /**
   * State as of the last second(). `missed` counts from the start of the watch. `silence` says why
   * it is suspicious that nothing was captured.
   */
  get state(): LinkState & { readonly silence: string } {
    return { ...this.#state, missed: Math.max(0, this.#state.missed - this.#missedBefore) }
  }

  /**
   * Called once a second. `captured` is the total of packets that passed the filter, `named` the
   * total of queries and ClientHellos among them, `nowMs` a monotonic time.
   */
  second(captured: number, named: number, nowMs: number): void {
    const state = this.#read(this.#name)
    // An interface that was created again counts from 0.
    if (state.packets < this.#packetsAtCapture) this.#packetsAtCapture = state.packets
    if (state.missed < this.#missedBefore) this.#missedBefore = 0
    if (captured !== this.#captured) {
      this.#captured = captured
      this.#packetsAtCapture = state.packets
      this.#capturedMs = nowMs
    }
    if (named !== this.#named) {
      this.#named = named
      this.#capturedAtName = captured
      this.#nameMs = nowMs
    }
    const packets = state.packets - this.#packetsAtCapture
    const silentMs = nowMs - this.#capturedMs
    const isSilent = silentMs >= SILENCE_MS && packets >= SILENCE_LINK_PACKETS
    const nameless = captured - this.#capturedAtName
    const namelessMs = nowMs - this.#nameMs
    let silence = ''
    if (isSilent) silence = sentence(packets, this.#name, silentMs)
    else if (namelessMs >= NAMELESS_MS && nameless >= NAMELESS_PACKETS)
      silence = sentence(nameless, 'the filter', namelessMs)
    this.#state = { ...state, silence }
  }
}

function sentence(packets: number, what: string, ms: number): string {
  return `${packets} packets passed ${what} in ${Math.round(ms / 1000)} s, and none was a query or a ClientHello`
}
