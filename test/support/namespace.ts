import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** Network namespaces of our own, for tests that need interfaces. They need root and iproute2. */

const possible = process.getuid?.() === 0 && ['/sbin/ip', '/usr/sbin/ip', '/bin/ip'].some((path) => existsSync(path))
/** On a developer's machine the reason is shown; in CI nothing is skipped: there the tests run, and fail where they cannot. */
export const skipNamespaces = possible || process.env['CI'] !== undefined ? false : 'needs root and iproute2'

export function ip(...words: string[]): void {
  execFileSync('ip', words, { stdio: 'pipe' })
}

/**
 * Makes a namespace that goes when the test ends. Answers the words for `ip` that run a command in it: without tap's hooks, which write files
 * as the user that started the tests, when the process may be another's by then.
 */
export function namespace(
  t: { teardown(work: () => unknown): void },
  name: string,
): (...command: string[]) => string[] {
  ip('netns', 'add', name)
  t.teardown(() => ip('netns', 'delete', name))
  return (...command) => ['netns', 'exec', name, 'env', '-u', 'NODE_OPTIONS', ...command]
}
