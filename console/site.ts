import type { Clock } from '../engine/process/clock.ts'
import type { Logger } from '../engine/process/log.ts'
import type { Network } from '../engine/process/network.ts'
import { SecretsKey } from '../engine/process/secrets-key.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import type { Changes } from './changes.ts'
import { ChannelTests } from './channel-tests.ts'
import type { IngestListeners } from './ingest-listeners.ts'
import { type CheckResult, ConsoleCounters } from './metrics.ts'
import { SignInAttempts } from './sign-in/attempts.ts'
import { OidcClient } from './sign-in/oidc-client.ts'
import { FlowCookies } from './sign-in/oidc-flow.ts'
import { PasskeySignIn } from './sign-in/passkeys.ts'
import { PasswordHasher } from './sign-in/passwords.ts'
import { PendingForms } from './sign-in/pending-forms.ts'
import { ProviderHttp } from './sign-in/provider-http.ts'
import { relyingPartyOf } from './sign-in/relying-party.ts'
import { FileTrials, type TrialOptions } from './try-file/trials.ts'

/** The dependencies of every route. */
export interface Site {
  /** Read-only. Changes go through `changes` to the writing thread. */
  readonly store: Store
  readonly clock: Clock
  readonly registry: RegistryInForce
  readonly changes: Changes
  readonly ingest: IngestListeners
  readonly passwords: PasswordHasher
  readonly attempts: SignInAttempts
  readonly counters: ConsoleCounters
  /** Encrypts and decrypts client secrets. */
  readonly secrets: SecretsKey
  readonly oidc: OidcClient
  readonly flows: FlowCookies
  readonly pendingForms: PendingForms
  /** undefined if passkeys do not work at the console's origin. */
  readonly passkeys: PasskeySignIn | undefined
  readonly fileTrials: FileTrials
  readonly channelTests: ChannelTests
  readonly log: Logger
  /** Replaces the networks of SiteOptions.outboundNetworks. */
  readonly allowOutbound: (networks: readonly Network[]) => void
}

export interface SiteOptions {
  /** The public origin (--console-origin); '' if the Host field has it. */
  readonly origin: string
  /** The file with the key of encrypted client secrets. */
  readonly keyFile: string
  /** Identity providers and alert channels may be in these networks, in addition to public ones. */
  readonly outboundNetworks: readonly Network[]
  readonly trials: TrialOptions
  /** false if all browsers have the address of a proxy (--connections-per-address 0). */
  readonly limitsNetworks?: boolean
  readonly counters?: ConsoleCounters
}

export function makeSite(
  given: Pick<Site, 'store' | 'clock' | 'registry' | 'changes' | 'ingest' | 'log'>,
  { origin, keyFile, outboundNetworks, trials, limitsNetworks = true, counters = new ConsoleCounters() }: SiteOptions,
): Site {
  const secrets = new SecretsKey(keyFile)
  const relyingParty = relyingPartyOf(origin)
  const providerHttp = new ProviderHttp({
    allowed: outboundNetworks,
    note: (result) => counters.noteProviderRequest(result),
  })
  const channelTests = new ChannelTests(secrets, given.clock, outboundNetworks)
  const note = (result: CheckResult): void => counters.noteCheck(result)
  return {
    ...given,
    counters,
    passwords: new PasswordHasher(note),
    attempts: new SignInAttempts(note, limitsNetworks),
    secrets,
    oidc: new OidcClient(secrets, given.clock, providerHttp),
    flows: new FlowCookies(),
    pendingForms: new PendingForms(),
    passkeys: relyingParty && new PasskeySignIn(relyingParty, given.store, given.changes),
    fileTrials: new FileTrials(trials),
    channelTests,
    allowOutbound(networks) {
      providerHttp.allow(networks)
      channelTests.allow(networks)
    },
  }
}
