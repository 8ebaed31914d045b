import { backUp, withBackupFile } from '../admin/backup.ts'
import { openBackup } from '../admin/backup-file.ts'
import { type Restored, restore } from '../admin/restore.ts'
import { systemClock } from '../kernel/process/clock.ts'
import type { NewFile } from '../kernel/process/new-file.ts'
import { printable } from '../kernel/process/table.ts'
import { argument, type Commands, flag, plain, query, STORE_PARAMS, table } from './command.ts'
import { actorOf, becomeOwnerOf, withStore } from './context.ts'
import { longWork } from './long-work.ts'
import { filesBesideStore, printKeyProblems } from './service-options.ts'

const backups = table<object>([
  ['File', 'file', { wrap: true }],
  ['Bytes', 'bytes'],
  ['Schema', 'schema'],
  ['Records', 'records'],
  ['Seconds', 'seconds'],
  ['Also copy', 'also_copy', { wrap: true }],
])
const restores = table<Restored>([
  ['Organizations', 'organizations'],
  ['Records', 'records'],
  ['Schema', 'schema'],
  ['Revoked again', 'revoked'],
  ['Removed before', 'removed_organizations'],
  ['Old store kept in', 'kept', { wrap: true }],
  [null, 'unreadable'],
])

/** posture-admin backup */
export const commands: Commands = {
  '': query('', {
    organization: false,
    params: { path: argument('<file>', 'File to write'), force: flag('--force', 'Replace an existing file') },
    around: ({ path, force }, work: (file: NewFile) => Promise<void>) => withBackupFile(path, force, work),
    async run({ store, clock, actor }, _, file) {
      const startedMs = clock.nowMs()
      const made = await longWork('backup canceled', (onProgress, signal) =>
        backUp(store, file, { onProgress, signal, actor, clock }),
      )
      if (made === undefined) return
      const seconds = (clock.nowMs() - startedMs) / 1000
      return backups([{ ...made, seconds, also_copy: filesBesideStore(store.dataDirectory) }])
    },
  }),
}

/** posture-admin restore */
export const restoreCommands: Commands = {
  '': plain(
    '',
    {
      ...STORE_PARAMS,
      file: argument('<file>', 'Backup to read'),
      force: flag('--force', 'Replace an existing store, which is kept next to the new one'),
    },
    async (given, output) => {
      const { file, force, dataDir } = given
      const backup = await openBackup(file)
      const options = { force, actor: actorOf({}), clock: systemClock }
      becomeOwnerOf(dataDir, { create: true })
      const restored = await longWork('restore canceled; nothing was changed', (onProgress, signal) =>
        restore(backup, dataDir, { ...options, onProgress, signal }),
      ).finally(() => backup.file.close())
      if (restored === undefined) return
      if (restored.unreadable !== '') {
        process.stderr.write(
          `posture-admin: the replaced store cannot be read: ${printable(restored.unreadable)}. Keys and tokens that were revoked after the backup may be active again; revoke them with posture-admin key revoke and token revoke\n`,
        )
      }
      await withStore(given, output, ({ store }) => printKeyProblems(store))
      return restores([restored])
    },
  ),
}
