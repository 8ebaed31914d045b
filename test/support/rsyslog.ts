import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY } from './programs.ts'

/**
 * The set-up (deploy/setup.mjs) unpacks rsyslog here. Its package conflicts with syslog-ng's, so
 * both cannot be installed.
 */
const ROOT = join(REPOSITORY, 'node_modules/.cache/rsyslog')
const [LIBRARIES = ''] = readdirSync(join(ROOT, 'usr/lib')).filter((name) => name.endsWith('-linux-gnu'))
const LIBRARY_DIRECTORY = join(ROOT, 'usr/lib', LIBRARIES)
const PROGRAM = join(ROOT, 'usr/sbin/rsyslogd')

export interface RsyslogOptions {
  /** PEM file of the CA certificate that must have signed TLS peers' certificates. */
  readonly caFile?: string
  /** The configuration after the global settings: modules, inputs, templates, actions. */
  readonly configuration: string
}

/** Runs rsyslogd until the test ends. Checks the configuration first. */
export async function rsyslog(
  t: { testdir(): string; teardown(work: () => unknown): void },
  directory: string,
  { configuration, caFile }: RsyslogOptions,
): Promise<{ readonly child: ChildProcess; readonly output: { text: string } }> {
  const file = join(directory, 'rsyslog.conf')
  const ca = caFile === undefined ? '' : `global(defaultNetstreamDriverCAFile="${caFile}")\n`
  writeFileSync(file, `global(workDirectory="${directory}")\n${ca}${configuration}`)
  const args = ['-n', '-C', '-f', file, '-i', join(directory, 'rsyslog.pid')]
  const modules = ['-M', join(LIBRARY_DIRECTORY, 'rsyslog')]
  const environment = { PATH: process.env['PATH'], LD_LIBRARY_PATH: LIBRARY_DIRECTORY }
  execFileSync(PROGRAM, ['-N1', '-f', file, ...modules], { env: environment, stdio: 'pipe' })
  const child = spawn(PROGRAM, [...args, ...modules], { stdio: ['ignore', 'pipe', 'pipe'], env: environment })
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output.text += chunk
    })
  }
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  return { child, output }
}
