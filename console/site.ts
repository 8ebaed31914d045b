import type { Clock } from '../engine/process/clock.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import type { Changes } from './changes.ts'
import { type CheckResult, ConsoleCounters } from './metrics.ts'
import { SignInAttempts } from './sign-in/attempts.ts'
import { PasskeySignIn } from './sign-in/passkeys.ts'
import { PasswordHasher } from './sign-in/passwords.ts'
import { relyingPartyOf } from './sign-in/relying-party.ts'
import { FileTrials, type TrialOptions } from './try-file/trials.ts'

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
  /** undefined if passkeys do not work at the console's origin. */
  readonly passkeys: PasskeySignIn | undefined
  readonly fileTrials: FileTrials
}

export interface SiteOptions {
  /** The public origin (--console-origin); '' if the Host field has it. */
  readonly origin: string
  readonly trials: TrialOptions
  readonly counters?: ConsoleCounters
}

export function makeSite(
  given: Pick<Site, 'store' | 'clock' | 'registry' | 'changes'>,
  { origin, trials, counters = new ConsoleCounters() }: SiteOptions,
): Site {
  const relyingParty = relyingPartyOf(origin)
  const note = (result: CheckResult): void => counters.noteCheck(result)
  return {
    ...given,
    counters,
    passwords: new PasswordHasher(note),
    attempts: new SignInAttempts(note),
    passkeys: relyingParty && new PasskeySignIn(relyingParty, given.store, given.changes),
    fileTrials: new FileTrials(trials),
  }
}
