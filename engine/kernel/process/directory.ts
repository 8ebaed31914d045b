import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

const PRIVATE_DIRECTORY_MODE = 0o700

/**
 * Like `mkdir -p -m MODE`. Node's recursive option loops endlessly below /proc (ENOENT for an
 * existing parent).
 *
 * @throws Error with a `code`: ENOTDIR if a file is in the path, EACCES, EROFS, ENOSPC …
 */
export function makeDirectory(path: string, mode = PRIVATE_DIRECTORY_MODE): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code === 'EEXIST') throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    makeDirectory(dirname(path), mode)
    mkdirSync(path, { mode })
  }
}

/** Flushes a directory, so that a rename in it survives a power failure. */
export function syncDirectory(path: string): void {
  const directory = openSync(path, 'r')
  try {
    fsyncSync(directory)
  } finally {
    closeSync(directory)
  }
}
