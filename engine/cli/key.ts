import { z } from 'zod'
import { systemClock } from '../kernel/process/clock.ts'
import { duration, futureTime } from '../kernel/process/duration.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { canAsk, Questions } from '../kernel/process/questions.ts'
import { oneOf } from '../kernel/process/settings.ts'
import { type ApiKey, SCOPES, type Scope, statusOf } from '../store/secrets.ts'
import { argument, type Commands, change, option, query, table, timeText } from './command.ts'
import type { AdminContext, Result } from './context.ts'

const KEY = argument('<key>', 'Id of the API key, or its prefix of 8 digits')
const EXPIRES = option(
  '--expires <time>',
  'Expire the key after a duration such as 90d, or at a time in UTC',
  futureTime(() => systemClock.nowMs()).optional(),
)

/** @param more the key itself, where it was just created, and the key that it replaces */
function keys(
  { store, clock }: AdminContext,
  rows: readonly ApiKey[],
  { raw, replaces }: { readonly raw?: string; readonly replaces?: ApiKey } = {},
): Result {
  const status = (key: ApiKey): string => statusOf(key, clock.nowMs())
  const fields = [
    ['Label', 'label'],
    ['Prefix', 'prefix', { of: ({ visible }: ApiKey) => visible }],
    ['Status', 'status', { of: status }],
    ['Scopes', 'scopes', { hide: 4, wrap: true }],
    ['Created', 'created_at', { hide: 5 }],
    ['Expires', 'expires_at', { hide: 1 }],
    ['Revoked', 'revoked_at', { hide: 2 }],
    ['Id', 'id', { hide: 6 }],
  ] as const
  const lastUseMs = ({ organizationId, id }: ApiKey): number => store.keyUses.lastUseMs(organizationId, id)
  const before = replaces && table<ApiKey>(fields)([replaces]).rows[0]
  const shown = table<ApiKey>([
    ...(raw === undefined ? [] : [[null, 'key', { of: () => raw }] as const]),
    ...fields.slice(0, -1),
    ['Last used', 'last_used_at', { hide: 3, of: (key) => timeText(lastUseMs(key)) }],
    ...(before === undefined
      ? []
      : ([
          [null, 'replaces', { of: () => before }],
          ['Replaces', 'replaces.visible'],
          ['Replaced key expires', 'replaces.expires_at'],
        ] as const)),
    ...fields.slice(-1),
  ])(rows)
  return raw === undefined ? shown : { ...shown, secret: { name: 'API key', raw } }
}

export const commands: Commands = {
  create: change('Create an API key and show it once', {
    params: {
      label: argument('<label>', 'Label for lists'),
      scope: option(
        '--scope <scope...>',
        'Grant these scopes; prompted for on a terminal, required otherwise',
        z.array(oneOf(SCOPES)).optional(),
      ),
      expiresAtMs: EXPIRES,
    },
    async run(context, { label, scope, expiresAtMs }) {
      const { administration, organization } = context
      const scopes = scope ?? (await askScopes())
      const { record, raw } = administration.apiKeys.create(organization, label, scopes, expiresAtMs)
      return keys(context, [record], { raw })
    },
  }),
  list: query('List the API keys of an organization', {
    run: (context) => keys(context, context.store.apiKeys.ofOrganization(context.organization.id)),
  }),
  rotate: change('Replace an API key by a new one with the same label and scopes, and show it once', {
    params: {
      key: KEY,
      graceMs: option(
        '--grace <duration>',
        'Keep the old key active for this time, such as 24h; by default it is revoked now',
        duration('0s', '365d').optional(),
      ),
      expiresAtMs: EXPIRES,
    },
    run(context, { key, graceMs = 0, expiresAtMs }) {
      const { administration, organization } = context
      const { record, raw, old } = administration.apiKeys.rotate(organization, key, { graceMs, expiresAtMs })
      return keys(context, [record], { raw, replaces: old })
    },
  }),
  revoke: change('Revoke an API key permanently', {
    params: { key: KEY },
    run: (context, { key }) => keys(context, [context.administration.apiKeys.revoke(context.organization, key)]),
  }),
}

/** No key gets a scope that nobody asked for. */
async function askScopes(): Promise<Scope[]> {
  if (!canAsk()) throw new Fault('USAGE', `--scope is required: one or more of ${SCOPES.join(', ')}`)
  const questions = new Questions()
  try {
    return await questions.choices('Scopes of the API key', SCOPES)
  } finally {
    questions.close()
  }
}
