import type { Clock } from '../kernel/process/clock.ts'
import type { SecretsKey } from '../kernel/process/secrets-key.ts'
import type { AlertChannel } from '../store/alert-channels.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { openSettings } from './channel-settings.ts'
import { testMessage } from './message.ts'
import { send } from './send.ts'
import type { SendOptions, SendOutcome } from './send-outcome.ts'

/**
 * Sends a test message once, without the queue. Rejects only on an internal error, and with
 * Fault SECRETS_KEY.
 */
export async function sendTest(
  organization: Organization,
  channel: AlertChannel,
  key: SecretsKey,
  clock: Clock,
  options: SendOptions,
): Promise<SendOutcome> {
  const settings = openSettings(key, channel)
  const message = testMessage(organization, channel, newUuid().replaceAll('-', ''), clock.nowMs())
  return send(settings, message, clock, options)
}
