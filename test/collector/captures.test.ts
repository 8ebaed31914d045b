import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type ObservedName, observe } from '../../collector/pipeline/observe.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { madeCaptures } from '../captures/cases.ts'
import { uncompressed } from '../captures/compressed.ts'
import { captureBytes, captureFile, type Expectation, expectationOf } from '../captures/made-capture.ts'

const FOLDER = new URL('../../../test/captures/', import.meta.url)
const { rules } = loadCatalog()
const trie = compileTrie(rules)
const cases = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())

for (const { name } of cases) {
  const file = readdirSync(new URL(`${name}/`, FOLDER)).find((file) => file.startsWith('input.')) ?? ''
  const path = fileURLToPath(new URL(`${name}/${file}`, FOLDER))
  const expected = JSON.parse(readFileSync(new URL(`${name}/expect.json`, FOLDER), 'utf8')) as Expectation

  for (const lanes of [1, 2]) {
    t.test(`${name} with ${lanes} lanes: all names both ways, and the classes`, async (t) => {
      const names: ObservedName[] = []
      let framesDone = 0
      const observation = await observe(
        { kind: 'file', path },
        {
          trie,
          lanes,
          everyName: true,
          onNames: (found, position) => {
            names.push(...found)
            framesDone = position.framesDone
          },
        },
      )
      const { damage } = await observation.done
      const { counts } = observation
      t.same(
        names.map(({ timeMs: _time, rule: _rule, ...name }) => name),
        expected.names.map(({ frame: _frame, timeMs: _time, ...name }) => name),
        'names, in the order of the frames',
      )
      for (const [index, { timeMs }] of expected.names.entries()) {
        if (timeMs !== undefined) t.equal(names[index]?.timeMs, timeMs, `time of name ${index}`)
      }
      if (expected.classes !== undefined) t.same(notEmpty(counts.classes), expected.classes, 'classes')
      t.equal(damage?.message, expected.damage && `${path}: ${expected.damage}`)
      t.equal(sum(Object.values(counts.classes)), counts.frames, 'every frame is in one class')
      t.equal(framesDone, counts.frames)
      t.equal(counts.names, names.length)
      const hellos = names.filter(({ method }) => method !== 'dns').length
      t.equal(counts.counters.helloName + counts.counters.helloEch, hellos, 'every name of a hello is in the account')
      t.equal(counts.matched + counts.unmatched, counts.names)
    })
  }
}

t.test('the files are what build.ts makes of the builders', async (t) => {
  for (const [name, capture] of Object.entries(madeCaptures())) {
    const file = `${name}/${captureFile(capture)}`
    t.ok(captureBytes(capture).equals(uncompressed(fileURLToPath(new URL(file, FOLDER)))), file)
    t.same(
      JSON.parse(readFileSync(new URL(`${name}/expect.json`, FOLDER), 'utf8')),
      expectationOf(capture),
      `${name}/expect.json`,
    )
  }
})

t.test('the demo shows AI platforms among other names', async (t) => {
  const matched: ObservedName[] = []
  const path = fileURLToPath(new URL('demo/input.pcap', FOLDER))
  const observation = await observe(
    { kind: 'file', path },
    { trie, lanes: 1, onNames: (names) => void matched.push(...names) },
  )
  await observation.done
  const platforms = new Set(matched.map(({ rule }) => rules[rule]?.platform.name))
  t.ok(platforms.size >= 9, `found ${[...platforms].join(', ')}`)
  t.ok(observation.counts.unmatched > 20, `${observation.counts.unmatched} names are of no platform`)
  t.ok(new Set(matched.map(({ client }) => client)).size >= 8, 'several clients')
  t.ok(
    matched.every(({ name }) => !name.includes('example')),
    'names that only resemble a platform do not match',
  )
})

function notEmpty(classes: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(classes).filter(([, count]) => count > 0))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
