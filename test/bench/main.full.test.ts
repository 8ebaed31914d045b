import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { skipNamespaces } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'

function bench(...parameters: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(REPOSITORY, 'dist/bench/main.js'), ...parameters], { encoding: 'utf8' })
}

t.test('every benchmark runs at toy size, compares its answers and prints figures', async (t) => {
  // Live capture requires a network namespace.
  const names = [
    ...['registry', 'decode', 'outbox', ...(skipNamespaces === false ? ['live'] : []), 'https', 'syslog', 'formats'],
    ...['scan', 'api', 'console', 'candidates', 'cluster', 'cluster-api', 'memory'],
  ]
  const { status, stdout, stderr } = bench('--toy', ...names)
  t.equal(status, 0, stderr)
  t.match(stdout, /^\d+ x .*Node \d+\.\d+\.\d+, load /)
  for (const name of names) t.match(stdout, new RegExp(`^${name}\\n  \\S.*: [\\d,.]+ `, 'm'))
  t.notMatch(stdout, 'NaN')
})

t.test('an unknown name is one error line', async (t) => {
  const { status, stderr } = bench('regsitry')
  t.equal(status, 2)
  t.match(stderr, /^npm run bench --: USAGE no benchmark "regsitry", expected summary or registry or decode or .*\n$/)
})
