import { type Command, Option } from 'commander'
import { type ApiKey, SCOPES, type Scope } from '../../store/api-keys.ts'
import { changeOptions, ofOrganization, sharedOptions, show, timeText, withStore } from './context.ts'

/** posture-admin key create | list | revoke */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('API keys, by which clients read the API')

  const create = ofOrganization(
    changeOptions(key.command('create <label>').description('make an API key; it is shown once')),
  ).addOption(new Option('--scope <scope...>', 'what the key may read').choices(SCOPES).default(SCOPES, 'all'))
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

  const list = ofOrganization(sharedOptions(key.command('list').description('show the keys of an organization')))
  list.action((options: { org: string }) =>
    withStore(list, ({ store, administration }) => {
      const { id } = administration.organization(options.org)
      print(list, store.apiKeys.ofOrganization(id), (key) => store.keyUses.lastUseMs(id, key.id))
    }),
  )

  const revoke = ofOrganization(
    changeOptions(key.command('revoke <key>').description('end a key for ever, by its id or its 8 visible digits')),
  )
  revoke.action((idOrVisible: string, options: { org: string }) =>
    withStore(revoke, ({ store, administration }) => {
      const revoked = administration.apiKeys.revoke(administration.organization(options.org), idOrVisible)
      print(revoke, [revoked], (key) => store.keyUses.lastUseMs(key.organizationId, key.id))
    }),
  )
}

/** With the raw key only where it was made just now. */
function print(command: Command, keys: readonly ApiKey[], lastUseMs: (key: ApiKey) => number, raw?: string): void {
  show(command, {
    columns: [
      ...(raw === undefined ? [] : ([['Key (shown once)', 'key']] as const)),
      ['Label', 'label'],
      ['Begins', 'visible'],
      ['Scopes', 'scopes'],
      ['Created', 'created_at'],
      ['Last used', 'last_used_at'],
      ['Revoked', 'revoked_at'],
      ['Id', 'id'],
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
  })
}
