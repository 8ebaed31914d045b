import type { AlertMessage } from '../../engine/alert/message.ts'
import type { AlertChannel, AlertChannelState, DeadLetter } from '../../engine/store/alert-channels.ts'
import type { Visit } from '../http/visit.ts'

export interface ChannelRow extends AlertChannel {
  readonly state: AlertChannelState
  /** Messages in its queue. */
  readonly waiting: number
  readonly deadLetters: number
  /** Why its settings cannot be decrypted; '' if they can. */
  readonly keyProblem: string
}

/** The alert channels of the organization, oldest first. */
export function channelRows({ site, organization }: Visit): ChannelRow[] {
  const { alertChannels } = site.store
  return alertChannels.ofOrganization(organization.id).map((channel) => ({
    ...channel,
    state: alertChannels.state(organization.id, channel.id),
    waiting: alertChannels.waiting(organization.id, channel.id),
    deadLetters: alertChannels.deadLetterCount(organization.id, channel.id),
    keyProblem: site.secrets.problem(channel.settings.keyId),
  }))
}

export interface DeadLetterRow extends Omit<DeadLetter, 'json'> {
  readonly channelId: string
  readonly channel: string
  readonly title: string
}

/** The dead letters of all channels, newest first. */
export function deadLetterRows({ site, organization }: Visit): DeadLetterRow[] {
  const { alertChannels } = site.store
  return alertChannels
    .ofOrganization(organization.id)
    .flatMap(({ id, name }) =>
      alertChannels.deadLetters(organization.id, id).map(({ json, ...letter }) => {
        return { ...letter, channelId: id, channel: name, title: (JSON.parse(json) as AlertMessage).title }
      }),
    )
    .sort((a, b) => b.failedAtMs - a.failedAtMs)
}
