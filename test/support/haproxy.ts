import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/** deploy/setup.mjs unpacks HAProxy here. */
const CACHE = join(REPOSITORY, 'node_modules/.cache/haproxy')
export const HAPROXY = join(CACHE, 'usr/sbin/haproxy')
export const HAPROXY_ENVIRONMENT = { LD_LIBRARY_PATH: join(CACHE, 'usr/lib/x86_64-linux-gnu') }
const CONFIGURATION = join(REPOSITORY, 'deploy/proxies/haproxy-cluster.cfg')

/** The shipped configuration, with addresses of `node-1` to `node-3`. */
export function clusterProxyConfiguration(addressOf: (node: string) => string): string {
  return readFileSync(CONFIGURATION, 'utf8').replace(/node-\d(?=:)/g, addressOf)
}

/**
 * Runs HAProxy in front of the nodes of a cluster until the test ends. `through` is a command that
 * executes another.
 */
export function startClusterProxy(
  t: { teardown(work: () => unknown): void },
  directory: string,
  addressOf: (node: string) => string,
  through: readonly string[] = [],
): void {
  const configuration = join(directory, 'haproxy.cfg')
  writeFileSync(configuration, clusterProxyConfiguration(addressOf))
  const [command = '', ...parameters] = [...through, HAPROXY, '-db', '-f', configuration]
  const child: ChildProcess = spawn(command, parameters, {
    env: { PATH: process.env['PATH'], ...HAPROXY_ENVIRONMENT },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  t.teardown(() => {
    child.kill('SIGKILL')
    return child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined
  })
}
