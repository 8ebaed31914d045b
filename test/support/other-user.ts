import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { EnvironmentOptions } from '../../engine/kernel/lmdb/environment.ts'

/** Tests of another user's access rights. They run as root. */

/** On a developer's machine the tests are skipped with this reason. In CI nothing is skipped. */
export const skipUnlessRoot =
  process.getuid?.() === 0 || process.env['CI'] !== undefined ? false : 'needs root, to become another user'

/**
 * Opens the environment in a process that becomes the user. The process does so after loading all
 * modules, since a developer's folder may be closed to others. A separate process, because LMDB may
 * end it.
 */
export function openAs(uid: number, path: string, options: EnvironmentOptions): SpawnSyncReturns<string> {
  const opener = fileURLToPath(new URL('./open-as.js', import.meta.url))
  const parameters = [opener, String(uid), path, JSON.stringify(options)]
  return spawnSync(process.execPath, parameters, { encoding: 'utf8', env: {} })
}
