import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * As `mkdir -p -m MODE`, but not by Node's recursive option, which loops for ever below /proc (ENOENT for an existing
 * parent).
 *
 * @throws Error with a `code`: ENOTDIR where a file is in the way, EACCES, EROFS, ENOSPC …
 */
export function makeDirectory(path: string, mode = 0o700): void {
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
