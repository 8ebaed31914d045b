import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PROGRAMS, REPOSITORY } from '../test/support/programs.ts'
import { median, print } from './compare.ts'
import { type Run, timed } from './timed-run.ts'

/*
 * How long short commands of posture-admin take, from the sources and installed, with and without
 * Node's compiled code in the cache of the user. Beside them Node alone, and npm, another command
 * line in Node.
 */

const RELEASE = join(REPOSITORY, 'release')
const HELP_AIM_MS = 60
const LIST_AIM_MS = 150

interface Command {
  readonly name: string
  readonly words: readonly string[]
  readonly environment?: NodeJS.ProcessEnv
  readonly aimMs?: number
}

export async function run({ toy }: { toy: boolean }): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-commands-'))
  try {
    const data = ['--data-dir', join(folder, 'data')]
    const source = [process.execPath, PROGRAMS.admin]
    execFileSync(source[0] ?? '', [
      source[1] ?? '',
      'organization',
      'create',
      'Acme',
      '--domain',
      'acme.example',
      ...data,
    ])
    const commands: Command[] = [
      { name: `Node ${process.versions.node} alone`, words: [process.execPath, '-e', '0'] },
      { name: 'npm --version', words: ['npm', '--version'] },
      ...ofAdmin('from the sources', source, data, {}),
    ]
    const archive = readdirSync(RELEASE).find((name) => /^posture-service-.*-x86_64\.tar\.gz$/.test(name))
    if (archive === undefined) print('"npm run release" was not run: nothing is installed')
    else {
      execFileSync('tar', ['-xzf', join(RELEASE, archive), '-C', folder, '--strip-components=1'])
      const installed = [join(folder, 'bin/posture-admin')]
      commands.push({
        name: 'the Node of the package alone',
        words: [join(folder, 'lib/posture-service/node'), '-e', '0'],
      })
      commands.push(...ofAdmin('installed, without a cache', installed, data, {}))
      commands.push(...ofAdmin('installed', installed, data, { HOME: folder }))
    }
    const runs = new Map<string, Run[]>(commands.map(({ name }) => [name, []]))
    // In turn, so that other load of the machine affects all. The first round fills the cache.
    for (let round = 0; round <= (toy ? 1 : 15); round++) {
      for (const { name, words, environment } of commands) {
        const [program = '', ...parameters] = words
        const measured = timed(program, parameters, { PATH: process.env['PATH'], ...environment })
        if (round > 0) runs.get(name)?.push(measured)
      }
    }
    for (const { name, aimMs } of commands) {
      const all = runs.get(name) ?? []
      const cpuMs = median(all.map(({ cpuSeconds }) => cpuSeconds)) * 1000
      const aim = aimMs === undefined ? '' : `, aim ${aimMs} ${cpuMs <= aimMs ? 'reached' : 'not reached'}`
      const wallMs = median(all.map(({ wallSeconds }) => wallSeconds)) * 1000
      print(`  ${name.padEnd(54)} ${Math.round(wallMs)} ms, ${Math.round(cpuMs)} ms CPU${aim}`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function ofAdmin(
  how: string,
  program: readonly string[],
  data: readonly string[],
  environment: NodeJS.ProcessEnv,
): Command[] {
  return [
    { name: `posture-admin --help, ${how}`, words: [...program, '--help'], environment, aimMs: HELP_AIM_MS },
    {
      name: `posture-admin key list, ${how}`,
      words: [...program, 'key', 'list', ...data],
      environment,
      aimMs: LIST_AIM_MS,
    },
  ]
}
