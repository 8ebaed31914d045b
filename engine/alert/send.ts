import type { Clock } from '../process/clock.ts'
import { type ChannelSettings, secretsOf } from './channel-settings.ts'
import { slackBody, teamsBody } from './chat.ts'
import { type Post, post } from './http-post.ts'
import type { AlertMessage } from './message.ts'
import type { SendOptions, SendOutcome } from './send-outcome.ts'
import { sendMail } from './smtp.ts'
import { sendSyslog } from './syslog.ts'
import { signedFields } from './webhook-signature.ts'

/** Sends a message to the receiver of a channel, once. Rejects only on an internal error. */
export async function send(
  settings: ChannelSettings,
  message: AlertMessage,
  clock: Clock,
  options: SendOptions,
): Promise<SendOutcome> {
  switch (settings.kind) {
    case 'webhook':
    case 'slack':
    case 'teams':
      return post(postOf(settings, message, clock), options)
    case 'smtp':
      return sendMail(settings, message, options)
    case 'syslog':
      return sendSyslog(settings, message, options)
    default:
      return settings satisfies never
  }
}

function postOf(
  settings: Extract<ChannelSettings, { readonly url: string }>,
  message: AlertMessage,
  clock: Clock,
): Post {
  const { url, ca } = settings
  const isWebhook = settings.kind === 'webhook'
  const body = isWebhook ? JSON.stringify(message) : settings.kind === 'slack' ? slackBody(message) : teamsBody(message)
  const signed = isWebhook ? signedFields(settings.secret, message.id, clock.nowMs(), body) : {}
  const fields = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)), ...signed }
  return { url, ca, fields, body, secrets: secretsOf(settings) }
}
