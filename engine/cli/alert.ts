import { type AlertDelivery, deliveriesOf, type RuleRow, ruleRows } from '../admin/alert-rows.ts'
import type { AlertMessage } from '../alert/message.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { oneOf, textOf, wholeNumber } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import { ALERTS_MAX } from '../limits.ts'
import type { DeadLetter } from '../store/alert-channels.ts'
import { ALERT_RULES, type Alert, type AlertRule } from '../store/alerts.ts'
import { CHANNEL, channelCommands } from './alert-channel.ts'
import { argument, type Commands, change, flag, group, limitOption, option, query, table, timeText } from './command.ts'
import type { AdminContext } from './context.ts'

const alerts = table<Alert & { readonly deliveries: readonly AlertDelivery[] }>([
  ['Time', 'created_at', { of: ({ createdAtMs }) => timeText(createdAtMs) }],
  ['Severity', 'severity', { hide: 2 }],
  ['Rule', 'rule', { hide: 1 }],
  ['Alert', 'title', { wrap: true }],
  ['Delivery', 'delivery', { wrap: true, of: ({ deliveries }) => deliveryText(deliveries) }],
  ['Id', 'id', { hide: 3 }],
  [null, 'subject'],
  [null, 'details'],
  [null, 'deliveries'],
])

function deliveryText(deliveries: readonly AlertDelivery[]): string {
  return deliveries.map(({ channel, state }) => `${channel}: ${state}`).join(', ') || 'no channel'
}

const rules = table<RuleRow>([
  ['Rule', 'rule'],
  ['State', 'state', { of: ({ isMuted }) => (isMuted ? 'muted' : 'active') }],
  [
    'Threshold',
    'threshold_text',
    { of: ({ threshold, thresholdInForce }) => (threshold ? `${thresholdInForce} ${threshold.unit}`.trim() : null) },
  ],
  ['Severity', 'severity', { hide: 2 }],
  ['Raises an alert if', 'about', { hide: 1, wrap: true }],
  [null, 'threshold', { of: ({ thresholdInForce = null }) => thresholdInForce }],
  [null, 'unit', { of: ({ threshold }) => threshold?.unit ?? null }],
  [null, 'is_default', { of: ({ isDefault }) => isDefault }],
])

const letters = table<DeadLetter & { readonly channel: string }>([
  ['Channel', 'channel'],
  ['Number', 'number', { of: ({ sequence }) => sequence }],
  ['Message', 'title', { wrap: true, of: ({ json }) => (JSON.parse(json) as AlertMessage).title }],
  ['Queued', 'queued_at', { hide: 2, of: ({ queuedAtMs }) => timeText(queuedAtMs) }],
  ['Failed', 'failed_at', { hide: 3, of: ({ failedAtMs }) => timeText(failedAtMs) }],
  ['Attempts', 'attempts', { hide: 1 }],
  ['Reason', 'failure', { wrap: true }],
])

const RULE = argument('<rule>', 'Name of the rule', oneOf(ALERT_RULES))

export const commands: Commands = {
  list: query('List the last alerts, with the delivery to each channel', {
    params: {
      limit: limitOption('--limit <count>', 'Print at most this many alerts', 50, ALERTS_MAX),
      rule: option('--rule <rule>', 'Print only alerts of this rule', oneOf(ALERT_RULES).optional()),
    },
    run({ store, organization }, { limit, rule }) {
      const all = store.alerts.newest(organization.id, rule === undefined ? limit : ALERTS_MAX)
      const wanted = rule === undefined ? all : all.filter((each) => each.rule === rule).slice(0, limit)
      return alerts(wanted.map((alert) => ({ ...alert, deliveries: deliveriesOf(store, alert) })))
    },
  }),
  channel: channelCommands,
  rule: group('Manage alert rules: what raises alerts', {
    list: query('List the alert rules of an organization', {
      run: ({ store, organization }) => rules(ruleRows(store, organization.id)),
    }),
    set: change('Set the threshold of a rule, or restore its default', {
      params: {
        rule: RULE,
        threshold: argument(
          '<threshold>',
          'Whole number in the unit of the rule, or "default"',
          textOf(
            (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text === 'default' ? text : undefined),
            'expected a whole number, or default',
          ),
        ),
      },
      run(context, { rule, threshold }) {
        const value = threshold === 'default' ? undefined : Number(threshold)
        context.administration.alerts.setThreshold(context.organization, rule, value)
        return oneRule(context, rule)
      },
    }),
    mute: mute('Write no alerts of a rule', true),
    unmute: mute('Write alerts of a rule again; what happened meanwhile is not reported', false),
  }),
  'dead-letters': group('Manage messages that were not delivered within 24 hours, or that the receiver refused', {
    list: query('List the dead letters of all channels', {
      run: ({ store: { alertChannels }, organization }) =>
        letters(
          alertChannels
            .ofOrganization(organization.id)
            .flatMap(({ id, name: channel }) =>
              alertChannels.deadLetters(organization.id, id).map((letter) => ({ ...letter, channel })),
            ),
        ),
    }),
    retry: eachLetter('retry', 'Send dead letters again, after the messages that wait', 'Queued again'),
    discard: eachLetter('discard', 'Delete dead letters', 'Deleted'),
  }),
}

function mute(about: string, isMuted: boolean) {
  return change(about, {
    params: { rule: RULE },
    run(context, { rule }) {
      context.administration.alerts.mute(context.organization, rule, isMuted)
      return oneRule(context, rule)
    },
  })
}

function oneRule({ store, organization }: AdminContext, rule: AlertRule): Shown {
  return rules(ruleRows(store, organization.id).filter((each) => each.rule === rule))
}

function eachLetter(verb: 'retry' | 'discard', about: string, heading: string) {
  return change(about, {
    params: {
      channel: CHANNEL,
      number: option(
        '--number <number>',
        'Select one dead letter by its number',
        wholeNumber(1, Number.MAX_SAFE_INTEGER).optional(),
      ),
      all: flag('--all', 'Select all dead letters of the channel'),
    },
    run({ administration, organization }, { channel, number, all }) {
      if ((number === undefined) !== all) throw new Fault('USAGE', 'give either --number or --all')
      const messages = administration.alerts[verb](organization, channel, number)
      return table<{ channel: string; messages: number }>([
        ['Channel', 'channel'],
        [heading, 'messages'],
      ])([{ channel, messages }])
    },
  })
}
