import { MINUTE_MS, SECOND_MS } from '../process/clock.ts'
import type { Store } from '../store/store.ts'

/** The first scan of an organization starts this long after its first event. */
const FIRST_SCAN_MS = 10 * SECOND_MS
/** Then a scan starts this often if there are new events, */
const QUICK_SCAN_EVERY_MS = MINUTE_MS
/** for this long after the first event. */
const QUICK_SCANS_MS = 30 * MINUTE_MS

/**
 * The quick scans of new organizations, so that nobody waits a day for the first finding. The time
 * of the first event is in the store, so a restart continues where it was.
 */
export class FirstScans {
  readonly #store: Store
  /** Organizations whose quick scans have ended. */
  readonly #ended = new Set<string>()
  /** When the next scan is due, for organizations with new events. */
  readonly #dueMs = new Map<string, number>()

  constructor(store: Store) {
    this.#store = store
  }

  /** Call when an organization may have new events. @throws Fault STORE_FULL. */
  note(organizationId: string, nowMs: number): void {
    if (this.#ended.has(organizationId)) return
    // Known from an earlier event, unless the clock was set back.
    const knownMs = this.#dueMs.get(organizationId)
    if (knownMs !== undefined && knownMs - nowMs <= QUICK_SCAN_EVERY_MS) return
    if (this.#store.buffer.count(organizationId) === 0) return
    const dueMs = this.#nextMs(organizationId, nowMs)
    if (dueMs === undefined) {
      this.#ended.add(organizationId)
      this.#dueMs.delete(organizationId)
    } else this.#dueMs.set(organizationId, dueMs)
  }

  /** Returns the organizations whose scan is due, each once. */
  takeDue(nowMs: number): string[] {
    const due = [...this.#dueMs].filter(([, dueMs]) => dueMs <= nowMs).map(([organizationId]) => organizationId)
    for (const organizationId of due) this.#dueMs.delete(organizationId)
    return due
  }

  /** undefined: the quick scans have ended. */
  #nextMs(organizationId: string, nowMs: number): number | undefined {
    const firstMs = this.#firstEventMs(organizationId, nowMs)
    const last = this.#store.scans.last(organizationId, ({ status }) => status === 'completed')
    // Without a finding yet the first scan is due, however late.
    if (last === undefined || last.startedAtMs < firstMs) return firstMs + FIRST_SCAN_MS
    // After the clock was set back, the last scan is in the future.
    const nextMs = Math.min(last.startedAtMs, nowMs) + QUICK_SCAN_EVERY_MS
    return Math.max(nextMs, nowMs) > firstMs + QUICK_SCANS_MS ? undefined : nextMs
  }

  #firstEventMs(organizationId: string, nowMs: number): number {
    const { environment, scanStates, evidence } = this.#store
    const { firstEventAtMs } = scanStates.get(organizationId)
    if (firstEventAtMs !== undefined && firstEventAtMs <= nowMs) return firstEventAtMs
    // Another scan may have folded the first events before they were noted. Evidence means that
    // there were some, so no quick scans follow.
    const isKnown = firstEventAtMs === undefined && evidence.firstDayFrom(organizationId, 0, Infinity) !== undefined
    const firstMs = isKnown ? 0 : nowMs
    environment.write(() => {
      scanStates.put(organizationId, { ...scanStates.get(organizationId), firstEventAtMs: firstMs })
    })
    return firstMs
  }
}
