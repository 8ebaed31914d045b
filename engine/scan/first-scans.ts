import { MINUTE_MS, SECOND_MS } from '../kernel/process/clock.ts'
import type { Store } from '../store/store.ts'

/** Delay between an organization's first event and its first scan. */
const FIRST_SCAN_MS = 10 * SECOND_MS
/** Interval of quick scans, which run only if there are new events. */
const QUICK_SCAN_EVERY_MS = MINUTE_MS
/** Quick scans end this long after the first event. */
const QUICK_SCANS_MS = 30 * MINUTE_MS

/**
 * The quick scans of new organizations, so that the first findings do not take a day. The store has
 * the time of the first event, so quick scans continue after a restart.
 */
export class FirstScans {
  readonly #store: Store
  /** Organizations whose quick scans have ended. */
  readonly #ended = new Set<string>()
  /** Time of the next scan, for organizations with new events. */
  readonly #dueMs = new Map<string, number>()

  constructor(store: Store) {
    this.#store = store
  }

  /** Call when an organization may have new events. @throws Fault STORE_FULL. */
  note(organizationId: string, nowMs: number): void {
    if (this.#ended.has(organizationId)) return
    // A time from an earlier event remains valid, unless the clock was set back.
    const knownMs = this.#dueMs.get(organizationId)
    if (knownMs !== undefined && knownMs - nowMs <= QUICK_SCAN_EVERY_MS) return
    if (this.#store.buffer.count(organizationId) === 0) return
    const dueMs = this.#nextMs(organizationId, nowMs)
    if (dueMs === undefined) {
      this.#ended.add(organizationId)
      this.#dueMs.delete(organizationId)
    } else this.#dueMs.set(organizationId, dueMs)
  }

  /** Returns the organizations whose scan is due, once each. */
  takeDue(nowMs: number): string[] {
    const due = [...this.#dueMs].filter(([, dueMs]) => dueMs <= nowMs).map(([organizationId]) => organizationId)
    for (const organizationId of due) this.#dueMs.delete(organizationId)
    return due
  }

  /** undefined if the quick scans have ended. */
  #nextMs(organizationId: string, nowMs: number): number | undefined {
    const firstMs = this.#firstEventMs(organizationId, nowMs)
    const last = this.#store.scans.last(organizationId, ({ status }) => status === 'completed')
    // Without a scan since the first event, the first scan is due even if its time has passed.
    if (last === undefined || last.startedAtMs < firstMs) return firstMs + FIRST_SCAN_MS
    // If the clock was set back, the last scan is in the future.
    const nextMs = Math.min(last.startedAtMs, nowMs) + QUICK_SCAN_EVERY_MS
    return Math.max(nextMs, nowMs) > firstMs + QUICK_SCANS_MS ? undefined : nextMs
  }

  #firstEventMs(organizationId: string, nowMs: number): number {
    const { environment, scanStates, evidence } = this.#store
    const { firstEventAtMs } = scanStates.get(organizationId)
    if (firstEventAtMs !== undefined && firstEventAtMs <= nowMs) return firstEventAtMs
    // Another scan may have added the first events to the evidence before they were noted. Evidence
    // means that there were some, so no quick scans follow.
    const isKnown = firstEventAtMs === undefined && evidence.firstDayFrom(organizationId, 0, Infinity) !== undefined
    const firstMs = isKnown ? 0 : nowMs
    environment.write(() => {
      scanStates.put(organizationId, { ...scanStates.get(organizationId), firstEventAtMs: firstMs })
    })
    return firstMs
  }
}
