import type { SendOutcome } from '../engine/alert/send-outcome.ts'
import type { Clock } from '../engine/kernel/process/clock.ts'
import type { Network } from '../engine/kernel/process/network.ts'
import type { SecretsKey } from '../engine/kernel/process/secrets-key.ts'
import { programVersion } from '../engine/kernel/process/version.ts'
import { ALERT_ATTEMPT_MS } from '../engine/limits.ts'
import type { AlertChannel } from '../engine/store/alert-channels.ts'
import type { Organization } from '../engine/store/organizations.ts'
import { OverloadError } from './change-sender.ts'

/** Test messages at once, over all organizations. Beyond it, a test fails with 503. */
const TESTS_MAX = 8

interface ChannelTest {
  /** The name of the channel. */
  readonly channel: string
  readonly sent: SendOutcome
}

/** Sends test messages to alert channels: one at a time for each organization. */
export class ChannelTests {
  readonly #secrets: SecretsKey
  readonly #clock: Clock
  #allowed: readonly Network[]
  readonly #running = new Set<string>()

  /** @param allowed networks to which the service may connect although they are not public */
  constructor(secrets: SecretsKey, clock: Clock, allowed: readonly Network[]) {
    this.#secrets = secrets
    this.#clock = clock
    this.#allowed = allowed
  }

  get allowed(): readonly Network[] {
    return this.#allowed
  }

  /** Applies to tests from now on. */
  allow(networks: readonly Network[]): void {
    this.#allowed = networks
  }

  /**
   * Sends a test message to the channel that `begin` resolves to.
   *
   * @throws OverloadError, Fault SECRETS_KEY, and what `begin` rejects with.
   */
  async run(organization: Organization, begin: () => Promise<AlertChannel>): Promise<ChannelTest> {
    if (this.#running.has(organization.id) || this.#running.size >= TESTS_MAX) throw new OverloadError()
    this.#running.add(organization.id)
    try {
      const channel = await begin()
      // Only loaded when they are used, because of their memory.
      const { sendTest } = await import('../engine/alert/send.ts')
      const options = {
        allowed: this.#allowed,
        timeoutMs: ALERT_ATTEMPT_MS,
        signal: new AbortController().signal,
        version: programVersion(),
      }
      const sent = await sendTest(organization, channel, this.#secrets, this.#clock, options)
      return { channel: channel.name, sent }
    } finally {
      this.#running.delete(organization.id)
    }
  }
}
