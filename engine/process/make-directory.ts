import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { giveDirectory, type Owner } from './ownership.ts'

/**
 * As `mkdir -p -m 700`, but not by Node's recursive option, which loops for ever below /proc (ENOENT for an existing
 * parent). What is made becomes the owner's, where one is given.
 *
 * @throws Error with a `code`: ENOTDIR where a file is in the way, EACCES, EROFS, ENOSPC …
 */
export function makeDirectory(path: string, owner?: Owner): void {
  try {
    make(path, owner)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && statSync(path).isDirectory()) return
    if (code === 'EEXIST') throw Object.assign(new Error('not a directory'), { code: 'ENOTDIR' })
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    makeDirectory(dirname(path), owner)
    make(path, owner)
  }
}

function make(path: string, owner: Owner | undefined): void {
  mkdirSync(path, { mode: 0o700 })
  if (owner !== undefined) giveDirectory(owner, path)
}
