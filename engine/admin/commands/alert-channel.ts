import { readFileSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import {
  SMTP_TLS_MODES,
  SYSLOG_FORMATS,
  SYSLOG_TRANSPORTS,
  type WebhookSettings,
} from '../../alert/channel-settings.ts'
import { sendTest } from '../../alert/send-test.ts'
import { ALERT_ATTEMPT_MS } from '../../limits.ts'
import { Fault } from '../../process/error-codes.ts'
import { readPrivateFile } from '../../process/private-file.ts'
import { SecretsKey, secretsKeyFile, secretsKeySetting } from '../../process/secrets-key.ts'
import { addSettingOptions, networkList, readSettings, setting } from '../../process/settings.ts'
import { sudoUser } from '../../process/token-setting.ts'
import { programVersion } from '../../process/version.ts'
import { ALERT_CHANNEL_KINDS, type AlertChannel, type AlertChannelKind } from '../../store/alert-channels.ts'
import { ALERT_SEVERITIES, type AlertSeverity } from '../../store/alerts.ts'
import type { Store } from '../../store/store.ts'
import { checkedChannel, type GivenChannel } from '../alert-settings.ts'
import { sealedChannel } from '../alerts.ts'
import {
  changeOptions,
  countOption,
  dataDirectoryOf,
  ofOrganization,
  sharedOptions,
  show,
  showSecret,
  timeText,
  withStore,
} from './context.ts'

const CHANNEL = 'Name or id of the alert channel'
const PORT_MAX = 65_535

const keySettings = z.object({ secretsKeyFile: secretsKeySetting })
const testSettings = z.object({
  outboundNetworks: setting(networkList().default([]), {
    flag: '--outbound-networks <networks>',
    env: 'OUTBOUND_NETWORKS',
    about: 'Allow receivers in these networks, comma-separated, as the service does; others need public addresses',
  }),
})

interface Given {
  readonly org?: string
  readonly kind: AlertChannelKind
  readonly minSeverity: AlertSeverity
  readonly url?: string
  readonly urlFile?: string
  readonly host?: string
  readonly port?: number
  readonly tls?: string
  readonly user?: string
  readonly passwordFile?: string
  readonly from?: string
  readonly to?: readonly string[]
  readonly transport?: string
  readonly format?: string
  readonly caFile?: string
}

/** posture-admin alert channel add | list | remove | test */
export function addAlertChannelCommands(alert: Command): void {
  const channel = alert.command('channel').description('Manage alert channels: where alerts are sent')
  addAdd(channel)

  const list = ofOrganization(sharedOptions(channel.command('list').description('List the alert channels')))
  list.action(({ org }: { org?: string }) =>
    withStore(list, ({ store, administration }) => {
      print(list, store, store.alertChannels.ofOrganization(administration.organization(org).id))
    }),
  )

  const remove = ofOrganization(
    changeOptions(
      channel
        .command('remove')
        .description('Remove an alert channel, with the messages that wait for it')
        .argument('<channel>', CHANNEL),
    ),
  )
  remove.action((name: string, { org }: { org?: string }) =>
    withStore(remove, ({ store, administration }) => {
      print(remove, store, [administration.alerts.removeChannel(administration.organization(org), name)])
    }),
  )

  addTest(channel)
}

function addAdd(channel: Command): void {
  const add = addSettingOptions(
    ofOrganization(
      changeOptions(
        channel
          .command('add')
          .description('Send alerts of an organization to a receiver')
          .argument('<name>', 'Name of the channel for lists'),
      ),
    ),
    keySettings,
  )
    .addOption(new Option('--kind <kind>', 'Send in this form').choices(ALERT_CHANNEL_KINDS).makeOptionMandatory())
    .addOption(
      new Option('--min-severity <severity>', 'Send only alerts of this severity and above')
        .choices(ALERT_SEVERITIES)
        .default('low'),
    )
    .option('--url <url>', 'Send to this URL of a webhook; use --url-file if the URL itself is secret')
    .option('--url-file <file>', 'Read the URL of a webhook, Slack or Teams from this file; - reads standard input')
    .option('--host <host>', 'Connect to this mail server or syslog receiver')
    .addOption(
      new Option('--port <port>', 'Connect to this port instead of the default one of the transport').argParser(
        countOption(1, PORT_MAX),
      ),
    )
    .addOption(new Option('--tls <mode>', 'Use TLS with the mail server; by default starttls').choices(SMTP_TLS_MODES))
    .option('--user <name>', 'Sign in to the mail server as this user')
    .option('--password-file <file>', 'Read the password of the mail server from this file; - reads standard input')
    .option('--from <address>', 'Send mail from this address')
    .option('--to <address...>', 'Send mail to these addresses')
    .addOption(
      new Option('--transport <name>', 'Send syslog by this transport; by default tls').choices(SYSLOG_TRANSPORTS),
    )
    .addOption(
      new Option('--format <name>', 'Write alerts for a SIEM in this format; by default cef').choices(SYSLOG_FORMATS),
    )
    .option('--ca-file <file>', 'Trust the certificates in this PEM file instead of those of the system')
  add.action((name: string, given: Given) =>
    withStore(add, async ({ store, administration }) => {
      const organization = administration.organization(given.org)
      const checked = checkedChannel(await settingsOf(given))
      if (checked.kind === 'invalid') {
        const faults = checked.faults.map((fault) => `${FLAGS[fault.name] ?? fault.name}: ${fault.message}`)
        throw new Fault('USAGE', faults.join('; '))
      }
      const { settings } = checked
      const channel = sealedChannel(keyOf(add), organization, { name, severityMin: given.minSeverity, settings })
      const added = administration.alerts.addChannel(organization, channel)
      print(add, store, [added], settings.kind === 'webhook' ? settings : undefined)
    }),
  )
}

const FLAGS: Readonly<Record<string, string>> = {
  url: '--url-file',
  host: '--host',
  port: '--port',
  tls: '--tls',
  user: '--user',
  password: '--password-file',
  from: '--from',
  to: '--to',
  transport: '--transport',
  format: '--format',
  ca: '--ca-file',
}

/** Secrets never come from the command line, which other users can read. */
async function settingsOf(given: Given): Promise<GivenChannel> {
  const { kind, url, urlFile, host, port, tls, user, passwordFile, from, to, transport, format, caFile } = given
  if (url !== undefined && kind !== 'webhook') {
    throw new Fault('USAGE', `--url: the URL of ${kind} is secret; use --url-file`)
  }
  const all = {
    kind,
    url: urlFile === undefined ? url : await secretFrom('--url-file', urlFile),
    host,
    port,
    tls,
    user,
    password: passwordFile === undefined ? undefined : await secretFrom('--password-file', passwordFile),
    from,
    to,
    transport,
    format,
    ca: caFile === undefined ? undefined : certificatesIn(caFile),
  }
  const entries = Object.entries(all).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as GivenChannel
}

async function secretFrom(flag: string, file: string): Promise<string> {
  const where = `${flag} ${file}`
  if (file !== '-') return readPrivateFile(where, file, { code: 'USAGE', owners: sudoUser(process.env) })
  let text = ''
  for await (const part of process.stdin) {
    text += String(part)
    if (text.length > SECRET_CHARS_MAX) throw new Fault('USAGE', `${where}: expected a secret, found more`)
  }
  return text.trim()
}

const SECRET_CHARS_MAX = 1024

function certificatesIn(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Fault('USAGE', `--ca-file: ${(error as Error).message}`, { cause: error })
  }
}

function addTest(channel: Command): void {
  const test = addSettingOptions(
    addSettingOptions(
      ofOrganization(
        changeOptions(
          channel
            .command('test')
            .description('Send a test message now, and print what the receiver answers')
            .argument('<channel>', CHANNEL),
        ),
      ),
      keySettings,
    ),
    testSettings,
  )
  test.action((name: string, { org }: { org?: string }) =>
    withStore(test, async ({ administration, clock }) => {
      const { outboundNetworks: allowed } = readSettings(testSettings, { command: test, environment: process.env })
      const options = {
        allowed,
        timeoutMs: ALERT_ATTEMPT_MS,
        signal: new AbortController().signal,
        version: programVersion(),
      }
      const organization = administration.organization(org)
      const channel = administration.alerts.beginTest(organization, name)
      const outcome = await sendTest(organization, channel, keyOf(test), clock, options)
      if (outcome.kind !== 'delivered') throw new Fault('ALERT_NOT_SENT', `${name}: ${outcome.why}`)
      show(test, {
        columns: [
          ['Channel', 'channel'],
          ['Result', 'result'],
          ['Answer', 'answer', { wrap: true }],
        ],
        rows: [{ channel: name, result: 'delivered', answer: outcome.answer }],
      })
    }),
  )
}

function keyOf(command: Command): SecretsKey {
  const { secretsKeyFile: file } = readSettings(keySettings, { command, environment: process.env })
  return new SecretsKey(secretsKeyFile(file, dataDirectoryOf(command)))
}

function print(
  command: Command,
  { alertChannels }: Store,
  channels: readonly AlertChannel[],
  webhook?: WebhookSettings,
): void {
  const shown = {
    columns: [
      ['Name', 'name'],
      ['Kind', 'kind'],
      ['Receiver', 'target', { wrap: true }],
      ['Severity', 'min_severity', { hide: 5 }],
      ['Waiting', 'waiting', { hide: 1 }],
      ['Delivered', 'delivered', { hide: 3 }],
      ['Dead letters', 'dead_letters', { hide: 2 }],
      ['Last delivered', 'delivered_at', { hide: 6 }],
      ['Last failure', 'failure', { hide: 4, wrap: true }],
      ['Id', 'id', { hide: 7 }],
    ],
    rows: channels.map((channel) => {
      const { organizationId, id, name, kind, target, severityMin, createdAtMs } = channel
      const state = alertChannels.state(organizationId, id)
      return {
        id,
        name,
        kind,
        target,
        min_severity: severityMin,
        waiting: alertChannels.waiting(organizationId, id),
        delivered: state.delivered,
        dead_letters: alertChannels.deadLetterCount(organizationId, id),
        delivered_at: timeText(state.deliveredAtMs),
        failure: state.failure === '' ? null : state.failure,
        created_at: timeText(createdAtMs),
        ...(webhook === undefined ? {} : { secret: webhook.secret }),
      }
    }),
  } as const
  if (webhook === undefined) show(command, shown)
  else showSecret(command, shown, 'signing secret', webhook.secret)
}
