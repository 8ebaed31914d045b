import { type Command, InvalidArgumentError, Option } from 'commander'
import { Fault } from '../../process/error-codes.ts'
import { portNumber } from '../../process/settings.ts'
import type { Shown } from '../../process/table.ts'
import { DAY_ORDERS, type MonitoringToken } from '../../store/monitoring-tokens.ts'
import type { Store } from '../../store/store.ts'
import type { TokenBinding } from '../../store/token-bindings.ts'
import { ruleOfFile } from '../format-rule-file.ts'
import { describeBinding, type TokenChange } from '../tokens.ts'
import { changeOptions, ofOrganization, sharedOptions, show, showSecret, timeText, withStore } from './context.ts'

const TOKEN_ID = 'Id of the token, or its 8 visible digits'

/** posture-admin token generate | list | revoke | set | bind | unbind */
export function addTokenCommands(token: Command): void {
  const generate = ofOrganization(
    changeOptions(
      token
        .command('generate')
        .description('Generate a monitoring token and show it once')
        .argument('<label>', 'Label for lists and metrics'),
    ),
  )
  generate.action((label: string, options: { org?: string }) =>
    withStore(generate, ({ administration }) => {
      const { record, raw } = administration.tokens.generate(administration.organization(options.org), label)
      print(generate, [record], { raw })
    }),
  )

  const list = ofOrganization(
    sharedOptions(token.command('list').description('List the monitoring tokens of an organization')),
  )
  list.action((options: { org?: string }) =>
    withStore(list, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      print(list, store.monitoringTokens.ofOrganization(id), {
        bindingsOf: bindingsIn(store),
      })
    }),
  )

  const revoke = ofOrganization(
    changeOptions(
      token.command('revoke').description('Revoke a monitoring token permanently').argument('<token>', TOKEN_ID),
    ),
  )
  revoke.action((idOrVisible: string, options: { org?: string }) =>
    withStore(revoke, ({ store, administration }) => {
      const revoked = administration.tokens.revoke(administration.organization(options.org), idOrVisible)
      print(revoke, [revoked], { bindingsOf: bindingsIn(store) })
    }),
  )

  const set = ofOrganization(
    changeOptions(
      token
        .command('set')
        .description('Change the label of a token, or how the messages of its devices are read')
        .argument('<token>', TOKEN_ID),
    ),
  )
    .option('--label <label>', 'Set the label for lists and metrics')
    .option('--zone <zone>', 'Set the time zone of devices whose messages have none: +01:00 or Europe/Berlin')
    .addOption(
      new Option('--day-order <order>', 'Set how ambiguous dates such as 05/06/2026 are read').choices(DAY_ORDERS),
    )
    .option(
      '--format-rule <file>',
      'Read messages by the rule of an own format in this YAML file; "none" removes the rule',
    )
  set.action((idOrVisible: string, { org, ...change }: SetFlags) =>
    withStore(set, ({ store, administration }) => {
      const { label, zone, dayOrder, formatRule: file } = change
      const formatRule = file === undefined ? undefined : file === 'none' ? null : ruleOfFile('--format-rule', file)
      const given = Object.fromEntries(
        Object.entries({ label, zone, dayOrder, formatRule }).filter(([, value]) => value !== undefined),
      )
      if (Object.keys(given).length === 0)
        throw new Fault('USAGE', 'nothing to change: give --label, --zone, --day-order or --format-rule')
      const changed = administration.tokens.set(administration.organization(org), idOrVisible, given)
      print(set, [changed], { bindingsOf: bindingsIn(store) })
    }),
  )

  const bind = ofOrganization(
    changeOptions(
      token
        .command('bind')
        .description('Attribute syslog without a token to this token, by sender address or by port')
        .argument('<token>', TOKEN_ID),
    ),
  )
    .addOption(
      new Option(
        '--address <network>',
        'Bind this sender address, or a network such as 192.0.2.0/24; may be repeated',
      ).argParser(each((text) => text)),
    )
    .addOption(
      new Option('--port <port>', 'Bind this port of the service; may be repeated').argParser(each(portOption)),
    )
  bind.action((idOrVisible: string, { org, address = [], port = [] }: BindFlags) =>
    withStore(bind, ({ administration }) => {
      const networks = address.length === 0 && port.length > 0 ? [''] : address
      const ports = port.length === 0 ? [0] : port
      const targets = networks.flatMap((network) => ports.map((each) => ({ network, port: each })))
      printBindings(bind, administration.tokens.bind(administration.organization(org), idOrVisible, targets))
    }),
  )

  const unbind = ofOrganization(
    changeOptions(token.command('unbind').description('Remove all bindings of a token').argument('<token>', TOKEN_ID)),
  )
  unbind.action((idOrVisible: string, options: { org?: string }) =>
    withStore(unbind, ({ administration }) => {
      printBindings(unbind, administration.tokens.unbind(administration.organization(options.org), idOrVisible))
    }),
  )
}

type SetFlags = Omit<TokenChange, 'formatRule'> & { readonly org?: string; readonly formatRule?: string }

interface BindFlags {
  readonly org?: string
  readonly address?: readonly string[]
  readonly port?: readonly number[]
}

/** Collects the values of an option that may be repeated. */
function each<T>(read: (text: string) => T): (text: string, before?: readonly T[]) => readonly T[] {
  return (text, before = []) => [...before, read(text)]
}

function portOption(text: string): number {
  const port = portNumber().safeParse(text)
  if (port.success) return port.data
  throw new InvalidArgumentError('expected a port from 1 to 65535')
}

function printBindings(command: Command, bindings: readonly TokenBinding[]): void {
  show(command, {
    columns: [
      ['Address', 'address', { text: anyOr }],
      ['Port', 'port', { text: anyOr }],
      ['Token', 'token_id'],
    ],
    rows: bindings.map(({ network, port, tokenId }) => {
      return { address: network === '' ? null : network, port: port === 0 ? null : port, token_id: tokenId }
    }),
  })
}

function anyOr(value: unknown): string {
  return value === null ? 'any' : String(value)
}

function bindingsIn({ tokenBindings }: Store): (token: MonitoringToken) => readonly TokenBinding[] {
  return ({ organizationId, id }) => tokenBindings.ofToken(organizationId, id)
}

interface PrintOptions {
  /** The token itself, if it was just created. */
  readonly raw?: string
  readonly bindingsOf?: (token: MonitoringToken) => readonly TokenBinding[]
}

function print(
  command: Command,
  tokens: readonly MonitoringToken[],
  { raw, bindingsOf = () => [] }: PrintOptions = {},
): void {
  const shown: Shown = {
    columns: [
      ['Label', 'label'],
      ['Visible digits', 'visible'],
      ['Bound to', 'bound_to', { hide: 2, wrap: true }],
      ['Zone', 'zone', { hide: 3 }],
      ['Day order', 'day_order', { hide: 4 }],
      ['Own format', 'own_format', { hide: 7 }],
      ['Created', 'created_at', { hide: 5 }],
      ['Revoked', 'revoked_at', { hide: 1 }],
      ['Id', 'id', { hide: 6 }],
    ],
    rows: tokens.map((token) => ({
      ...(raw === undefined ? {} : { token: raw }),
      id: token.id,
      label: token.label,
      visible: token.visible,
      bound_to: bindingsOf(token).map(describeBinding),
      zone: token.zone ?? 'UTC',
      day_order: token.dayOrder ?? null,
      own_format: token.formatRule?.name ?? null,
      created_at: timeText(token.createdAtMs),
      revoked_at: timeText(token.revokedAtMs),
    })),
  }
  if (raw === undefined) show(command, shown)
  else showSecret(command, shown, 'Monitoring token', raw)
}
