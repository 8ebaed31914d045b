import { spawnSync } from 'node:child_process'

/** One run of a whole process. */
export interface Run {
  readonly wallSeconds: number
  readonly cpuSeconds: number
  readonly stdout: string
}

/** Runs a program under bash, which measures its times. @throws Error if it fails */
export function timed(program: string, parameters: readonly string[], environment = process.env): Run {
  const script = 'TIMEFORMAT="%R %U %S"; time "$0" "$@" 3>&2 2>/dev/null'
  const counted = program === 'cat' ? `${script} >/dev/null` : script
  const { status, stdout, stderr } = spawnSync('bash', ['-c', counted, program, ...parameters], {
    encoding: 'utf8',
    env: environment,
    maxBuffer: 2 ** 31,
  })
  if (status !== 0) throw new Error(`${program} ${parameters.join(' ')}: status ${status}`)
  const [real = 0, user = 0, system = 0] = (stderr.trim().split('\n').at(-1) ?? '').split(' ').map(Number)
  return { wallSeconds: real, cpuSeconds: user + system, stdout }
}
