import { type Command, InvalidArgumentError, Option } from 'commander'
import { Fault } from '../../process/error-codes.ts'
import { portNumber } from '../../process/settings.ts'
import { DAY_ORDERS, type MonitoringToken } from '../../store/monitoring-tokens.ts'
import type { TokenBinding } from '../../store/token-bindings.ts'
import { describeBinding, type TokenChange } from '../tokens.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin token generate | list | revoke | set | bind | unbind */
export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('monitoring tokens, by which collectors and log senders are known')

  const generate = ofOrganization(
    changeOptions(token.command('generate <label>').description('make a monitoring token; it is shown once')),
  )
  generate.action((label: string, options: { org: string }) =>
    withStore(generate, ({ administration }) => {
      const { record, raw } = administration.tokens.generate(administration.organization(options.org), label)
      print(generate, [record], { raw })
    }),
  )

  const list = ofOrganization(sharedOptions(token.command('list').description('show the tokens of an organization')))
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      print(list, store.monitoringTokens.ofOrganization(id), {
        bindingsOf: (token) => store.tokenBindings.ofToken(id, token.id),
      })
    }),
  )

  const revoke = ofOrganization(
    changeOptions(
      token.command('revoke <token>').description('end a token for ever, by its id or its 8 visible digits'),
    ),
  )
  revoke.action((idOrVisible: string, options: { org: string }) =>
    withStore(revoke, ({ administration }) => {
      print(revoke, [administration.tokens.revoke(administration.organization(options.org), idOrVisible)])
    }),
  )

  const set = ofOrganization(
    changeOptions(token.command('set <token>').description("change a token's label, or how its devices write times")),
  )
    .option('--label <label>', 'what the token is called in lists and metrics')
    .option('--zone <zone>', "the zone of the devices' clocks, where their messages do not tell: +01:00, Europe/Berlin")
    .addOption(
      new Option('--day-order <order>', 'how its devices write 05/06/2026, where that does not show').choices(
        DAY_ORDERS,
      ),
    )
  set.action((idOrVisible: string, { org, ...change }: TokenChange & { org: string }) =>
    withStore(set, ({ administration }) => {
      const { label, zone, dayOrder } = change
      const given = Object.fromEntries(
        Object.entries({ label, zone, dayOrder }).filter(([, value]) => value !== undefined),
      )
      if (Object.keys(given).length === 0)
        throw new Fault('USAGE', 'nothing to change: give --label, --zone or --day-order')
      print(set, [administration.tokens.set(administration.organization(org), idOrVisible, given)])
    }),
  )

  const bind = ofOrganization(
    changeOptions(
      token
        .command('bind <token>')
        .description(
          'take syslog without a token from an address or to a port as that of a token: for devices that cannot send one',
        ),
    ),
  )
    .option('--address <network>', 'the address of the device, or a network as 192.0.2.0/24')
    .addOption(new Option('--port <port>', 'the port of the service that it sends to').argParser(portOption))
  bind.action((idOrVisible: string, options: { org: string; address?: string; port?: number }) =>
    withStore(bind, ({ administration }) => {
      const to = { network: options.address ?? '', port: options.port ?? 0 }
      printBindings(bind, [administration.tokens.bind(administration.organization(options.org), idOrVisible, to)])
    }),
  )

  const unbind = ofOrganization(
    changeOptions(token.command('unbind <token>').description('end all bindings of a token')),
  )
  unbind.action((idOrVisible: string, options: { org: string }) =>
    withStore(unbind, ({ administration }) => {
      printBindings(unbind, administration.tokens.unbind(administration.organization(options.org), idOrVisible))
    }),
  )
}

function portOption(text: string): number {
  const port = portNumber().safeParse(text)
  if (port.success) return port.data
  throw new InvalidArgumentError('expected a port from 1 to 65535')
}

function printBindings(command: Command, bindings: readonly TokenBinding[]): void {
  show(command, {
    columns: [
      ['Address', 'address'],
      ['Port', 'port'],
      ['Token', 'token_id'],
    ],
    rows: bindings.map(({ network, port, tokenId }) => {
      return { address: network === '' ? 'any' : network, port: port === 0 ? 'any' : port, token_id: tokenId }
    }),
  })
}

interface PrintOptions {
  /** Only where the token was made just now. */
  readonly raw?: string
  readonly bindingsOf?: (token: MonitoringToken) => readonly TokenBinding[]
}

function print(
  command: Command,
  tokens: readonly MonitoringToken[],
  { raw, bindingsOf = () => [] }: PrintOptions = {},
): void {
  show(command, {
    columns: [
      ...(raw === undefined ? [] : ([['Token (shown once)', 'token']] as const)),
      ['Label', 'label'],
      ['Begins', 'visible'],
      ['Bound to', 'bound_to'],
      ['Zone', 'zone'],
      ['Days', 'day_order'],
      ['Created', 'created_at'],
      ['Revoked', 'revoked_at'],
      ['Id', 'id'],
    ],
    rows: tokens.map((token) => ({
      ...(raw === undefined ? {} : { token: raw }),
      id: token.id,
      label: token.label,
      visible: token.visible,
      bound_to: bindingsOf(token).map(describeBinding),
      zone: token.zone ?? 'UTC',
      day_order: token.dayOrder ?? '',
      created_at: timeText(token.createdAtMs),
      revoked_at: timeText(token.revokedAtMs),
    })),
  })
}
