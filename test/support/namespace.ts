import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'

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

/**
 * The command that executes another one in namespaces of its own for the network, mounts and
 * processes. The kernel removes everything in them when the command ends, or this process does,
 * even by SIGKILL: processes, mounts, loop devices, interfaces.
 */
export const IN_PRIVATE_NAMESPACES = [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--net', '--mount', '--pid', '--mount-proc', '--fork', '--kill-child'],
]

/** Makes `ip netns add` private, for a program that runs in private namespaces. */
export function keepNamespacesPrivate(): void {
  mkdirSync('/run/netns', { recursive: true })
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', '/run/netns'])
}
