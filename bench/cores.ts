import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'

/**
 * Puts server and client on separate cores. On one core they alternate, and the result measures the
 * scheduler.
 */
export function pinned(who: 'server' | 'client'): readonly string[] {
  return availableParallelism() < 2 || !isInstalled('taskset') ? [] : ['taskset', '-c', who === 'server' ? '0' : '1']
}

/** Moves all threads of a running process. */
export function pin(pid: number, who: 'server' | 'client'): void {
  const [command, ...words] = pinned(who)
  if (command === undefined) return
  execFileSync(command, ['-a', '-p', '-c', ...words.slice(1), String(pid)], { stdio: 'ignore' })
}

export function isInstalled(program: string): boolean {
  const folders = `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin`.split(':')
  return folders.some((folder) => existsSync(join(folder, program)))
}
