import { type ChannelSettings, sealSettings, targetOf } from '../alert/channel-settings.ts'
import type { AlertFilter } from '../alert/message.ts'
import { RULES } from '../alert/rules.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { SecretsKey } from '../kernel/process/secrets-key.ts'
import { ALERT_CHANNELS_MAX, ALERT_CHANNELS_TOTAL_MAX } from '../limits.ts'
import { groupNamesOf } from '../scan/group-use.ts'
import type { AlertChannel, DeadLetter } from '../store/alert-channels.ts'
import type { AlertRule, AlertRuleSettings } from '../store/alerts.ts'
import { newUuid } from '../store/keys.ts'
import type { Organization } from '../store/organizations.ts'
import { AuditedChanges, checkText } from './audited-changes.ts'
import { unknownGroup } from './client-groups.ts'

export interface NewChannel extends AlertFilter {
  readonly name: string
  readonly settings: ChannelSettings
}

/** A new channel whose settings are encrypted, so that other threads do not get its secrets. */
export type SealedChannel = Omit<AlertChannel, 'createdAtMs'>

/** @throws Fault SECRETS_KEY. */
export function sealedChannel(
  key: SecretsKey,
  { id: organizationId }: Organization,
  { settings, ...named }: NewChannel,
): SealedChannel {
  const place = { organizationId, id: newUuid() }
  const shown = { ...named, kind: settings.kind, target: targetOf(settings) }
  return { ...place, ...shown, settings: sealSettings(key, place, settings) }
}

/** Alert channels and rules of organizations. */
export class AlertChanges extends AuditedChanges {
  /**
   * @throws Fault CONFLICT if the name is taken or there are too many; NOT_FOUND if a group does not
   *   exist; USAGE, NOT_ALLOWED.
   */
  addChannel(organization: Organization, given: SealedChannel): AlertChannel {
    const { id: organizationId } = organization
    checkText('name', given.name)
    const { store, clock } = this
    return this.audited('alert-channel.add', organizationId, () => {
      const channels = store.alertChannels.ofOrganization(organizationId)
      if (channels.some(({ name }) => name.toLowerCase() === given.name.toLowerCase())) {
        throw new Fault('CONFLICT', `an alert channel named ${JSON.stringify(given.name)} already exists`)
      }
      if (channels.length >= ALERT_CHANNELS_MAX) {
        throw new Fault(
          'CONFLICT',
          `an organization has at most ${ALERT_CHANNELS_MAX} alert channels; remove one first`,
        )
      }
      if ([...store.alertChannels.all()].length >= ALERT_CHANNELS_TOTAL_MAX) {
        throw new Fault('CONFLICT', `the service has at most ${ALERT_CHANNELS_TOTAL_MAX} alert channels`)
      }
      const known = groupNamesOf(store, organization)
      const isKnown = (group: string): boolean => known.some((name) => name.toLowerCase() === group.toLowerCase())
      const unknown = given.groups?.find((group) => !isKnown(group))
      if (unknown !== undefined) throw unknownGroup(unknown, known)
      const channel: AlertChannel = { ...given, organizationId, createdAtMs: clock.nowMs() }
      store.alertChannels.put(channel)
      const { name: subject, kind, target, severityMin, rules = [], groups = [] } = channel
      const filter = {
        ...(rules.length > 0 && { rules: rules.join(', ') }),
        ...(groups.length > 0 && { groups: groups.join(', ') }),
      }
      const details = { kind, target, severity_min: severityMin, ...filter }
      return { organizationId, subject, details, result: channel }
    })
  }

  /**
   * Removes a channel with the messages that wait for it.
   *
   * @throws Fault NOT_FOUND, NOT_ALLOWED, CONFLICT if it mails scheduled reports
   */
  removeChannel({ id: organizationId }: Organization, nameOrId: string): AlertChannel {
    const { store } = this
    return this.audited('alert-channel.remove', organizationId, () => {
      const channel = this.channel(organizationId, nameOrId)
      const schedules = store.reportSchedules.ofOrganization(organizationId)
      if (schedules.some(({ channelId }) => channelId === channel.id)) {
        throw new Fault(
          'CONFLICT',
          `${channel.name} mails reports; first remove them from posture-admin report schedule`,
        )
      }
      const waiting = store.alertChannels.waiting(organizationId, channel.id)
      store.alertChannels.remove(channel)
      return { organizationId, subject: channel.name, details: { kind: channel.kind, waiting }, result: channel }
    })
  }

  /** Records that a channel is tested, before sendTest(). @throws Fault NOT_FOUND, NOT_ALLOWED. */
  beginTest({ id: organizationId }: Organization, nameOrId: string): AlertChannel {
    return this.audited('alert-channel.test', organizationId, () => {
      const result = this.channel(organizationId, nameOrId)
      return { organizationId, subject: result.name, details: { kind: result.kind }, result }
    })
  }

  /** Sets the threshold of a rule. `undefined`: its default. @throws Fault USAGE, NOT_ALLOWED. */
  setThreshold(organization: Organization, rule: AlertRule, threshold: number | undefined): void {
    const limits = RULES[rule].threshold
    if (limits === undefined) throw new Fault('USAGE', `${rule} has no threshold`)
    const { min, max, byDefault } = limits
    if (threshold !== undefined && !(Number.isInteger(threshold) && threshold >= min && threshold <= max)) {
      throw new Fault(
        'USAGE',
        `threshold of ${rule}: expected a whole number from ${min} to ${max}, found ${threshold}`,
      )
    }
    this.#setRule('alert-rule.set', organization, rule, { threshold: threshold ?? byDefault }, ({ muted }) => {
      return { ...(muted === undefined ? {} : { muted }), ...(threshold === undefined ? {} : { threshold }) }
    })
  }

  /**
   * Mutes or unmutes a rule. What happens while a rule is muted is never reported. @throws Fault
   * NOT_ALLOWED.
   */
  mute(organization: Organization, rule: AlertRule, muted: boolean): void {
    this.#setRule(muted ? 'alert-rule.mute' : 'alert-rule.unmute', organization, rule, {}, (before) => {
      return { ...before, muted }
    })
  }

  /**
   * Queues dead letters of a channel again: one, or all. Returns how many. @throws Fault NOT_FOUND,
   * NOT_ALLOWED.
   */
  retry(organization: Organization, nameOrId: string, sequence?: number): number {
    const { store, clock } = this
    return this.#eachDeadLetter('alert.retry', organization, nameOrId, sequence, (channel, letter) => {
      store.alertChannels.retry(channel, letter, clock.nowMs())
    })
  }

  /** Removes dead letters of a channel: one, or all. @throws Fault NOT_FOUND, NOT_ALLOWED. */
  discard(organization: Organization, nameOrId: string, sequence?: number): number {
    const { store, clock } = this
    return this.#eachDeadLetter('alert.discard', organization, nameOrId, sequence, (channel, letter) => {
      store.alertChannels.discard(channel, letter, clock.nowMs())
    })
  }

  /** By name, ignoring case, or by id. @throws Fault NOT_FOUND. */
  channel(organizationId: string, nameOrId: string): AlertChannel {
    const wanted = nameOrId.toLowerCase()
    const found = this.store.alertChannels
      .ofOrganization(organizationId)
      .find(({ id, name }) => name.toLowerCase() === wanted || id === wanted)
    if (found !== undefined) return found
    throw new Fault(
      'NOT_FOUND',
      `no alert channel ${JSON.stringify(nameOrId)}; posture-admin alert channel list shows all`,
    )
  }

  #eachDeadLetter(
    action: 'alert.retry' | 'alert.discard',
    { id: organizationId }: Organization,
    nameOrId: string,
    sequence: number | undefined,
    work: (channel: AlertChannel, letter: DeadLetter) => void,
  ): number {
    const { store } = this
    return this.audited(action, organizationId, () => {
      const channel = this.channel(organizationId, nameOrId)
      const all = store.alertChannels.deadLetters(organizationId, channel.id)
      const letters = sequence === undefined ? all : all.filter((letter) => letter.sequence === sequence)
      if (sequence !== undefined && letters.length === 0) {
        throw new Fault('NOT_FOUND', `${channel.name}: no dead letter ${sequence}`)
      }
      for (const letter of letters) work(channel, letter)
      return { organizationId, subject: channel.name, details: { messages: letters.length }, result: letters.length }
    })
  }

  #setRule(
    action: 'alert-rule.set' | 'alert-rule.mute' | 'alert-rule.unmute',
    { id: organizationId }: Organization,
    rule: AlertRule,
    details: Readonly<Record<string, number>>,
    change: (before: AlertRuleSettings) => AlertRuleSettings,
  ): void {
    const { store } = this
    this.audited(action, organizationId, () => {
      const rules = store.alerts.rules(organizationId)
      store.alerts.putRules(organizationId, { ...rules, [rule]: change(rules[rule] ?? {}) })
      return { organizationId, subject: rule, details, result: undefined }
    })
  }
}
