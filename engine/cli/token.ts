import { z } from 'zod'
import { ruleOfFile } from '../admin/format-rule-file.ts'
import { describeBinding } from '../admin/tokens.ts'
import { oneOf, onOrOff, portNumber } from '../kernel/process/settings.ts'
import { DAY_ORDERS, type MonitoringToken, type TokenBinding } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import { argument, assertGiven, type Commands, change, defined, option, query, table } from './command.ts'
import type { Result } from './context.ts'

const TOKEN = argument('<token>', 'Id of the token, or its prefix of 8 digits')

/** @param raw the token itself, if it was just created */
function tokens({ tokenBindings }: Store, rows: readonly MonitoringToken[], raw?: string): Result {
  const boundTo = ({ organizationId, id }: MonitoringToken): string[] =>
    tokenBindings.ofToken(organizationId, id).map(describeBinding)
  const shown = table<MonitoringToken>([
    ...(raw === undefined ? [] : [[null, 'token', { of: () => raw }] as const]),
    ['Label', 'label'],
    ['Prefix', 'prefix', { of: ({ visible }) => visible }],
    ['Bound to', 'bound_to', { hide: 2, wrap: true, of: boundTo }],
    ['Zone', 'zone', { hide: 3, of: ({ zone = 'UTC' }) => zone }],
    ['Date order', 'date_order', { hide: 4, of: ({ dayOrder = null }) => dayOrder }],
    ['Custom format', 'custom_format', { hide: 7, of: ({ formatRule }) => formatRule?.name ?? null }],
    ['Forwarded clients', 'forwarded_clients', { hide: 8, of: ({ forwardedClients = false }) => forwardedClients }],
    ['Created', 'created_at', { hide: 5 }],
    ['Revoked', 'revoked_at', { hide: 1 }],
    ['Id', 'id', { hide: 6 }],
  ])(rows)
  return raw === undefined ? shown : { ...shown, secret: { name: 'Monitoring token', raw } }
}

const anyOr = (value: unknown): string => (value === null ? 'any' : String(value))

const bindings = table<TokenBinding>([
  ['Address', 'address', { text: anyOr, of: ({ network }) => network || null }],
  ['Port', 'port', { text: anyOr, of: ({ port }) => port || null }],
  ['Token', 'token_id'],
])

export const commands: Commands = {
  generate: change('Generate a monitoring token and show it once', {
    params: { label: argument('<label>', 'Label for lists and metrics') },
    run({ store, administration, organization }, { label }) {
      const { record, raw } = administration.tokens.generate(organization, label)
      return tokens(store, [record], raw)
    },
  }),
  list: query('List the monitoring tokens of an organization', {
    run: ({ store, organization }) => tokens(store, store.monitoringTokens.ofOrganization(organization.id)),
  }),
  revoke: change('Revoke a monitoring token permanently', {
    params: { token: TOKEN },
    run: ({ store, administration, organization }, { token }) =>
      tokens(store, [administration.tokens.revoke(organization, token)]),
  }),
  set: change('Change the label of a token, or how the messages of its devices are read', {
    params: {
      token: TOKEN,
      label: option('--label <label>', 'Set the label for lists and metrics'),
      zone: option('--zone <zone>', 'Set the time zone of devices whose messages have none: +01:00 or Europe/Berlin'),
      dayOrder: option(
        '--date-order <order>',
        'Set how ambiguous dates such as 05/06/2026 are read',
        oneOf(DAY_ORDERS).optional(),
      ),
      forwardedClients: option(
        '--forwarded-clients <switch>',
        'Read the original client of X-Forwarded-For and the like, which the devices must overwrite',
        onOrOff().optional(),
      ),
      ruleFile: option(
        '--format-rule <file>',
        'Read messages by the rule of a custom format in this YAML file; "none" removes the rule',
      ),
    },
    read({ label, zone, dayOrder, forwardedClients, ruleFile }) {
      const formatRule = ruleFile === 'none' ? null : ruleFile && ruleOfFile('--format-rule', ruleFile)
      const given = defined({
        ...{ label, zone, dayOrder, forwardedClients },
        formatRule: formatRule === '' ? undefined : formatRule,
      })
      assertGiven(given, '--label, --zone, --date-order, --forwarded-clients or --format-rule')
      return given
    },
    run: ({ store, administration, organization }, { token }, given) =>
      tokens(store, [administration.tokens.set(organization, token, given)]),
  }),
  bind: change('Attribute syslog without a token to this token, by sender address or by port', {
    params: {
      token: TOKEN,
      address: option(
        '--address <network>',
        'Bind this sender address, or a network such as 192.0.2.0/24; may be repeated',
        z.array(z.string()).default([]),
      ),
      port: option(
        '--port <port>',
        'Bind this port of the service; may be repeated',
        z.array(portNumber()).default([]),
      ),
    },
    run({ administration, organization }, { token, address, port }) {
      const networks = address.length === 0 && port.length > 0 ? [''] : address
      const ports = port.length === 0 ? [0] : port
      const targets = networks.flatMap((network) => ports.map((each) => ({ network, port: each })))
      return bindings(administration.tokens.bind(organization, token, targets))
    },
  }),
  unbind: change('Remove all bindings of a token', {
    params: { token: TOKEN },
    run: ({ administration, organization }, { token }) => bindings(administration.tokens.unbind(organization, token)),
  }),
}
