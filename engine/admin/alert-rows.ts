import { RULES, type RuleDefinition, ruleInForce } from '../alert/rules.ts'
import type { MessageOutcome } from '../store/alert-channels.ts'
import { ALERT_RULES, type Alert, type AlertRule } from '../store/alerts.ts'
import type { Store } from '../store/store.ts'

/** What happened to the message about an alert at one channel. */
export interface AlertDelivery {
  /** The name of the channel, or the start of its id if it was removed. */
  readonly channel: string
  readonly state: MessageOutcome['kind'] | 'waiting' | 'channel removed' | 'unknown'
}

export function deliveriesOf({ alertChannels }: Store, { organizationId, messages }: Alert): AlertDelivery[] {
  return messages.map(([channelId, sequence]) => {
    const name = alertChannels.get(organizationId, channelId)?.name
    // The outcomes of a removed channel are removed with it.
    if (name === undefined) return { channel: channelId.slice(0, 8), state: 'channel removed' }
    return { channel: name, state: alertChannels.outcome(organizationId, channelId, sequence) ?? 'unknown' }
  })
}

/** A rule with the settings of an organization. */
export interface RuleRow extends RuleDefinition {
  readonly rule: AlertRule
  readonly isMuted: boolean
  /** undefined if the rule has none. */
  readonly thresholdInForce: number | undefined
  readonly isDefault: boolean
}

/** All rules of an organization. */
export function ruleRows({ alerts }: Store, organizationId: string): RuleRow[] {
  const settings = alerts.rules(organizationId)
  return ALERT_RULES.map((rule) => {
    const definition = RULES[rule]
    const { muted: isMuted, threshold } = ruleInForce(settings, rule)
    const thresholdInForce = definition.threshold === undefined ? undefined : threshold
    return {
      ...definition,
      rule,
      isMuted,
      thresholdInForce,
      isDefault: thresholdInForce === definition.threshold?.byDefault,
    }
  })
}
