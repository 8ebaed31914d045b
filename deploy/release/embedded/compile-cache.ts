import { mkdirSync, realpathSync, statSync } from 'node:fs'
import * as nodeModule from 'node:module'
import { isAbsolute, join } from 'node:path'

/*
 * Loaded before posture-admin: Node keeps compiled code in the user's cache, because compiling
 * takes half the time of a short command. NODE_COMPILE_CACHE names another directory, which Node
 * reads itself, and NODE_DISABLE_COMPILE_CACHE=1 prevents both.
 *
 * Node executes what it finds there without any check. So it must be a directory into which only
 * this user can write, and HOME and XDG_CACHE_HOME may be those of another user, or /tmp.
 */

/** In Node 22, which the package contains. */
const { enableCompileCache } = nodeModule as { enableCompileCache?: (folder: string) => unknown }

const FOLDER = 'posture-service'

/** Creates the directory. undefined: another user could write to it, or replace it. */
function cacheFolder({ XDG_CACHE_HOME = '', HOME = '' }: NodeJS.ProcessEnv): string | undefined {
  // The XDG Base Directory Specification 0.8: a relative path is invalid, and is ignored.
  const isNamed = isAbsolute(XDG_CACHE_HOME)
  if (!isNamed && !isAbsolute(HOME)) return undefined
  // A link of another user could name another directory later.
  const first = realpathSync(isNamed ? XDG_CACHE_HOME : HOME)
  const cache = isNamed ? first : join(first, '.cache')
  const folder = join(cache, FOLDER)
  for (const each of new Set([first, cache, folder])) {
    if (each !== first) mkdirSync(each, { recursive: true, mode: 0o700 })
    const { uid, mode } = statSync(each)
    if (uid !== process.geteuid?.() || (mode & 0o022) !== 0) return undefined
  }
  return folder
}

try {
  const folder = process.env['NODE_COMPILE_CACHE'] === undefined ? cacheFolder(process.env) : undefined
  if (folder !== undefined) enableCompileCache?.(folder)
} catch {
  // The command only starts more slowly.
}
