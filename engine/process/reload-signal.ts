/**
 * Handles SIGHUP from now on: without a listener the signal would end the program. Runs `reload`
 * for each signal, one after the other, so that the last one takes effect. A signal that arrives
 * before `start` counts once, at the start.
 */
export class ReloadSignal {
  #isPending = false
  #reload: (() => Promise<void>) | undefined
  #reloading: Promise<void> = Promise.resolve()
  readonly #onSignal = (): void => this.#request()

  constructor() {
    process.on('SIGHUP', this.#onSignal)
  }

  /** @param reload must not throw */
  start(reload: () => Promise<void>): void {
    this.#reload = reload
    if (this.#isPending) this.#request()
  }

  /** From now on, the signal ends the program again. */
  forget(): void {
    process.off('SIGHUP', this.#onSignal)
  }

  #request(): void {
    const reload = this.#reload
    if (reload === undefined) this.#isPending = true
    else this.#reloading = this.#reloading.then(reload)
  }
}
