import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { loadCatalog, loadCatalogOrBuiltIn } from '../../registry/catalog.ts'
import { lineOfError, RegistryFileError, readRegistryText } from '../../registry/registry-file.ts'
import { functionCalls } from '../support/function-calls.ts'

const folder = t.testdir({})
let files = 0

function fileOf(text: string, ending = 'yaml'): string {
  const file = join(folder, `registry-${files++}.${ending}`)
  writeFileSync(file, text)
  return file
}

const jsonFile = (document: unknown) => fileOf(JSON.stringify(document), 'json')

const domain = { domain: 'llm.corp.example', match: 'suffix', role: 'web', specificity: 1 }
const corp = {
  id: 'corp-llm',
  name: 'Corp LLM',
  vendor: 'Example Corporation',
  platform_type: 'llm_chat',
  url: 'https://llm.corp.example',
  risk: { score: 5, why: 'Runs in our own data centre' },
  source: ['architecture board'],
  domains: [domain],
}
const withDomain = (over: object) => ({ platforms: [{ ...corp, domains: [{ ...domain, ...over }] }] })

t.test('the example in docs/reference/registry.md is valid as it is', async (t) => {
  const page = readFileSync(new URL('../../../docs/reference/registry.md', import.meta.url), 'utf8')
  const example = /```yaml\n(.*?)```/s.exec(page)?.[1] ?? ''
  t.ok(parse(example))
  const { platforms, rules } = loadCatalog({ file: fileOf(example) })
  const before = loadCatalog()
  t.equal(platforms.length, before.platforms.length, 'one added, one disabled')
  t.match(platforms.at(-1), { id: 'corp-llm', category: 'LLM Chat Assistant', platformType: 'llm_chat' })
  t.match(
    platforms.find(({ id }) => id === 'chatgpt'),
    { name: 'ChatGPT', risk: { score: 20 } },
  )
  t.notOk(platforms.some(({ id }) => id === 'zapier'))
  t.same(
    rules.slice(-3).map(({ match }) => match),
    ['suffix', 'exact', 'pattern'],
  )
})

/** The wrong file, and the entry and the field of its fault. */
const FILES: readonly (readonly [name: string, file: () => string, entry: string, field: string, problem: RegExp])[] = [
  ['no such file', () => join(folder, 'none.yaml'), '', '', /none\.yaml: no such file$/],
  ['a folder', () => folder, '', '', /: is a directory$/],
  ['broken YAML', () => fileOf('platforms: [}'), '', '', /\.yaml:1: /],
  ['broken JSON', () => fileOf('{', 'json'), '', '', /JSON/],
  ['YAML that expands aliases exponentially', () => fileOf(bomb()), '', '', /alias/i],
  ['an empty file', () => fileOf(''), '', '', /expected object/],
  ['a list', () => fileOf('- a'), '', '', /expected object/],
  ['an unknown field of the file', () => jsonFile({ platform: [] }), '', 'platform', /unknown key/],
  ['platforms that are not a list', () => jsonFile({ platforms: {} }), '', 'platforms', /expected array/],
  ['an entry that is a text', () => jsonFile({ platforms: ['x'] }), 'platforms[0]', '', /expected object/],
  [
    'no id',
    () => jsonFile({ platforms: [corp, { ...corp, id: undefined }] }),
    'platforms[1]',
    'id',
    /is missing; expected string/,
  ],
  ['an id in upper case', () => jsonFile({ platforms: [{ ...corp, id: 'Corp' }] }), 'platforms[0]', 'id', /lower-case/],
  [
    'a duplicate id',
    () => jsonFile({ platforms: [corp, { id: 'corp-llm', name: 'Other' }] }),
    'corp-llm',
    'id',
    /twice/,
  ],
  [
    'an unknown id under disable',
    () => jsonFile({ disable: ['nobody'] }),
    'nobody',
    'disable[0]',
    /no built-in platform/,
  ],
  [
    'an id both changed and disabled',
    () => jsonFile({ platforms: [{ id: 'claude', name: 'x' }], disable: ['claude'] }),
    'claude',
    'id',
    /disabled/,
  ],
]

/** A change that makes the platform wrong. */
const PLATFORMS: readonly (readonly [name: string, change: object, field: string, problem: RegExp])[] = [
  ['a missing field of a new platform', { vendor: undefined }, 'vendor', /is missing; expected string/],
  ['a misspelled field', { vender: 'x' }, 'vender', /unknown key/],
  ['an unknown type', { platform_type: 'chat' }, 'platform_type', /llm_chat/],
  ['a name with a line break', { name: 'a\nb' }, 'name', /one line/],
  ['a url with another scheme', { url: 'javascript:alert(1)' }, 'url', /URL/],
  ['a score above 100', { risk: { score: 101, why: 'x' } }, 'risk.score', /100/],
  ['no source', { source: [] }, 'source', />=1/],
  ['no domain', { domains: [] }, 'domains', />=1/],
  ['a duplicate domain', { domains: [domain, domain] }, 'domains[1].domain', /already listed under corp-llm/],
]

/** A change that makes the domain of the platform wrong. */
const DOMAINS: readonly (readonly [name: string, change: object, field: string, problem: RegExp])[] = [
  ['a domain in upper case', { domain: 'LLM.corp.example' }, 'domain', /lower case/],
  ['a Unicode domain', { domain: 'b\u00fccher.example' }, 'domain', /A-labels/],
  ['an IP address', { domain: '192.0.2.1' }, 'domain', /IP address/],
  ['a top-level domain', { domain: 'example' }, 'domain', /single label/],
  ['a label of 64 characters', { domain: `${'a'.repeat(64)}.example` }, 'domain', /at most 63/],
  ['a name of 254 characters', { domain: `${'a.'.repeat(124)}exampl` }, 'domain', /at most 253/],
  ['an underscore', { domain: 'a_b.example' }, 'domain', /the label "a_b"/],
  ['a star in a suffix', { domain: '*.corp.example' }, 'domain', /the label "\*"/],
  ['a pattern without a star', { match: 'pattern' }, 'domain', /needs a \*/],
  ['a pattern for the last label', { match: 'pattern', domain: 'corp.*' }, 'domain', /last label/],
  ['two adjacent stars', { match: 'pattern', domain: '**.corp.example' }, 'domain', /\*\*/],
  ['hyphens as in an A-label, without one', { domain: 'ab--c.example' }, 'domain', /A-labels/],
  ['an unknown match', { match: 'regex' }, 'match', /suffix/],
  ['an unknown role', { role: 'admin' }, 'role', /web/],
  ['specificity 0', { specificity: 0 }, 'specificity', />0/],
  ['an unknown purpose', { purpose: 'fun' }, 'purpose', /widget/],
  [
    'a widget with the specificity of use',
    { purpose: 'widget', specificity: 0.6 },
    'specificity',
    /less than 0.6 for the purpose widget/,
  ],
]

const faulty = [
  ...FILES,
  ...PLATFORMS.map(
    ([name, change, field, problem]) =>
      [name, () => jsonFile({ platforms: [{ ...corp, ...change }] }), 'corp-llm', field, problem] as const,
  ),
  ...DOMAINS.map(
    ([name, change, field, problem]) =>
      [name, () => jsonFile(withDomain(change)), 'corp-llm', `domains[0].${field}`, problem] as const,
  ),
]

t.test('a fault names file, entry and field, and the built-in registry stays active', async (t) => {
  const builtIn = loadCatalog()
  for (const [name, file, entry, field, problem] of faulty) {
    const path = file()
    const { catalog, fault } = loadCatalogOrBuiltIn({ file: path })
    if (!(fault instanceof RegistryFileError)) {
      t.fail(`${name}: no fault`)
      continue
    }
    t.same([fault.file, fault.entry, fault.field], [path, entry, field], name)
    t.match(fault.message, problem, `${name}: ${fault.message}`)
    t.notMatch(fault.message, /\n/, `${name}: one line`)
    t.same(catalog.platforms.length, builtIn.platforms.length, `${name}: the built-in registry stays in force`)
    t.throws(() => loadCatalog({ file: path }), RegistryFileError)
  }
})

function bomb(): string {
  const lines = ['a0: &a0 [x, x]']
  for (let at = 1; at < 30; at++)
    lines.push(
      `a${at}: &a${at} [${Array(10)
        .fill(`*a${at - 1}`)
        .join(', ')}]`,
    )
  return lines.join('\n')
}

/** Texts that grow with `length`, by what is repeated in them. */
const REPEATED: Readonly<Record<string, (length: number) => string>> = {
  keys: (length) => numbered(length, (at) => `k${at}: 1\n`),
  'equal keys': (length) => 'k: 1\n'.repeat(length / 5),
  'empty keys': (length) => '? \n'.repeat(length / 3),
  'keys in braces': (length) => `- {${numbered(length, (at) => `k${at},`)}}`,
  'keys of broken JSON': (length) => `{${numbered(length, (at) => `"k${at}":1,`)}a`,
  pairs: (length) => `[${'a: 1,'.repeat(length / 5)}]`,
  anchors: (length) => numbered(length, (at) => `- &a${at} x\n`),
  aliases: (length) => `- &a x\n${'- *a\n'.repeat(length / 5)}`,
  'unknown aliases': (length) => '- *a\n'.repeat(length / 5),
  'merged maps': (length) => `- &a {x: 1}\n${'- {<<: *a}\n'.repeat(length / 11)}`,
  tags: (length) => '- !a\n'.repeat(length / 5),
  directives: (length) => '%A b\n'.repeat(length / 5),
  comments: (length) => '#\n'.repeat(length / 2),
  'blank lines': (length) => '\n'.repeat(length),
  brackets: (length) => '[]'.repeat(length / 2),
  'closing brackets': (length) => ']'.repeat(length),
  commas: (length) => `[${','.repeat(length)}`,
  quotes: (length) => '"'.repeat(length),
  'lines of one text': (length) => 'a\n'.repeat(length / 2),
  'blank lines of one text': (length) => `>\n${' \n\n'.repeat(length / 3)} a`,
  documents: (length) => '---\n'.repeat(length / 4),
  list: (length) => '- a\n'.repeat(length / 4),
  'empty platforms': (length) => `platforms:\n${'- {}\n'.repeat(length / 5)}`,
  platforms: (length) => `platforms:\n${numbered(length, (at) => `- { id: a${at}, name: A }\n`)}`,
}

function numbered(length: number, each: (at: number) => string): string {
  let text = ''
  for (let at = 0; text.length < length; at++) text += each(at)
  return text
}

/** Calls of the parser's functions until the text is read, or its error has a line. */
function callsToRead(text: string): number {
  return functionCalls('', () => {
    try {
      readRegistryText('file', text)
    } catch (error) {
      if (!(error instanceof RegistryFileError)) throw error
      lineOfError(text, error)
    }
  })
}

for (const [what, textOf] of Object.entries(REPEATED)) {
  t.test(`the work to read a file is linear in its length, however many ${what} it has`, async (t) => {
    callsToRead(textOf(100))
    const [short, long] = [callsToRead(textOf(2000)), callsToRead(textOf(16_000))]
    t.ok(long < 10 * short, `${short} calls for 2,000 characters, ${long} for 16,000`)
  })
}

t.test('the counter of calls distinguishes linear from quadratic work', async (t) => {
  const compare = (count: number): void => {
    const items = Array.from({ length: count }, (_, at) => at)
    for (const item of items) items.find((each) => each === item)
  }
  const [short, long] = [functionCalls('', () => compare(100)), functionCalls('', () => compare(800))]
  t.ok(long > 40 * short, `${short} calls, then ${long}`)
})

t.test('a map has at most 100 keys', async (t) => {
  const keys = (count: number): string => Array.from({ length: count }, (_, at) => `k${at}\n`).join('')
  const map = (count: number): string => keys(count).replaceAll('\n', ': 1\n')
  t.throws(() => readRegistryText('file', map(100)), { message: /unknown key/ }, 'the next check')
  t.throws(() => readRegistryText('file', map(101)), { message: 'file: more than 100 keys in one map at line 101' })
})
