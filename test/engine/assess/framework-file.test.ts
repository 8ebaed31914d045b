import { readFileSync } from 'node:fs'
import t from 'tap'
import { buildFrameworks, FRAMEWORKS_DIR } from '../../../engine/assess/build.ts'
import { AssessmentFileFault } from '../../../engine/assess/file-fault.ts'
import { FRAMEWORK_FILE_BYTES_MAX, readFrameworkFile } from '../../../engine/assess/framework-file.ts'
import { FRAMEWORK_IDS } from '../../../engine/store/framework.ts'
import { frameworkFile } from '../../support/framework-file.ts'
import * as fc from '../../support/property.ts'
import { cpuMsOf } from '../../support/wait.ts'

function read(text: string) {
  return readFrameworkFile(Buffer.from(text))
}

function linesOf(text: string): readonly string[] {
  try {
    read(text)
  } catch (error) {
    if (error instanceof AssessmentFileFault) return error.lines
    throw error
  }
  return []
}

t.test('a file has the items of a framework, with default weights', async (t) => {
  const { id, name, template } = read(
    frameworkFile([{ id: 'A-1' }, { id: 'A-2', weight: 3, priority: 1, baselines: ['low'], references: ['X 1'] }]),
  )
  t.same([id, name, template.categories.length], ['own-acme', 'Acme baseline', 1])
  t.match(template.version, /^[0-9a-f]{8}$/)
  const [category] = template.categories
  t.equal(category?.weight, 5)
  t.match(category?.items, [
    { id: 'A-1', weight: 2, priority: 3, guidance: { yes: 'Each account names a person.', evidence: String } },
    { id: 'A-2', weight: 3, priority: 1, baselines: ['low'], references: ['X 1'] },
  ])
  t.notMatch(read(frameworkFile([{ id: 'A-1', question: 'Other?' }])).template.version, template.version)
})

t.test('the files of the built-in frameworks have the same form, except for their own fields', async (t) => {
  const { templates } = buildFrameworks()
  for (const id of FRAMEWORK_IDS) {
    const written = readFileSync(new URL(`${id}.yaml`, FRAMEWORKS_DIR), 'utf8')
    const text = written.replaceAll(/^(?: +(?:decided_by|supported_by|must_pass|priority)| {4}baselines): .*\n/gm, '')
    const { template } = read(`id: own-copy\nname: Copy\n${text}`)
    t.same(
      template.categories.map(({ items }) => items.map((item) => item.id)),
      templates[id].categories.map(({ items }) => items.map((item) => item.id)),
      id,
    )
  }
})

const REFUSED: readonly { name: string; text: string; lines: readonly RegExp[] }[] = [
  { name: 'an empty file', text: '', lines: [/^found null, expected id, name and categories$/] },
  { name: 'a list', text: '- a', lines: [/expected id, name and categories$/] },
  { name: 'no YAML', text: 'id: "own-a\nname: b', lines: [/^line 2: not YAML: /] },
  { name: 'a duplicate key', text: 'id: own-a\nid: own-b', lines: [/^line 2: not YAML: Map keys must be unique/] },
  {
    name: 'the id of a built-in framework',
    text: frameworkFile([{ id: 'A' }], { id: 'soc-2' }),
    lines: [/^line 1, id: found "soc-2", expected own- and 1 to 60 of a-z, 0-9 and -$/],
  },
  {
    name: 'errors in two items',
    text: frameworkFile([{ id: 'A', weight: 0 }, { id: 'B C' }]),
    lines: [
      /^line 14, categories\[0\]\.items\[0\]\.weight: found 0, expected a number above 0/,
      /^line 22, categories\[0\]\.items\[1\]\.id: found "B C", expected 1 to 64 letters/,
    ],
  },
  {
    name: 'a missing text, at the line of its item',
    text: frameworkFile([{ id: 'A' }]).replace(/ +question: .*\n/, ''),
    lines: [/^line 6, categories\[0\]\.items\[0\]\.question: found nothing, expected one line/],
  },
  {
    name: 'an unknown field',
    text: frameworkFile([{ id: 'A', colour: 'red' }]),
    lines: [/^line 14, categories\[0\]\.items\[0\]\.colour: there is no such field$/],
  },
  {
    name: 'an unknown profile',
    text: frameworkFile([{ id: 'A', baselines: ['gold'] }]),
    lines: [/^line 14, .*baselines\[0\]: found "gold", expected one of user, /],
  },
  {
    name: 'a duplicate item',
    text: frameworkFile([{ id: 'A' }, { id: 'a' }]),
    lines: [
      /^line 21, categories\[0\]\.items\[1\]\.id: found "a", which is already at categories\[0\]\.items\[0\]\.id$/,
    ],
  },
  {
    name: 'aliases',
    text: 'id: &a own-a\nname: *a\ncategories: []',
    lines: [/^not usable YAML: /],
  },
  { name: 'deep nesting', text: '['.repeat(8000), lines: [/^line 1: more than 32 levels of nesting/] },
  {
    name: 'many keys',
    text: Array.from({ length: 32_000 }, (_, at) => `k${at}: 1\n`).join(''),
    lines: [/^line 101: more than 100 keys in one map/],
  },
  { name: 'a large file', text: ' '.repeat(FRAMEWORK_FILE_BYTES_MAX + 1), lines: [/^larger than the maximum/] },
]
for (const { name, text, lines } of REFUSED) {
  t.test(`a framework file with ${name} is rejected`, async (t) => {
    const found = linesOf(text)
    for (const [at, line] of lines.entries()) t.match(found[at], line)
    t.ok(found.length >= lines.length && found.length <= 21)
  })
}

t.test('any change of a file gives a fault or a framework, and 1,200 items take linear time', async (t) => {
  const good = Buffer.from(frameworkFile([{ id: 'A' }, { id: 'B' }]))
  const changes = fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 })), { maxLength: 4 })
  fc.assert(
    fc.property(changes, (given) => {
      const copy = Buffer.from(good)
      for (const [at, byte] of given) copy[at] = byte
      linesOf(copy.toString('latin1'))
    }),
    { numRuns: 1000 },
  )
  const many = frameworkFile(Array.from({ length: 1200 }, (_, at) => ({ id: `A-${at}` })))
  const ms = cpuMsOf(() => t.equal(read(many).template.categories[0]?.items.length, 1200))
  t.comment(`${Buffer.byteLength(many)} bytes: ${ms.toFixed(0)} ms`)
  t.ok(ms < 10_000)
  const wrong = frameworkFile(Array.from({ length: 1200 }, (_, at) => ({ id: `A-${at}`, weight: 0 })))
  t.ok(cpuMsOf(() => t.equal(linesOf(wrong).at(-1), 'and 1180 more')) < 15_000)
})
