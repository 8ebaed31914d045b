import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Network namespaces, for tests that need interfaces. Creating them requires root and iproute2. */

const possible = process.getuid?.() === 0 && ['/sbin/ip', '/usr/sbin/ip', '/bin/ip'].some((path) => existsSync(path))
/**
 * On a developer's machine, the tests are skipped with this reason. In CI nothing is skipped: the
 * tests run, and fail without root.
 */
export const skipNamespaces = possible || process.env['CI'] !== undefined ? false : 'needs root and iproute2'

export function ip(...args: string[]): void {
  execFileSync('ip', args, { stdio: 'pipe' })
}

/**
 * Creates a namespace that is deleted when the test ends. Returns the arguments for `ip` that run a
 * command in it. The command runs without NODE_OPTIONS: tap's hooks write files as the user that
 * started the tests, and the program may have changed its user by then.
 */
export function namespace(
  t: { teardown(work: () => unknown): void },
  name: string,
): (...command: string[]) => string[] {
  ip('netns', 'add', name)
  t.teardown(() => ip('netns', 'delete', name))
  return (...command) => ['netns', 'exec', name, 'env', '-u', 'NODE_OPTIONS', ...command]
}
