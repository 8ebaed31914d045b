import { closeSync, fsyncSync, openSync } from 'node:fs'
import { Fault } from '../process/error-codes.ts'

/** What the system said of a file, as an expected fault; what is none of these stays what it is. LMDB says it in words only. */
export function fileFault(error: unknown, path: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || /no space left/i.test(message)) return new Fault('STORE_FULL', `${path}: no space left`)
  if (code === 'EACCES' || code === 'EPERM' || /permission denied/i.test(message)) {
    return new Fault('BACKUP_FILE', `${path}: no permission; become the user whose it is, or name another place`)
  }
  if (code === 'EROFS') return new Fault('BACKUP_FILE', `${path}: the file system is read-only; name another place`)
  if (code === 'ENOENT' || code === 'ENOTDIR') return new Fault('BACKUP_FILE', `${path}: no such file or directory`)
  if (code === 'EISDIR') return new Fault('BACKUP_FILE', `${path}: a directory; name a file`)
  return error
}

/** A file that was renamed is there after a power failure only when its directory was written, too. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
