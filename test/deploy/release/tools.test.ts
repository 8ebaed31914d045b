import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { TARGETS } from '../../../deploy/release/targets.ts'
import { skipUnlessRoot } from '../../support/other-user.ts'
import { REPOSITORY } from '../../support/programs.ts'

/** Packages by the prefix of their tools. */
const COMPILERS: Readonly<Record<string, string>> = {
  '': 'g++',
  'aarch64-linux-gnu-': 'g++-aarch64-linux-gnu',
  'x86_64-linux-gnu-': 'g++-x86-64-linux-gnu',
}
const RELEASE = join(REPOSITORY, 'dist/deploy/release/main.js')

t.test('missing tools are named with their packages before anything is built', async (t) => {
  const directory = t.testdir({ bin: {} })
  const environment = { PATH: join(directory, 'bin') }
  for (const { name, tools } of TARGETS) {
    const { status, stderr } = spawnSync(process.execPath, [RELEASE, '--machine', name, '--out', 'nowhere'], {
      cwd: directory,
      encoding: 'utf8',
      env: environment,
    })
    t.equal(status, 2, stderr)
    t.match(stderr, /^[^\n]*the build needs more packages. Run: apt-get install [^\n]*\n$/, 'one line')
    for (const each of ['binutils', 'dpkg', COMPILERS[tools]]) t.ok(stderr.includes(` ${each}`), `${each}: ${stderr}`)
  }
})

t.test('a failure of apt-get is printed', { skip: skipUnlessRoot }, async (t) => {
  const directory = t.testdir({ bin: {} })
  const bin = join(directory, 'bin')
  writeFileSync(join(bin, 'apt-get'), '#!/bin/sh\necho "E: Could not get lock, held by process 7" >&2\nexit 100\n')
  chmodSync(join(bin, 'apt-get'), 0o755)
  const { status, stderr } = spawnSync(process.execPath, [join(REPOSITORY, 'deploy/setup.mjs'), '--test'], {
    encoding: 'utf8',
    env: { PATH: bin },
  })
  t.equal(status, 1)
  t.match(stderr, /E: Could not get lock, held by process 7\ninstall .*, then run this again\n$/)
})
