import { Fault } from '../process/error-codes.ts'

/**
 * Converts a system error about a file to a Fault. Returns other errors unchanged. LMDB reports
 * such errors only as text.
 */
export function fileFault(error: unknown, path: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || /no space left/i.test(message)) return new Fault('STORE_FULL', `${path}: no space left`)
  if (code === 'EACCES' || code === 'EPERM' || /permission denied/i.test(message)) {
    return new Fault(
      'BACKUP_FILE',
      `${path}: permission denied. Run this as the owner of the file, or name another path`,
    )
  }
  if (code === 'EROFS') return new Fault('BACKUP_FILE', `${path}: the file system is read-only. Name another path`)
  if (code === 'ENOENT' || code === 'ENOTDIR') return new Fault('BACKUP_FILE', `${path}: no such file or directory`)
  if (code === 'EISDIR') return new Fault('BACKUP_FILE', `${path}: is a directory. Name a file`)
  return error
}
