import type { Clock } from '../engine/process/clock.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import type { Changes } from './changes.ts'
import { type CheckResult, ConsoleCounters } from './metrics.ts'
import { SignInAttempts } from './sign-in/attempts.ts'
import { PasswordHasher } from './sign-in/passwords.ts'

/** The dependencies of every route. */
export interface Site {
  /** Read-only. Changes go through `changes` to the writing thread. */
  readonly store: Store
  readonly clock: Clock
  readonly registry: RegistryInForce
  readonly changes: Changes
  readonly passwords: PasswordHasher
  readonly attempts: SignInAttempts
  readonly counters: ConsoleCounters
}

export function makeSite(
  given: Pick<Site, 'store' | 'clock' | 'registry' | 'changes'>,
  counters = new ConsoleCounters(),
): Site {
  const note = (result: CheckResult): void => counters.noteCheck(result)
  return { ...given, counters, passwords: new PasswordHasher(note), attempts: new SignInAttempts(note) }
}
