import type { Passkey } from '../store/users.ts'
import { argument, type Commands, query, table, timeText } from './command.ts'

const passkeys = table<Passkey>([
  ['Name', 'name', { wrap: true }],
  ['Host', 'host', { hide: 2, of: ({ rpId }) => rpId }],
  ['Synced', 'synced', { hide: 3, of: ({ isSynced }) => isSynced }],
  ['Created', 'created_at', { hide: 1 }],
  ['Last used', 'last_used_at', { of: ({ usedAtMs }) => timeText(usedAtMs) }],
  ['Blocked', 'blocked_at', { hide: 4 }],
  ['Id', 'id'],
])
const USER = argument('<name>', 'Name of the user for sign-in')

export const commands: Commands = {
  list: query('List the passkeys of a user', {
    organization: false,
    params: { user: USER },
    run: ({ administration }, { user }) => passkeys(administration.passkeys.list(user)),
  }),
  remove: query('Remove a passkey, such as that of a lost device, and end the sessions of its user', {
    organization: false,
    params: { user: USER, id: argument('<id>', 'Id of the passkey, or its first 8 characters') },
    run: ({ administration }, { user, id }) => passkeys([administration.passkeys.remove(user, id)]),
  }),
}
