import { type Command, Option } from 'commander'
import { type Clock, systemClock } from '../../process/clock.ts'
import { durationOption, futureOption } from '../../process/duration.ts'
import { Fault } from '../../process/error-codes.ts'
import { canAsk, Questions } from '../../process/questions.ts'
import type { Shown } from '../../process/table.ts'
import { type ApiKey, SCOPES, type Scope } from '../../store/api-keys.ts'
import { statusOf } from '../../store/secrets.ts'
import { changeOptions, ofOrganization, sharedOptions, show, showSecret, timeText, withStore } from './context.ts'

const KEY_ID = 'Id of the API key, or its 8 visible digits'

/** posture-admin key create | list | rotate | revoke */
export function addKeyCommands(key: Command): void {
  addCreate(key)
  addList(key)
  addRotate(key)
  addRevoke(key)
}

function addCreate(key: Command): void {
  const create = ofOrganization(
    changeOptions(
      key.command('create').description('Create an API key and show it once').argument('<label>', 'Label for lists'),
    ),
  )
    .addOption(
      new Option('--scope <scope...>', 'Grant these scopes; prompted for on a terminal, required otherwise').choices(
        SCOPES,
      ),
    )
    .addOption(expiresOption())
  create.action(async (label: string, { org, scope, expires }: { org?: string; scope?: Scope[]; expires?: number }) => {
    await withStore(create, async ({ administration, clock }) => {
      const organization = administration.organization(org)
      const scopes = scope ?? (await askScopes())
      const { record, raw } = administration.apiKeys.create(organization, label, scopes, expires)
      print(create, [record], clock, { raw })
    })
  })
}

function addList(key: Command): void {
  const list = ofOrganization(sharedOptions(key.command('list').description('List the API keys of an organization')))
  list.action((options: { org?: string }) =>
    withStore(list, ({ store, administration, clock }) => {
      const { id } = administration.organization(options.org)
      print(list, store.apiKeys.ofOrganization(id), clock, {
        lastUseMs: (key) => store.keyUses.lastUseMs(id, key.id),
      })
    }),
  )
}

function addRotate(key: Command): void {
  const rotate = ofOrganization(
    changeOptions(
      key
        .command('rotate')
        .description('Replace an API key by a new one with the same label and scopes, and show it once')
        .argument('<key>', KEY_ID),
    ),
  )
    .addOption(
      new Option(
        '--grace <duration>',
        'Keep the old key active for this time, such as 24h; by default it is revoked now',
      ).argParser(durationOption('0s', '365d')),
    )
    .addOption(expiresOption())
  rotate.action(
    (idOrVisible: string, { org, grace = 0, expires }: { org?: string; grace?: number; expires?: number }) =>
      withStore(rotate, ({ administration, clock }) => {
        const { record, raw, old } = administration.apiKeys.rotate(administration.organization(org), idOrVisible, {
          graceMs: grace,
          expiresAtMs: expires,
        })
        print(rotate, [record], clock, { raw, replaces: old })
      }),
  )
}

function addRevoke(key: Command): void {
  const revoke = ofOrganization(
    changeOptions(key.command('revoke').description('Revoke an API key permanently').argument('<key>', KEY_ID)),
  )
  revoke.action((idOrVisible: string, options: { org?: string }) =>
    withStore(revoke, ({ store, administration, clock }) => {
      const revoked = administration.apiKeys.revoke(administration.organization(options.org), idOrVisible)
      print(revoke, [revoked], clock, { lastUseMs: (key) => store.keyUses.lastUseMs(key.organizationId, key.id) })
    }),
  )
}

function expiresOption(): Option {
  return new Option('--expires <time>', 'Expire the key after a duration such as 90d, or at a time in UTC').argParser(
    futureOption(() => systemClock.nowMs()),
  )
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

interface PrintOptions {
  readonly lastUseMs?: (key: ApiKey) => number
  /** The key itself, where it was just created. */
  readonly raw?: string
  /** The key that the new one replaces. */
  readonly replaces?: ApiKey
}

function print(
  command: Command,
  keys: readonly ApiKey[],
  clock: Clock,
  { lastUseMs = () => 0, raw, replaces }: PrintOptions,
): void {
  const nowMs = clock.nowMs()
  const shown: Shown = {
    columns: [
      ['Label', 'label'],
      ['Visible digits', 'visible'],
      ['Status', 'status'],
      ['Scopes', 'scopes', { hide: 4, wrap: true }],
      ['Created', 'created_at', { hide: 5 }],
      ['Last used', 'last_used_at', { hide: 3 }],
      ['Expires', 'expires_at', { hide: 1 }],
      ['Revoked', 'revoked_at', { hide: 2 }],
      ...(replaces === undefined
        ? []
        : ([
            ['Replaces', 'replaces.visible'],
            ['Replaced key expires', 'replaces.expires_at'],
          ] as const)),
      ['Id', 'id', { hide: 6 }],
    ],
    rows: keys.map((key) => ({
      ...(raw === undefined ? {} : { key: raw }),
      ...fieldsOf(key, nowMs),
      last_used_at: timeText(lastUseMs(key)),
      ...(replaces === undefined ? {} : { replaces: fieldsOf(replaces, nowMs) }),
    })),
  }
  if (raw === undefined) show(command, shown)
  else showSecret(command, shown, 'API key', raw)
}

function fieldsOf(key: ApiKey, nowMs: number) {
  return {
    id: key.id,
    label: key.label,
    visible: key.visible,
    status: statusOf(key, nowMs),
    scopes: key.scopes,
    created_at: timeText(key.createdAtMs),
    expires_at: timeText(key.expiresAtMs ?? 0),
    revoked_at: timeText(key.revokedAtMs),
  }
}
