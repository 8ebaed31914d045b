import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { EnvironmentOptions } from '../../engine/lmdb/environment.ts'

/** What another user may do with what is there, for tests that run as root. */

/** On a developer's machine the reason is shown; in CI nothing is skipped. */
export const skipUnlessRoot =
  process.getuid?.() === 0 || process.env['CI'] !== undefined ? false : 'needs root, to become another user'

/**
 * Becomes the user when all is loaded, since a developer's folder may be closed to others; then opens the environment. It must be a process: LMDB may
 * end it.
 */
export function openAs(uid: number, path: string, options: EnvironmentOptions): SpawnSyncReturns<string> {
  const opener = fileURLToPath(new URL('./open-as.js', import.meta.url))
  const parameters = [opener, String(uid), path, JSON.stringify(options)]
  return spawnSync(process.execPath, parameters, { encoding: 'utf8', env: {} })
}
