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

const faulty: { name: string; file: () => string; entry: string; field: string; problem: RegExp }[] = [
  {
    name: 'no such file',
    file: () => join(folder, 'none.yaml'),
    entry: '',
    field: '',
    problem: /none\.yaml: no such file$/,
  },
  { name: 'a folder', file: () => folder, entry: '', field: '', problem: /: is a directory$/ },
  { name: 'broken YAML', file: () => fileOf('platforms: [}'), entry: '', field: '', problem: /\.yaml:1: / },
  { name: 'broken JSON', file: () => fileOf('{', 'json'), entry: '', field: '', problem: /JSON/ },
  {
    name: 'YAML that expands aliases exponentially',
    file: () => fileOf(bomb()),
    entry: '',
    field: '',
    problem: /alias/i,
  },
  { name: 'an empty file', file: () => fileOf(''), entry: '', field: '', problem: /expected object/ },
  { name: 'a list', file: () => fileOf('- a'), entry: '', field: '', problem: /expected object/ },
  {
    name: 'an unknown field of the file',
    file: () => jsonFile({ platform: [] }),
    entry: '',
    field: 'platform',
    problem: /unknown key/,
  },
  {
    name: 'platforms that are not a list',
    file: () => jsonFile({ platforms: {} }),
    entry: '',
    field: 'platforms',
    problem: /expected array/,
  },
  {
    name: 'an entry that is a text',
    file: () => jsonFile({ platforms: ['x'] }),
    entry: 'platforms[0]',
    field: '',
    problem: /expected object/,
  },
  {
    name: 'no id',
    file: () => jsonFile({ platforms: [corp, { ...corp, id: undefined }] }),
    entry: 'platforms[1]',
    field: 'id',
    problem: /is missing; expected string/,
  },
  {
    name: 'an id in upper case',
    file: () => jsonFile({ platforms: [{ ...corp, id: 'Corp' }] }),
    entry: 'platforms[0]',
    field: 'id',
    problem: /lower-case/,
  },
  {
    name: 'a missing field of a new platform',
    file: () => jsonFile({ platforms: [{ ...corp, vendor: undefined }] }),
    entry: 'corp-llm',
    field: 'vendor',
    problem: /is missing; expected string/,
  },
  {
    name: 'a misspelled field',
    file: () => jsonFile({ platforms: [{ ...corp, vender: 'x' }] }),
    entry: 'corp-llm',
    field: 'vender',
    problem: /unknown key/,
  },
  {
    name: 'an unknown type',
    file: () => jsonFile({ platforms: [{ ...corp, platform_type: 'chat' }] }),
    entry: 'corp-llm',
    field: 'platform_type',
    problem: /llm_chat/,
  },
  {
    name: 'a name with a line break',
    file: () => jsonFile({ platforms: [{ ...corp, name: 'a\nb' }] }),
    entry: 'corp-llm',
    field: 'name',
    problem: /one line/,
  },
  {
    name: 'a url with another scheme',
    file: () => jsonFile({ platforms: [{ ...corp, url: 'javascript:alert(1)' }] }),
    entry: 'corp-llm',
    field: 'url',
    problem: /URL/,
  },
  {
    name: 'a score above 100',
    file: () => jsonFile({ platforms: [{ ...corp, risk: { score: 101, why: 'x' } }] }),
    entry: 'corp-llm',
    field: 'risk.score',
    problem: /100/,
  },
  {
    name: 'no source',
    file: () => jsonFile({ platforms: [{ ...corp, source: [] }] }),
    entry: 'corp-llm',
    field: 'source',
    problem: />=1/,
  },
  {
    name: 'no domain',
    file: () => jsonFile({ platforms: [{ ...corp, domains: [] }] }),
    entry: 'corp-llm',
    field: 'domains',
    problem: />=1/,
  },
  {
    name: 'a domain in upper case',
    file: () => jsonFile(withDomain({ domain: 'LLM.corp.example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /lower case/,
  },
  {
    name: 'a Unicode domain',
    file: () => jsonFile(withDomain({ domain: 'b\u00fccher.example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /A-labels/,
  },
  {
    name: 'an IP address',
    file: () => jsonFile(withDomain({ domain: '192.0.2.1' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /IP address/,
  },
  {
    name: 'a top-level domain',
    file: () => jsonFile(withDomain({ domain: 'example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /single label/,
  },
  {
    name: 'a label of 64 characters',
    file: () => jsonFile(withDomain({ domain: `${'a'.repeat(64)}.example` })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /at most 63/,
  },
  {
    name: 'a name of 254 characters',
    file: () => jsonFile(withDomain({ domain: `${'a.'.repeat(124)}exampl` })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /at most 253/,
  },
  {
    name: 'an underscore',
    file: () => jsonFile(withDomain({ domain: 'a_b.example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /the label "a_b"/,
  },
  {
    name: 'a star in a suffix',
    file: () => jsonFile(withDomain({ domain: '*.corp.example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /the label "\*"/,
  },
  {
    name: 'a pattern without a star',
    file: () => jsonFile(withDomain({ match: 'pattern' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /needs a \*/,
  },
  {
    name: 'a pattern for the last label',
    file: () => jsonFile(withDomain({ match: 'pattern', domain: 'corp.*' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /last label/,
  },
  {
    name: 'two adjacent stars',
    file: () => jsonFile(withDomain({ match: 'pattern', domain: '**.corp.example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /\*\*/,
  },
  {
    name: 'hyphens as in an A-label, without one',
    file: () => jsonFile(withDomain({ domain: 'ab--c.example' })),
    entry: 'corp-llm',
    field: 'domains[0].domain',
    problem: /A-labels/,
  },
  {
    name: 'an unknown match',
    file: () => jsonFile(withDomain({ match: 'regex' })),
    entry: 'corp-llm',
    field: 'domains[0].match',
    problem: /suffix/,
  },
  {
    name: 'an unknown role',
    file: () => jsonFile(withDomain({ role: 'admin' })),
    entry: 'corp-llm',
    field: 'domains[0].role',
    problem: /web/,
  },
  {
    name: 'specificity 0',
    file: () => jsonFile(withDomain({ specificity: 0 })),
    entry: 'corp-llm',
    field: 'domains[0].specificity',
    problem: />0/,
  },
  {
    name: 'an unknown purpose',
    file: () => jsonFile(withDomain({ purpose: 'fun' })),
    entry: 'corp-llm',
    field: 'domains[0].purpose',
    problem: /widget/,
  },
  {
    name: 'a widget with the specificity of use',
    file: () => jsonFile(withDomain({ purpose: 'widget', specificity: 0.6 })),
    entry: 'corp-llm',
    field: 'domains[0].specificity',
    problem: /less than 0.6 for the purpose widget/,
  },
  {
    name: 'a duplicate domain',
    file: () => jsonFile({ platforms: [{ ...corp, domains: [domain, domain] }] }),
    entry: 'corp-llm',
    field: 'domains[1].domain',
    problem: /already listed under corp-llm/,
  },
  {
    name: 'a duplicate id',
    file: () => jsonFile({ platforms: [corp, { id: 'corp-llm', name: 'Other' }] }),
    entry: 'corp-llm',
    field: 'id',
    problem: /twice/,
  },
  {
    name: 'an unknown id under disable',
    file: () => jsonFile({ disable: ['nobody'] }),
    entry: 'nobody',
    field: 'disable[0]',
    problem: /no built-in platform/,
  },
  {
    name: 'an id both changed and disabled',
    file: () => jsonFile({ platforms: [{ id: 'claude', name: 'x' }], disable: ['claude'] }),
    entry: 'claude',
    field: 'id',
    problem: /disabled/,
  },
]

t.test('a fault names file, entry and field, and the built-in registry stays active', async (t) => {
  const builtIn = loadCatalog()
  for (const { name, file, entry, field, problem } of faulty) {
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
