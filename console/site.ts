import { randomBytes } from 'node:crypto'
import { type Clock, MINUTE_MS } from '../engine/kernel/process/clock.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import type { Network } from '../engine/kernel/process/network.ts'
import { SecretsKey } from '../engine/kernel/process/secrets-key.ts'
import type { RegistryInForce } from '../engine/store/registry-in-force.ts'
import type { Store } from '../engine/store/store.ts'
import type { ChangeSender } from './change-sender.ts'
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
import { relyingPartyOf } from './sign-in/webauthn.ts'
import { KeptFiles } from './try-file/kept-files.ts'
import { FileTrials, type TrialOptions } from './try-file/trials.ts'

/** The dependencies of every route. */
export interface Site {
  /** Read-only. Changes go through `changes` to the writing thread. */
  readonly store: Store
  readonly clock: Clock
  readonly registry: RegistryInForce
  readonly changes: ChangeSender
  readonly ingest: IngestListeners
  readonly passwords: PasswordHasher
  readonly attempts: SignInAttempts
  readonly counters: ConsoleCounters
  /** Encrypts and decrypts client secrets. */
  readonly secrets: SecretsKey
  readonly oidc: OidcClient
  readonly flows: FlowCookies
  readonly pendingForms: PendingForms
  readonly shownOnce: ShownOnce
  /** undefined if passkeys do not work at the console's origin. */
  readonly passkeys: PasskeySignIn | undefined
  readonly fileTrials: FileTrials
  readonly keptFiles: KeptFiles
  readonly channelTests: ChannelTests
  readonly log: Logger
  /** Replaces the networks of SiteOptions.outboundNetworks. */
  readonly allowOutbound: (networks: readonly Network[]) => void
}

interface SiteOptions {
  readonly dataDirectory: string
  /** The public origin (--console-origin); '' if the Host field has it. */
  readonly origin: string
  /** The file with the key of encrypted client secrets. */
  readonly keyFile: string
  /** Identity providers and alert channels may be in these networks, in addition to public ones. */
  readonly outboundNetworks: readonly Network[]
  readonly trials: TrialOptions
  /** false if all browsers have the address of a proxy (--max-connections-per-address 0). */
  readonly limitsNetworks?: boolean
  readonly counters?: ConsoleCounters
}

export function makeSite(
  given: Pick<Site, 'store' | 'clock' | 'registry' | 'changes' | 'ingest' | 'log'>,
  {
    dataDirectory,
    origin,
    keyFile,
    outboundNetworks,
    trials,
    limitsNetworks = true,
    counters = new ConsoleCounters(),
  }: SiteOptions,
): Site {
  const secrets = new SecretsKey(keyFile)
  const relyingParty = relyingPartyOf(origin)
  const providerHttp = new ProviderHttp({
    allowed: outboundNetworks,
    note: (result) => counters.note('providerRequest', result),
  })
  const channelTests = new ChannelTests(secrets, given.clock, outboundNetworks)
  const note = (result: CheckResult): void => counters.note('check', result)
  return {
    ...given,
    counters,
    passwords: new PasswordHasher(note),
    attempts: new SignInAttempts(note, limitsNetworks),
    secrets,
    oidc: new OidcClient(secrets, given.clock, providerHttp),
    flows: new FlowCookies(),
    pendingForms: new PendingForms(),
    shownOnce: new ShownOnce(),
    passkeys: relyingParty && new PasskeySignIn(relyingParty, given.store, given.changes),
    fileTrials: new FileTrials(trials),
    keptFiles: new KeptFiles(dataDirectory, given.log),
    channelTests,
    allowOutbound(networks) {
      providerHttp.allow(networks)
      channelTests.allow(networks)
    },
  }
}

/** A browser follows the redirect of its form at once. */
const KEPT_MS = MINUTE_MS
/** Beyond it the oldest is dropped, and its page does not show it. */
const KEPT_MAX = 1000

interface Kept {
  /** Of the session and its organization, which a session can switch. */
  readonly owner: string
  readonly path: string
  readonly value: unknown
  readonly untilMs: number
}

/**
 * What a form has made and one page shows once, such as a new secret. The form answers with a
 * redirect to the page, so that loading the page again makes nothing twice. In memory, and only for
 * the session, organization and path of the form.
 */
class ShownOnce {
  readonly #kept = new Map<string, Kept>()

  /** Returns the id by which the page takes the value. */
  keep(owner: string, path: string, value: unknown, nowMs: number): string {
    const id = randomBytes(16).toString('hex')
    this.#kept.set(id, { owner, path, value, untilMs: nowMs + KEPT_MS })
    for (const [each, { untilMs }] of this.#kept) {
      if (untilMs > nowMs && this.#kept.size <= KEPT_MAX) break
      this.#kept.delete(each)
    }
    return id
  }

  /** undefined if it was taken before, is too old, or is of another owner or path. */
  take(owner: string, path: string, id: string, nowMs: number): unknown {
    const kept = this.#kept.get(id)
    if (kept?.owner !== owner || kept.path !== path) return undefined
    this.#kept.delete(id)
    return nowMs < kept.untilMs ? kept.value : undefined
  }
}
