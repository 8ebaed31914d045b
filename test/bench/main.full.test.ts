import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { skipNamespaces } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'

/** Each takes at most 40 s alone on two cores. Only for one that never ends. */
const BENCHMARK_MS_MAX = 600_000

function bench(...parameters: string[]): { status: number | null; stdout: string; stderr: string } {
  const command = [join(REPOSITORY, 'dist/bench/main.js'), ...parameters]
  return spawnSync(process.execPath, command, { encoding: 'utf8', timeout: BENCHMARK_MS_MAX })
}

const NAMES = [
  // Live capture requires a network namespace.
  ...['registry', 'decode', 'outbox', ...(skipNamespaces === false ? ['live'] : []), 'https', 'syslog', 'formats'],
  ...['scan', 'api', 'console', 'candidates', 'cluster', 'cluster-api', 'memory'],
]

for (const name of NAMES) {
  t.test(`${name} runs at toy size, compares its answers and prints figures`, async (t) => {
    const { status, stdout, stderr } = bench('--toy', name)
    t.equal(status, 0, stderr)
    t.match(stdout, /^\d+ x .*Node \d+\.\d+\.\d+, load /)
    // Before the figures, it may say that a peer is not installed.
    t.match(stdout, new RegExp(`^${name}\\n(\\S.*\\n)*  \\S.*: [\\d,.]+ `, 'm'))
    t.notMatch(stdout, 'NaN')
  })
}

t.test('an unknown name is one error line', async (t) => {
  const { status, stderr } = bench('regsitry')
  t.equal(status, 2)
  t.match(stderr, /^npm run bench --: USAGE no benchmark "regsitry", expected summary or registry or decode or .*\n$/)
})
