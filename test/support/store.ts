import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync } from 'node:fs'
import { checkStore } from '../../engine/check/check.ts'
import { findingLine } from '../../engine/check/walk.ts'
import { type Event, eventId } from '../../engine/kernel/event/event.ts'
import type { Clock } from '../../engine/kernel/process/clock.ts'
import { createLogger } from '../../engine/kernel/process/log.ts'
import { runScan, ScanRunner } from '../../engine/scan/scan-runner.ts'
import type { ScanExecutor } from '../../engine/scan/schedule.ts'
import type { Organization, Plan } from '../../engine/store/organizations.ts'
import type { Registries } from '../../engine/store/registry-in-force.ts'
import { Store } from '../../engine/store/store.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { NameMatcher } from '../../registry/match.ts'

/**
 * Shared by tests of the service: a real store on disk, a settable clock, and events with defaults.
 */
export interface TestStore {
  readonly store: Store
  readonly directory: string
  readonly clock: Clock & { nowMs(): number; set(timeMs: number): void; add(ms: number): void }
}

export const NOON = Date.parse('2026-11-20T12:00:00Z')

/** Copies the directory of an ended program, without its locks: Node.js cannot copy sockets. */
export function copyDirectory(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !path.endsWith('.sock') })
}

/**
 * A store in the test's own folder. At the end of the test, the store is checked and closed.
 * `unchecked` skips the check, for tests that write inconsistent data on purpose. The clock starts
 * at `startMs`; NOON if absent. The folder is a copy of `copyOf`, the folder of a closed store.
 */
export function openStore(
  t: { testdir(): string; teardown(work: () => unknown): void },
  options: { readonly unchecked?: boolean; readonly startMs?: number; readonly copyOf?: string } = {},
): TestStore {
  const directory = t.testdir()
  if (options.copyOf !== undefined) copyDirectory(options.copyOf, directory)
  const store = new Store(directory)
  t.teardown(async () => {
    const findings = options.unchecked ? [] : findingsOf(store)
    await store.close()
    assert.deepEqual(findings, [])
  })
  return { store, directory, clock: testClock(options.startMs ?? NOON) }
}

/** The findings of a check, one line each. */
export function findingsOf(store: Store): string[] {
  return checkStore(store).findings.map(findingLine)
}

export function testClock(startMs: number): TestStore['clock'] {
  let nowMs = startMs
  return {
    nowMs: () => nowMs,
    set(timeMs) {
      nowMs = timeMs
    },
    add(ms) {
      nowMs += ms
    },
  }
}

/** Buffers events of an organization, and scans. */
export function scanEvents({ store, clock }: TestStore, { id }: Organization, events: readonly Event[]): void {
  store.environment.write(() => store.buffer.append(id, events))
  runScan(store, registries, id, 'schedule', clock)
}

/** Runs scans in the test's own thread. */
export function inlineScans({ store, clock }: TestStore): ScanExecutor {
  const runner = new ScanRunner(store, registries, clock)
  return { run: async (requests) => runner.run(requests), close: async () => {} }
}

export const matcher = new NameMatcher(loadCatalog())
/** Every organization has the built-in registry. */
export const registries: Registries = { matcherOf: () => matcher }
export const quietLog = createLogger('test', 'ERROR')
quietLog.level = 'silent'

export function makeOrganization({ store, clock }: TestStore, name: string, plan: Plan = 'enterprise'): Organization {
  const domain = `${name.toLowerCase()}.example`
  return store.environment.write(() =>
    store.organizations.create({ name, domain, confirmedDomain: domain, plan }, clock.nowMs()),
  )
}

/** A sender whose events have IDs like a collector's. */
export class Sender {
  readonly instance = randomBytes(8).toString('hex')
  #sequence = 0

  event(name: string, timeMs: number, more: Partial<Event> = {}): Event {
    this.#sequence++
    return {
      id: eventId(this.instance, this.#sequence),
      name,
      client: '10.0.0.1',
      method: 'dns',
      firstSeenMs: timeMs,
      lastSeenMs: timeMs,
      count: 1,
      ...more,
    }
  }
}
