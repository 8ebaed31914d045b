import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readYaml, YamlError } from '../../registry/yaml.ts'
import { REPOSITORY } from '../support/programs.ts'

t.test('the parser has one caller, which checks the text before', async (t) => {
  const folders = ['api', 'collector', 'console', 'deploy', 'dry-run', 'engine', 'registry']
  const sources = folders.flatMap((folder) =>
    readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|tsx|mjs)$/.test(name))
      .map((name) => join(folder, name)),
  )
  const callers = sources.filter((source) =>
    /(?:from|require\(|import\() ?'yaml'/.test(readFileSync(join(REPOSITORY, source), 'utf8')),
  )
  t.same(callers, ['registry/yaml.ts'])
})

t.test('a part has a line, and so has a missing part of it', async (t) => {
  const yaml = readYaml('a: 1\nb:\n  - c: 2\n  - d: 3\n')
  for (const [path, line] of [
    [['a'], 1],
    [['b', 1, 'd'], 4],
    [['b', 1, 'none'], 4],
    [['none'], undefined],
  ] as const) {
    t.equal(yaml.lineOf(path), line, path.join('.'))
  }
})

/** Each is repeated to 1 MiB. `before` and `after` are once in the text. */
const SHAPES: Readonly<Record<string, readonly [repeated: string, before?: string, after?: string]>> = {
  'nested lists': ['['],
  'nested maps': ['{a: '],
  'nested blocks': ['- '],
  'nested keys': ['? '],
  keys: ['k: 1\n'],
  'empty keys': ['? \n'],
  'keys in braces': ['a,', '{'],
  'texts without comma': ['a b,', '['],
  anchors: ['- &a x\n'],
  aliases: ['- *a\n', '- &a x\n'],
  tags: ['- !a\n'],
  directives: ['%A b\n'],
  quotes: ['"'],
  'texts of two lines as keys': ['"a\n"'],
  'wrong escapes': ['\\q', '"', '"'],
  'blank lines in a text': [' \n\n', '>\n', ' a'],
  'lines in a quoted text': ['\n', '"', '"'],
  comments: ['#\n', '['],
  documents: ['---\n'],
  tabs: ['\ta\n'],
  'characters that begin nothing': ['@ '],
  'one text': ['x'],
  'a text without end': ['x', '"'],
}

t.test('no text exhausts 128 MB of memory', async (t) => {
  const script = `
    const { readYaml, YamlError } = await import(${JSON.stringify(new URL('../../registry/yaml.js', import.meta.url).href)})
    const [repeated, before = '', after = ''] = JSON.parse(process.argv[1])
    const text = before + repeated.repeat(2 ** 20 / repeated.length) + after
    try {
      readYaml(text)
    } catch (error) {
      if (!(error instanceof YamlError)) throw error
    }`
  for (const [name, shape] of Object.entries(SHAPES)) {
    const options = ['--max-old-space-size=128', '--input-type=module', '-e', script, JSON.stringify(shape)]
    const { status, signal, stderr } = spawnSync(process.execPath, options, { encoding: 'utf8' })
    t.equal(status, 0, `${name}: ${signal ?? ''} ${stderr.slice(0, 300)}`)
  }
})

t.test('limits', async (t) => {
  for (const [text, line] of [
    ['['.repeat(33), 'line 1: more than 32 levels of nesting'],
    ['- a\n'.repeat(50_001), 'line 40000: more than 200000 tokens'],
    ['\n'.repeat(200_001), 'more than 200000 lines'],
    ['a: &a [1]\nb: *a\n', 'not usable YAML: Alias resolution is disabled'],
  ] as const) {
    try {
      readYaml(text)
      t.fail(line)
    } catch (error) {
      t.same(error instanceof YamlError && error.lines, [line])
    }
  }
})
