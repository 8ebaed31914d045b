import type { Command } from 'commander'
import t from 'tap'
import { commandName, commandsOf, programs } from '../../../deploy/docs/cli.ts'
import { pageText } from '../../../deploy/docs/main.ts'
import { pagePaths } from '../../../deploy/docs/readability.ts'
import { comments, identifiers, messages, pageTexts, testTitles, wordsOf } from '../../support/log-messages.ts'
import { ALLOWED, AVOIDED } from './glossary.ts'

/** Pages that consist of names: platforms and vendors. */
const NAMES_ONLY = 'docs/reference/registry.md'

/** Terms of another standard. */
const STANDARD_IDENTIFIERS: ReadonlySet<string> = new Set([
  // The authority component of a URI (RFC 3986 §3.2).
  'authorityEnd',
])

/** The avoided words in a text, each with its standard term. `where` identifies the text. */
function avoidedWords(where: string, text: string): string[] {
  const sentences = ALLOWED.reduce((rest, allowed) => rest.replaceAll(allowed, ''), text)
  // Names of metrics, fields and settings consist of words, too.
  const checked = sentences.replace(/\w+_\w+/g, wordsOf).replace(/\s+/g, ' ')
  return AVOIDED.flatMap(({ pattern, use }) =>
    [...checked.matchAll(new RegExp(pattern, 'gi'))].map((found) => {
      const context = checked.slice(Math.max(0, found.index - 30), found.index + found[0].length + 30)
      return `${where}: "${found[0]}" in "${context}": write ${use}`
    }),
  )
}

t.test('the patterns match only the wrong use of a word', async (t) => {
  const wrong = [
    'It stands in the log',
    'the rows behind it',
    'ports, parted by commas',
    'has told of a packet',
    'both ways',
    'posture_scan_events_folded_total',
  ]
  for (const text of wrong) t.not(avoidedWords('', text).length, 0, text)
  const right = [
    'behind a load balancer',
    'one way',
    'look up a name',
    'a certificate authority',
    'case folding',
    'a lookup',
  ]
  for (const text of right) t.same(avoidedWords('', text), [])
})

/** The texts of a command and its options, as --help shows them. */
function helpTexts(command: Command): string[] {
  return [command.description(), command.summary(), ...command.options.map(({ description }) => description)]
}

for (const page of pagePaths().filter((each) => each !== NAMES_ONLY)) {
  t.test(`${page} uses standard terms`, async (t) => {
    t.same(avoidedWords(page, pageText(page)), [])
  })
}

t.test('help uses standard terms', async (t) => {
  const wrong = (await programs())
    .flatMap(commandsOf)
    .flatMap((command) => helpTexts(command).flatMap((text) => avoidedWords(`help of ${commandName(command)}`, text)))
  t.same(wrong, [])
})

t.test('identifiers use standard terms', async (t) => {
  const all = identifiers().filter(({ file }) => !file.startsWith('test/deploy/docs/'))
  t.ok(all.length > 20_000, `${all.length} identifiers are found`)
  t.same(
    all
      .filter(({ identifier }) => !STANDARD_IDENTIFIERS.has(identifier))
      .flatMap(({ file, identifier, words }) => avoidedWords(`${file}: ${identifier}`, words)),
    [],
  )
})

const TEXTS = [
  { name: 'log messages and faults', texts: messages(), atLeast: 400 },
  { name: 'pages of the console', texts: pageTexts(), atLeast: 200 },
  { name: 'comments', texts: comments(), atLeast: 4000 },
  { name: 'titles of tests', texts: testTitles(), atLeast: 1500 },
]

for (const { name, texts, atLeast } of TEXTS) {
  t.test(`${name} use standard terms`, async (t) => {
    t.ok(texts.length > atLeast, `${texts.length} texts are found`)
    t.same(
      texts
        .filter(({ file }) => !file.startsWith('test/deploy/docs/'))
        .flatMap(({ file, text }) => avoidedWords(file, text)),
      [],
    )
  })
}
