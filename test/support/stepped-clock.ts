import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The clock of a service, which steps while the service runs. */
export class SteppedClock {
  readonly environment: NodeJS.ProcessEnv
  readonly #file: string

  constructor(directory: string) {
    this.#file = join(directory, 'clock')
    this.environment = {
      LD_PRELOAD: '/usr/$LIB/faketime/libfaketime.so.1',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    }
    this.step(0)
  }

  /** Sets the clock to the time of the machine and this many seconds. */
  step(seconds: number): void {
    // Replaced at once, because an empty file would stop the service.
    writeFileSync(`${this.#file}.new`, `+${seconds}`)
    renameSync(`${this.#file}.new`, this.#file)
  }
}
