import type { Order } from '../../dry-run/report.ts'
import { FileProcess, type FileProcessOptions } from './file-process.ts'
import { TRIAL_WAIT_MS_MAX, TRIALS_RUNNING_MAX, TRIALS_WAITING_MAX } from './limits.ts'

/** Why a file is not read now. `own`: another file of the same organization is being read. */
export type Busy = 'own' | 'others'
/** Why a file cannot be read: the registry does not fit the process. */
export type Unready = Busy | 'registry'

export type TrialOptions = Omit<FileProcessOptions, 'isCanceled'> & { readonly waitMsMax?: number }

interface Waiting {
  readonly organizationId: string
  readonly admit: (isAdmitted: boolean) => void
}

/** The processes that read uploaded files: one for each organization, and few over all. */
export class FileTrials {
  readonly #options: TrialOptions
  readonly #running = new Set<string>()
  #waiting: Waiting[] = []

  constructor(options: TrialOptions) {
    this.#options = options
  }

  /**
   * Starts a process as soon as one may run. The caller must wait for its result, or cancel it.
   */
  async start(organizationId: string, order: Order, isCanceled: () => boolean): Promise<FileProcess | Busy> {
    const isWaiting = this.#waiting.some((each) => each.organizationId === organizationId)
    if (isWaiting || this.#running.has(organizationId)) return 'own'
    if (this.#running.size >= TRIALS_RUNNING_MAX) {
      if (this.#waiting.length >= TRIALS_WAITING_MAX || !(await this.#wait(organizationId))) return 'others'
    } else this.#running.add(organizationId)
    const process = new FileProcess(order, { ...this.#options, isCanceled })
    process.result.then(() => this.#ended(organizationId))
    return process
  }

  /** Resolves to whether the organization now has a process. */
  #wait(organizationId: string): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => waiting.admit(false), this.#options.waitMsMax ?? TRIAL_WAIT_MS_MAX)
      const waiting: Waiting = {
        organizationId,
        admit: (isAdmitted) => {
          clearTimeout(timer)
          this.#waiting = this.#waiting.filter((each) => each !== waiting)
          if (isAdmitted) this.#running.add(organizationId)
          resolve(isAdmitted)
        },
      }
      this.#waiting.push(waiting)
    })
  }

  #ended(organizationId: string): void {
    this.#running.delete(organizationId)
    this.#waiting[0]?.admit(true)
  }
}
