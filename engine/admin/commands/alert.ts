import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { AlertMessage } from '../../alert/message.ts'
import { ALERTS_MAX } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import { ALERT_RULES, type Alert, type AlertRule } from '../../store/alerts.ts'
import type { Store } from '../../store/store.ts'
import { deliveriesOf, ruleRows } from '../alert-rows.ts'
import { addAlertChannelCommands } from './alert-channel.ts'
import { changeOptions, countOption, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

const ALERTS_SHOWN_DEFAULT = 50
const CHANNEL = 'Name or id of the alert channel'

/** posture-admin alert list | channel ... | rule ... | dead-letters ... */
export function addAlertCommands(alert: Command): void {
  addList(alert)
  addAlertChannelCommands(alert)
  addRules(alert)
  addDeadLetters(alert)
}

function addList(alert: Command): void {
  const list = ofOrganization(
    sharedOptions(alert.command('list').description('List the last alerts, with the delivery to each channel')),
  )
    .addOption(
      new Option('--limit <count>', 'Print at most this many alerts')
        .argParser(countOption(1, ALERTS_MAX))
        .default(ALERTS_SHOWN_DEFAULT),
    )
    .addOption(new Option('--rule <rule>', 'Print only alerts of this rule').choices(ALERT_RULES))
  list.action(({ org, limit, rule }: { org?: string; limit: number; rule?: AlertRule }) =>
    withStore(list, ({ store, administration }) => {
      const { id } = administration.organization(org)
      const all = store.alerts.newest(id, rule === undefined ? limit : ALERTS_MAX)
      const wanted = rule === undefined ? all : all.filter((each) => each.rule === rule).slice(0, limit)
      show(list, {
        columns: [
          ['Time', 'created_at'],
          ['Severity', 'severity', { hide: 2 }],
          ['Rule', 'rule', { hide: 1 }],
          ['Alert', 'title', { wrap: true }],
          ['Delivery', 'delivery', { wrap: true }],
          ['Id', 'id', { hide: 3 }],
        ],
        rows: wanted.map((each) => alertRow(store, each)),
      })
    }),
  )
}

function alertRow(store: Store, alert: Alert) {
  const deliveries = deliveriesOf(store, alert)
  return {
    id: alert.id,
    created_at: timeText(alert.createdAtMs),
    rule: alert.rule,
    severity: alert.severity,
    title: alert.title,
    subject: alert.subject,
    details: alert.details,
    deliveries,
    delivery:
      deliveries.length === 0
        ? 'no channel'
        : deliveries.map(({ channel, state }) => `${channel}: ${state}`).join(', '),
  }
}

function addRules(alert: Command): void {
  const rule = alert.command('rule').description('Manage alert rules: what raises alerts')

  const list = ofOrganization(
    sharedOptions(rule.command('list').description('List the alert rules of an organization')),
  )
  list.action(({ org }: { org?: string }) =>
    withStore(list, ({ store, administration }) => printRules(list, store, administration.organization(org).id)),
  )

  const set = ofOrganization(
    changeOptions(
      rule
        .command('set')
        .description('Set the threshold of a rule, or restore its default')
        .addArgument(ruleArgument())
        .argument('<threshold>', 'Whole number in the unit of the rule, or "default"', thresholdArgument),
    ),
  )
  set.action((name: AlertRule, threshold: number | 'default', { org }: { org?: string }) =>
    withStore(set, ({ store, administration }) => {
      const organization = administration.organization(org)
      administration.alerts.setThreshold(organization, name, threshold === 'default' ? undefined : threshold)
      printRules(set, store, organization.id, name)
    }),
  )

  for (const [verb, muted, about] of [
    ['mute', true, 'Write no alerts of a rule'],
    ['unmute', false, 'Write alerts of a rule again; what happened meanwhile is not reported'],
  ] as const) {
    const command = ofOrganization(changeOptions(rule.command(verb).description(about).addArgument(ruleArgument())))
    command.action((name: AlertRule, { org }: { org?: string }) =>
      withStore(command, ({ store, administration }) => {
        const organization = administration.organization(org)
        administration.alerts.mute(organization, name, muted)
        printRules(command, store, organization.id, name)
      }),
    )
  }
}

function ruleArgument(): Argument {
  return new Argument('<rule>', 'Name of the rule').choices(ALERT_RULES)
}

function thresholdArgument(text: string): number | 'default' {
  if (text === 'default') return text
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number, or default')
}

function printRules(command: Command, store: Store, organizationId: string, only?: AlertRule): void {
  show(command, {
    columns: [
      ['Rule', 'rule'],
      ['State', 'state'],
      ['Threshold', 'threshold_text'],
      ['Severity', 'severity', { hide: 2 }],
      ['Raises an alert if', 'about', { hide: 1, wrap: true }],
    ],
    rows: ruleRows(store, organizationId)
      .filter(({ rule }) => only === undefined || rule === only)
      .map(({ rule, isMuted, thresholdInForce, isDefault, threshold, severity, about }) => ({
        rule,
        state: isMuted ? 'muted' : 'active',
        threshold: thresholdInForce ?? null,
        unit: threshold?.unit ?? null,
        threshold_text: threshold === undefined ? null : `${thresholdInForce} ${threshold.unit}`.trim(),
        is_default: isDefault,
        severity,
        about,
      })),
  })
}

function addDeadLetters(alert: Command): void {
  const letters = alert
    .command('dead-letters')
    .description('Manage messages that were not delivered within 24 hours, or that the receiver refused')

  const list = ofOrganization(
    sharedOptions(letters.command('list').description('List the dead letters of all channels')),
  )
  list.action(({ org }: { org?: string }) =>
    withStore(list, ({ store: { alertChannels }, administration }) => {
      const { id: organizationId } = administration.organization(org)
      show(list, {
        columns: [
          ['Channel', 'channel'],
          ['Number', 'number'],
          ['Message', 'title', { wrap: true }],
          ['Queued', 'queued_at', { hide: 2 }],
          ['Failed', 'failed_at', { hide: 3 }],
          ['Attempts', 'attempts', { hide: 1 }],
          ['Reason', 'failure', { wrap: true }],
        ],
        rows: alertChannels.ofOrganization(organizationId).flatMap(({ id, name }) =>
          alertChannels.deadLetters(organizationId, id).map((letter) => ({
            channel: name,
            number: letter.sequence,
            title: (JSON.parse(letter.json) as AlertMessage).title,
            queued_at: timeText(letter.queuedAtMs),
            failed_at: timeText(letter.failedAtMs),
            attempts: letter.attempts,
            failure: letter.failure,
          })),
        ),
      })
    }),
  )

  for (const [verb, about] of [
    ['retry', 'Send dead letters again, after the messages that wait'],
    ['discard', 'Delete dead letters'],
  ] as const) {
    const command = ofOrganization(
      changeOptions(letters.command(verb).description(about).argument('<channel>', CHANNEL)),
    )
      .addOption(
        new Option('--number <number>', 'Select one dead letter by its number').argParser(
          countOption(1, Number.MAX_SAFE_INTEGER),
        ),
      )
      .option('--all', 'Select all dead letters of the channel')
    command.action((channel: string, { org, number, all }: { org?: string; number?: number; all?: boolean }) =>
      withStore(command, ({ administration }) => {
        if ((number === undefined) === (all !== true)) throw new Fault('USAGE', 'give either --number or --all')
        const organization = administration.organization(org)
        const messages = administration.alerts[verb](organization, channel, number)
        show(command, {
          columns: [
            ['Channel', 'channel'],
            [verb === 'retry' ? 'Queued again' : 'Deleted', 'messages'],
          ],
          rows: [{ channel, messages }],
        })
      }),
    )
  }
}
