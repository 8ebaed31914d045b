import { CAPTURE_SILENT_SECONDS } from '../limits.ts'

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
