import { CAPTURE_SILENT_SECONDS } from '../limits.ts'

/**
 * Notices a capture that fell silent: the kernel counts packets that pass the filter, and none arrives here. (Reported of libpcap's users
 * upstream as "capture stops, no error".)
 */
export class Watchdog {
  #silentSeconds = 0
  #received = 0
  #arrived = 0

  /**
   * Told once a second, of the capture that is open, how many packets the kernel received for it and how many of these it dropped, and how
   * many arrived. True when the capture shall be opened again.
   */
  second(received: number, dropped: number, arrived: number): boolean {
    const moved = received - dropped > this.#received
    const silent = moved && arrived === this.#arrived
    this.#silentSeconds = silent ? this.#silentSeconds + 1 : 0
    // What the kernel counted in silence is still to come; so it counts only once packets arrive.
    if (!silent) this.#received = received - dropped
    this.#arrived = arrived
    if (this.#silentSeconds < CAPTURE_SILENT_SECONDS) return false
    this.reset()
    return true
  }

  /** Another capture was opened. */
  reset(): void {
    this.#silentSeconds = 0
    this.#received = 0
    this.#arrived = 0
  }
}
