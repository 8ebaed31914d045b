import { z } from 'zod'
import { type AlertDelivery, deliveriesOf, type RuleRow, ruleRows } from '../admin/alert-rows.ts'
import { checkedChannel, type GivenChannel, targetFault } from '../admin/alert-settings.ts'
import { sealedChannel } from '../admin/alerts.ts'
import { SMTP_TLS_MODES, SYSLOG_FORMATS, SYSLOG_TRANSPORTS } from '../alert/channel-settings.ts'
import type { AlertMessage } from '../alert/message.ts'
import { sendTest } from '../alert/send.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { oneOf, portNumber, textOf, wholeNumber } from '../kernel/process/settings.ts'
import type { Shown } from '../kernel/process/table.ts'
import { programVersion } from '../kernel/process/version.ts'
import { ALERT_ATTEMPT_MS, ALERTS_MAX } from '../limits.ts'
import { ALERT_CHANNEL_KINDS, type AlertChannel, type DeadLetter } from '../store/alert-channels.ts'
import { ALERT_RULES, ALERT_SEVERITIES, type Alert, type AlertRule } from '../store/alerts.ts'
import type { Store } from '../store/store.ts'
import {
  argument,
  type Commands,
  change,
  defined,
  flag,
  group,
  limitOption,
  option,
  query,
  table,
  timeText,
} from './command.ts'
import type { AdminContext } from './context.ts'
import {
  CA_FILE,
  certificatesIn,
  OUTBOUND_NETWORKS,
  outboundNetworksOf,
  SECRETS_KEY,
  secretFrom,
  secretsKeyOf,
} from './service-options.ts'

const SECRET_BYTES_MAX = 1024
const CHANNEL = argument('<channel>', 'Name or id of the alert channel')

/** @param secret of a new webhook */
function channels({ alertChannels }: Store, rows: readonly AlertChannel[], secret?: string) {
  const stateOf = ({ organizationId, id }: AlertChannel) => alertChannels.state(organizationId, id)
  return table<AlertChannel>([
    ['Name', 'name'],
    ['Kind', 'kind'],
    ['Receiver', 'target', { wrap: true }],
    ['Severity', 'min_severity', { hide: 5, of: ({ severityMin }) => severityMin }],
    [null, 'rules', { of: ({ rules = [] }) => rules.join(', ') }],
    [null, 'groups', { of: ({ groups = [] }) => groups.join(', ') }],
    ['Waiting', 'waiting', { hide: 1, of: ({ organizationId, id }) => alertChannels.waiting(organizationId, id) }],
    ['Delivered', 'delivered', { hide: 3, of: (channel) => stateOf(channel).delivered }],
    [
      'Dead letters',
      'dead_letters',
      { hide: 2, of: ({ organizationId, id }) => alertChannels.deadLetterCount(organizationId, id) },
    ],
    ['Last delivered', 'delivered_at', { hide: 6, of: (channel) => timeText(stateOf(channel).deliveredAtMs) }],
    ['Last failure', 'failure', { hide: 4, wrap: true, of: (channel) => stateOf(channel).failure }],
    ['Id', 'id', { hide: 7 }],
    [null, 'created_at'],
    ...(secret === undefined ? [] : [[null, 'secret', { of: () => secret }] as const]),
  ])(rows)
}

const tests = table<{ channel: string; answer: string }>([
  ['Channel', 'channel'],
  ['Result', 'result', { of: () => 'delivered' }],
  ['Answer', 'answer', { wrap: true }],
])

const ADD = {
  name: argument('<name>', 'Name of the channel for lists'),
  secretsKeyFile: SECRETS_KEY,
  outboundNetworks: OUTBOUND_NETWORKS,
  kind: option('--kind <kind>', 'Send in this form', oneOf(ALERT_CHANNEL_KINDS)),
  severityMin: option(
    '--min-severity <severity>',
    'Send only alerts of this severity and above',
    oneOf(ALERT_SEVERITIES).default('low'),
  ),
  rules: option('--rules <rule...>', 'Send only alerts of these rules', z.array(oneOf(ALERT_RULES)).optional()),
  groups: option(
    '--groups <group...>',
    'Send only alerts about these groups of clients, of five people or more',
    z.array(z.string()).optional(),
  ),
  url: option('--url <url>', 'Send to this URL of a webhook; use --url-file if the URL itself is secret'),
  urlFile: option(
    '--url-file <file>',
    'Read the URL of a webhook, Slack or Teams from this file; - reads standard input',
  ),
  host: option('--host <host>', 'Connect to this mail server or syslog receiver'),
  port: option(
    '--port <port>',
    'Connect to this port instead of the default one of the transport',
    portNumber().optional(),
  ),
  tls: option('--tls <mode>', 'Use TLS with the mail server; by default starttls', oneOf(SMTP_TLS_MODES).optional()),
  user: option('--user <name>', 'Sign in to the mail server as this user'),
  passwordFile: option(
    '--password-file <file>',
    'Read the password of the mail server from this file; - reads standard input',
  ),
  from: option('--from <address>', 'Send mail from this address'),
  to: option('--to <address...>', 'Send mail to these addresses', z.array(z.string()).optional()),
  transport: option(
    '--transport <name>',
    'Send syslog by this transport; by default tls',
    oneOf(SYSLOG_TRANSPORTS).optional(),
  ),
  format: option(
    '--format <name>',
    'Write alerts for a SIEM in this format; by default cef',
    oneOf(SYSLOG_FORMATS).optional(),
  ),
  caFile: CA_FILE,
}

type Given = { readonly [Name in keyof typeof ADD]: z.output<(typeof ADD)[Name]> }

/** @throws Fault USAGE */
async function settingsOf(given: Given & { readonly dataDir: string }) {
  const { kind, url, urlFile, passwordFile, caFile, host, port, tls, user, from, to, transport, format } = given
  if (url !== undefined && kind !== 'webhook') {
    throw new Fault('USAGE', `--url: the URL of ${kind} is secret; use --url-file`)
  }
  const all = {
    ...{ kind, host, port, tls, user, from, to, transport, format },
    url: urlFile === undefined ? url : await secretFrom('--url-file', urlFile, SECRET_BYTES_MAX),
    password: passwordFile && (await secretFrom('--password-file', passwordFile, SECRET_BYTES_MAX)),
    ca: caFile && certificatesIn(caFile),
  }
  /** The flag that gave, or would give, a setting. */
  const flagOf = (name: string): string => {
    const isFromFile = ['password', 'ca'].includes(name) || (name === 'url' && url === undefined)
    return `--${name}${isFromFile ? '-file' : ''}`
  }
  const checked = checkedChannel(defined(all) as GivenChannel)
  const invalid =
    checked.kind === 'invalid' ? checked.faults : [targetFault(checked.settings, outboundNetworksOf(given))]
  const faults = invalid.flatMap((fault) => (fault === undefined ? [] : `${flagOf(fault.name)}: ${fault.message}`))
  if (checked.kind === 'invalid' || faults.length > 0) throw new Fault('USAGE', faults.join('; '))
  return checked.settings
}

/** posture-admin alert channel */
const channelCommands = group('Manage alert channels: where alerts are sent', {
  add: change('Send alerts of an organization to a receiver', {
    params: ADD,
    read: settingsOf,
    run({ store, administration, organization }, { name, severityMin, rules, groups, secretsKeyFile }, settings) {
      const key = secretsKeyOf(store, secretsKeyFile)
      const filter = { severityMin, ...defined({ rules, groups }) }
      const channel = sealedChannel(key, organization, { name, ...filter, settings })
      const added = administration.alerts.addChannel(organization, channel)
      if (settings.kind !== 'webhook') return channels(store, [added])
      const { secret } = settings
      return { ...channels(store, [added], secret), secret: { name: 'signing secret', raw: secret } }
    },
  }),
  list: query('List the alert channels', {
    run: ({ store, organization }) => channels(store, store.alertChannels.ofOrganization(organization.id)),
  }),
  remove: change('Remove an alert channel, with the messages that wait for it', {
    params: { channel: CHANNEL },
    run: ({ store, administration, organization }, { channel }) =>
      channels(store, [administration.alerts.removeChannel(organization, channel)]),
  }),
  test: change('Send a test message now, and print what the receiver answers', {
    params: { channel: CHANNEL, secretsKeyFile: SECRETS_KEY, outboundNetworks: OUTBOUND_NETWORKS },
    async run({ store, administration, organization, clock }, { channel: name, secretsKeyFile, ...given }) {
      const options = {
        allowed: outboundNetworksOf(given),
        timeoutMs: ALERT_ATTEMPT_MS,
        signal: new AbortController().signal,
        version: programVersion(),
      }
      const channel = administration.alerts.beginTest(organization, name)
      const outcome = await sendTest(organization, channel, secretsKeyOf(store, secretsKeyFile), clock, options)
      if (outcome.kind !== 'delivered') throw new Fault('ALERT_NOT_SENT', `${name}: ${outcome.why}`)
      return tests([{ channel: name, answer: outcome.answer }])
    },
  }),
})

const alerts = table<Alert & { readonly deliveries: readonly AlertDelivery[] }>([
  ['Time', 'created_at'],
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
  [null, 'is_default'],
])

const letters = table<DeadLetter & { readonly channel: string }>([
  ['Channel', 'channel'],
  ['Number', 'number', { of: ({ sequence }) => sequence }],
  ['Message', 'title', { wrap: true, of: ({ json }) => (JSON.parse(json) as AlertMessage).title }],
  ['Queued', 'queued_at', { hide: 2 }],
  ['Failed', 'failed_at', { hide: 3 }],
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
