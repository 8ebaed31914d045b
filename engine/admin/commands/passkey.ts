import type { Command } from 'commander'
import type { Passkey } from '../../store/passkeys.ts'
import { sharedOptions, show, timeText, withStore } from './context.ts'

const USER = 'Name of the user for sign-in'

/** posture-admin passkey list | remove */
export function addPasskeyCommands(passkey: Command): void {
  const list = sharedOptions(
    passkey.command('list').description('List the passkeys of a user').argument('<name>', USER),
  )
  list.action((name: string) =>
    withStore(list, ({ administration }) => print(list, administration.passkeys.list(name))),
  )

  const remove = sharedOptions(
    passkey
      .command('remove')
      .description('Remove a passkey, such as that of a lost device, and end the sessions of its user')
      .argument('<name>', USER)
      .argument('<id>', 'Id of the passkey, or its first 8 characters'),
  )
  remove.action((name: string, id: string) =>
    withStore(remove, ({ administration }) => print(remove, [administration.passkeys.remove(name, id)])),
  )
}

function print(command: Command, passkeys: readonly Passkey[]): void {
  show(command, {
    columns: [
      ['Name', 'name', { wrap: true }],
      ['Host', 'host', { hide: 2 }],
      ['Synced', 'synced', { hide: 3 }],
      ['Created', 'created_at', { hide: 1 }],
      ['Last used', 'last_used_at'],
      ['Blocked', 'blocked_at', { hide: 4 }],
      ['Id', 'id'],
    ],
    rows: passkeys.map(({ id, name, rpId, isSynced, createdAtMs, usedAtMs, blockedAtMs }) => {
      const times = { created_at: timeText(createdAtMs), last_used_at: timeText(usedAtMs) }
      return { name, host: rpId, synced: isSynced, ...times, blocked_at: timeText(blockedAtMs), id }
    }),
  })
}
