import { type Command, Option } from 'commander'
import type { Shown } from '../../process/table.ts'
import { type ApiKey, SCOPES, type Scope } from '../../store/api-keys.ts'
import { changeOptions, ofOrganization, sharedOptions, show, showSecret, timeText, withStore } from './context.ts'

/** posture-admin key create | list | revoke */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('Manage API keys, which authenticate API clients')

  const create = ofOrganization(
    changeOptions(
      key.command('create').description('Create an API key and show it once').argument('<label>', 'Label for lists'),
    ),
  ).addOption(new Option('--scope <scope...>', 'Grant these scopes').choices(SCOPES).default(SCOPES, 'all'))
  create.action((label: string, options: { org: string; scope: Scope[] }) =>
    withStore(create, ({ administration }) => {
      const { record, raw } = administration.apiKeys.create(
        administration.organization(options.org),
        label,
        options.scope,
      )
      print(create, [record], () => 0, raw)
    }),
  )

  const list = ofOrganization(sharedOptions(key.command('list').description('List the API keys of an organization')))
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      print(list, store.apiKeys.ofOrganization(id), (key) => store.keyUses.lastUseMs(id, key.id))
    }),
  )

  const revoke = ofOrganization(
    changeOptions(
      key
        .command('revoke')
        .description('Revoke an API key permanently')
        .argument('<key>', 'Id of the API key, or its 8 visible digits'),
    ),
  )
  revoke.action((idOrVisible: string, options: { org: string }) =>
    withStore(revoke, ({ store, administration }) => {
      const revoked = administration.apiKeys.revoke(administration.organization(options.org), idOrVisible)
      print(revoke, [revoked], (key) => store.keyUses.lastUseMs(key.organizationId, key.id))
    }),
  )
}

/** @param raw the key itself, if it was just created */
function print(command: Command, keys: readonly ApiKey[], lastUseMs: (key: ApiKey) => number, raw?: string): void {
  const shown: Shown = {
    columns: [
      ['Label', 'label'],
      ['Visible digits', 'visible'],
      ['Scopes', 'scopes', { hide: 3, wrap: true }],
      ['Created', 'created_at', { hide: 4 }],
      ['Last used', 'last_used_at', { hide: 2 }],
      ['Revoked', 'revoked_at', { hide: 1 }],
      ['Id', 'id', { hide: 5 }],
    ],
    rows: keys.map((key) => ({
      ...(raw === undefined ? {} : { key: raw }),
      id: key.id,
      label: key.label,
      visible: key.visible,
      scopes: key.scopes,
      created_at: timeText(key.createdAtMs),
      last_used_at: timeText(lastUseMs(key)),
      revoked_at: timeText(key.revokedAtMs),
    })),
  }
  if (raw === undefined) show(command, shown)
  else showSecret(command, shown, 'API key', raw)
}
