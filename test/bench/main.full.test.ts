import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { skipNamespaces } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'

function bench(...parameters: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [join(REPOSITORY, 'dist/bench/main.js'), ...parameters], { encoding: 'utf8' })
}

t.test('every benchmark runs at toy size and prints its environment', async (t) => {
  // Live capture requires a network namespace.
  const names = [
    'registry',
    'decode',
    'outbox',
    'ingest',
    'scan',
    'api',
    'console',
    'candidates',
    'cluster',
    'cluster-api',
    'ingest-memory',
    ...(skipNamespaces === false ? ['live'] : []),
  ]
  const { status, stdout, stderr } = bench('--toy', ...names)
  t.equal(status, 0, stderr)
  t.match(stdout, /^\d+ x .*Node \d+\.\d+\.\d+, load /)
  for (const name of names) t.match(stdout, new RegExp(`^${name}$`, 'm'))
})

t.test('a benchmark runs by name; an unknown name is one error line', async (t) => {
  t.notMatch(bench('registry', '--toy').stdout, /^decode$/m)
  const { status, stderr } = bench('regsitry')
  t.equal(status, 2)
  t.equal(
    stderr,
    'npm run bench --: USAGE no benchmark "regsitry", expected registry or decode or outbox or live or ingest or scan or api or console or candidates or cluster or cluster-api or ingest-memory\n',
  )
})
