import type { Command } from 'commander'
import { systemClock } from '../../process/clock.ts'
import { printable } from '../../process/table.ts'
import { backUp } from '../backup.ts'
import { restore } from '../restore.ts'
import { actorOf, dataDirectoryOf, sharedOptions, show, withStore } from './context.ts'
import { longWork } from './long-work.ts'

/** posture-admin backup */
export function addBackupCommand(command: Command): void {
  const backup = sharedOptions(command.argument('<file>', 'File to write')).option(
    '--force',
    'Replace an existing file',
  )
  backup.action((file: string, { force = false }: { force?: boolean }) =>
    withStore(backup, async ({ store, clock }) => {
      const startedMs = clock.nowMs()
      const made = await longWork('backup canceled', (onProgress, signal) =>
        backUp(store, file, { force, onProgress, signal, actor: actorOf(backup), clock }),
      )
      if (made === undefined) return
      const seconds = (clock.nowMs() - startedMs) / 1000
      show(backup, {
        columns: [
          ['File', 'file', { wrap: true }],
          ['Bytes', 'bytes'],
          ['Schema', 'schema'],
          ['Records', 'records'],
          ['Seconds', 'seconds'],
        ],
        rows: [{ ...made, seconds }],
      })
    }),
  )
}

/** posture-admin restore */
export function addRestoreCommand(command: Command): void {
  const bring = sharedOptions(command.argument('<file>', 'Backup to read')).option(
    '--force',
    'Replace an existing store, which is kept next to the new one',
  )
  bring.action(async (file: string, { force = false }: { force?: boolean }) => {
    const dataDir = dataDirectoryOf(bring)
    const options = { force, actor: actorOf(bring), clock: systemClock }
    const restored = await longWork('restore canceled; nothing was changed', (onProgress, signal) =>
      restore(file, dataDir, { ...options, onProgress, signal }),
    )
    if (restored === undefined) return
    if (restored.unreadable !== '') {
      process.stderr.write(
        `posture-admin: the replaced store cannot be read: ${printable(restored.unreadable)}. Keys and tokens that were revoked after the backup may be active again; revoke them with posture-admin key revoke and token revoke\n`,
      )
    }
    show(bring, {
      columns: [
        ['Organizations', 'organizations'],
        ['Records', 'records'],
        ['Schema', 'schema'],
        ['Revoked again', 'revoked'],
        ['Removed before', 'removed_organizations'],
        ['Old store kept in', 'kept', { wrap: true }],
      ],
      rows: [
        { ...restored, removed_organizations: restored.removedOrganizations, unreadable: restored.unreadable || null },
      ],
    })
  })
}
