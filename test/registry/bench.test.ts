import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { compare } from '../../bench/compare.ts'

t.test('the registry benchmark runs at toy size, and its contenders agree', async (t) => {
  const file = fileURLToPath(new URL('../../bench/registry.js', import.meta.url))
  const output = execFileSync(process.execPath, [file, '--toy'], { encoding: 'utf8' })
  for (const row of ['real hit', 'real miss', '1,000 hit', '1,000 miss'])
    t.match(output, new RegExp(`^${row}  [0-9.]+x Map of suffixes`, 'm'))
  t.match(output, /answers equal {2}checksum -500/)
})

t.test('a contender with a different result stops the comparison', async (t) => {
  const work = { name: 'work', units: 1, unit: 'unit', rounds: 1 }
  t.throws(
    () =>
      compare(work, [
        { name: 'ours', version: '', run: () => 1 },
        { name: 'peer', version: '', run: () => 2 },
      ]),
    /peer answers 2, ours 1/,
  )
  let answer = 0
  t.throws(() => compare(work, [{ name: 'ours', version: '', run: () => answer++ }]), /differently the second time/)
  t.throws(() => compare(work, []), /no contender/)
})
