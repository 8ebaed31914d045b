import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { chownDirectory, type Owner } from './ownership.ts'

const PRIVATE_DIRECTORY_MODE = 0o700

/**
 * Like `mkdir -p -m MODE`. Node's recursive option loops endlessly below /proc (ENOENT for an
 * existing parent). New directories get the owner, if given.
 *
 * @throws Error with a `code`: ENOTDIR if a file is in the path, EACCES, EROFS, ENOSPC …
 */
export function makeDirectory(path: string, owner?: Owner, mode = PRIVATE_DIRECTORY_MODE): void {
  try {
    make(path, owner, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code === 'EEXIST') throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    makeDirectory(dirname(path), owner, mode)
    make(path, owner, mode)
  }
}

function make(path: string, owner: Owner | undefined, mode: number): void {
  mkdirSync(path, { mode })
  if (owner !== undefined) chownDirectory(owner, path)
}
