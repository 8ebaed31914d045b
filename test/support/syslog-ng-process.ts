import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'

/** Interval between checks of a condition. */
const POLL_MS = 20

/**
 * Starts syslog-ng in the foreground with this configuration, with its files in `directory`.
 * Resolves when syslog-ng listens on all of these TCP ports.
 *
 * @throws Error when syslog-ng exits first
 */
export async function startSyslogNgProcess(
  directory: string,
  configuration: string,
  ports: readonly number[],
): Promise<ChildProcess> {
  const file = join(directory, 'syslog-ng.conf')
  writeFileSync(file, configuration)
  const files = ['-f', file, '-R', join(directory, 'persist'), '-c', join(directory, 'control')]
  const child = spawn('syslog-ng', ['-F', '--no-caps', ...files, '-p', join(directory, 'pid')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const exited = once(child, 'exit').then(([status]) => {
    throw new Error(`syslog-ng exited with status ${status}`)
  })
  exited.catch(() => {})
  await Promise.race([Promise.all(ports.map(listening)), exited])
  return child
}

/** Ends syslog-ng as a crash would. Does nothing when it has exited already. */
export async function killSyslogNg(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

export async function listening(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const connected = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (connected) return
    await later(POLL_MS)
  }
}
