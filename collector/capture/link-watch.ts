import { SILENCE_LINK_PACKETS, SILENCE_MS } from '../limits.ts'
import { type LinkState, readLinkState } from './link-state.ts'

/** The interface as the kernel sees it, beside what the capture got of it. */
export class LinkWatch {
  readonly #name: string
  readonly #read: (name: string) => LinkState
  #state: LinkState & { silence: string }
  #missedBefore: number
  #captured = 0
  #packetsThen: number
  #thenMs: number

  constructor(name: string, nowMs: number, read: (name: string) => LinkState = readLinkState) {
    this.#name = name
    this.#read = read
    this.#state = { ...read(name), silence: '' }
    this.#missedBefore = this.#state.missed
    this.#packetsThen = this.#state.packets
    this.#thenMs = nowMs
  }

  /** As of the last second(). `missed` of the time since the watch began; `silence`: why it is strange that nothing was captured. */
  get state(): LinkState & { readonly silence: string } {
    return { ...this.#state, missed: Math.max(0, this.#state.missed - this.#missedBefore) }
  }

  /** Told once a second how many packets passed the filter so far, and a monotonic time in milliseconds. */
  second(captured: number, nowMs: number): void {
    const state = this.#read(this.#name)
    // An interface that came back counts from 0.
    if (state.packets < this.#packetsThen) this.#packetsThen = state.packets
    if (state.missed < this.#missedBefore) this.#missedBefore = 0
    if (captured !== this.#captured) {
      this.#captured = captured
      this.#packetsThen = state.packets
      this.#thenMs = nowMs
    }
    const packets = state.packets - this.#packetsThen
    const silentMs = nowMs - this.#thenMs
    const strange = silentMs >= SILENCE_MS && packets >= SILENCE_LINK_PACKETS
    const silence = `${packets} packets passed ${this.#name} in ${Math.round(silentMs / 1000)} s, and none was a query or a ClientHello`
    this.#state = { ...state, silence: strange ? silence : '' }
  }
}
