import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { sha256Of } from '../../../deploy/release/files.ts'
import { REPOSITORY } from '../../support/programs.ts'
import { THIS_MACHINE } from '../../support/released.ts'

/*
 * Builds the same sources a second time: in another folder, later, with another umask, language and
 * time zone, and with every addon recompiled. Each file must have the same bytes
 * (reproducible-builds.org).
 */
t.test('a second build in another environment gives the same bytes', { timeout: 900_000 }, async (t) => {
  const copy = join(t.testdir(), 'some where else')
  mkdirSync(copy)
  const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: REPOSITORY, encoding: 'utf8' }).split('\0')
  for (const file of tracked.filter((name) => name !== '' && existsSync(join(REPOSITORY, name)))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(join(REPOSITORY, file), join(copy, file))
  }
  cpSync(join(REPOSITORY, '.git'), join(copy, '.git'), { recursive: true })
  // Links to the same packages. The build writes only to the cache, which is a copy with the
  // downloads only: other files are created in the cache meanwhile.
  const modules = join(copy, 'node_modules')
  mkdirSync(modules)
  const packages = readdirSync(join(REPOSITORY, 'node_modules')).filter((name) => name !== '.cache')
  const paths = packages.map((name) => join(REPOSITORY, 'node_modules', name))
  execFileSync('cp', ['-al', `--target-directory=${modules}`, ...paths])
  const cache = 'node_modules/.cache/release'
  mkdirSync(join(copy, cache), { recursive: true })
  for (const name of readdirSync(join(REPOSITORY, cache)).filter((entry) =>
    /^node-linux-.*-[0-9a-f]{8}$/.test(entry),
  )) {
    execFileSync('cp', ['-al', join(REPOSITORY, cache, name), join(copy, cache, name)])
  }

  const build = `umask 077; npm run --silent build && node dist/deploy/release/main.js --quiet --machine ${THIS_MACHINE}`
  execFileSync('sh', ['-c', build], {
    cwd: copy,
    stdio: 'pipe',
    env: { PATH: process.env['PATH'], HOME: join(copy, 'home'), TZ: 'Asia/Kathmandu', LC_ALL: 'C.UTF-8' },
  })
  const files = readdirSync(join(copy, 'release')).toSorted()
  t.ok(files.length >= 10, files.join(' '))
  for (const file of files)
    t.equal(await sha256Of(join(copy, 'release', file)), await sha256Of(join(REPOSITORY, 'release', file)), file)
})
