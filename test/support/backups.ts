import { createHash } from 'node:crypto'
import { type Backup, type BackupOptions, backUp, withBackupFile } from '../../engine/admin/backup.ts'
import { type OnBytes, openBackup, unseal } from '../../engine/admin/backup-file.ts'
import { type Restored, type RestoreOptions, restore } from '../../engine/admin/restore.ts'
import type { Store } from '../../engine/store/store.ts'

/** Backups as the commands of posture-admin make and restore them. */

export function backUpTo(
  store: Store,
  path: string,
  { force, ...options }: BackupOptions & { readonly force: boolean },
): Promise<Backup | undefined> {
  return withBackupFile(path, force, (file) => backUp(store, file, options))
}

export async function restoreFrom(
  path: string,
  dataDirectory: string,
  options: RestoreOptions,
): Promise<Restored | undefined> {
  const backup = await openBackup(path)
  return restore(backup, dataDirectory, options).finally(() => backup.file.close())
}

export async function unsealFile(path: string, target: string, onBytes: OnBytes, signal: AbortSignal) {
  const backup = await openBackup(path)
  return unseal(backup, target, onBytes, signal).finally(() => backup.file.close())
}

/** The seal of a data file, which anyone can make. */
export function sealOf(data: Uint8Array): Buffer {
  const mark = Buffer.from('posture-backup-1')
  return Buffer.concat([mark, createHash('sha256').update(data).update(mark).digest()])
}
