import { type Command, CommanderError } from 'commander'
import t from 'tap'
import { pageText } from '../../../deploy/docs/main.ts'
import { commandsOf, pagePaths, programs } from '../../../deploy/docs/references.ts'

/** The script of each program, which pages for work in a clone use. */
const SCRIPTS: Readonly<Record<string, string>> = {
  'dist/collector/main.js': 'posture-collector',
  'dist/api/main.js': 'posture-service',
  'dist/engine/admin/main.js': 'posture-admin',
}

/** The commands of our programs in a shell block, as lists of words. */
function commandsIn(block: string): string[][] {
  const joined = block.replace(/\\\n\s*/g, ' ')
  return joined.split('\n').flatMap((line) => commandsOfLine(wordsOf(line)))
}

/** The words of a shell line. Operators are separate words. A comment ends the line. */
function wordsOf(line: string): string[] {
  const words: string[] = []
  for (const [, comment, operator, word] of line.matchAll(
    /(#.*$)|(\|\||&&|[|;&<>()]+)|((?:"[^"]*"|'[^']*'|[^\s|;&<>()"'])+)/g,
  )) {
    if (comment !== undefined) break
    words.push(operator ?? (word ?? '').replace(/"([^"]*)"|'([^']*)'/g, (_whole, double, single) => double ?? single))
  }
  return words
}

/** Commands that run the command after their options. */
const WRAPPERS = new Set(['sudo', 'npx', 'node', 'env', 'exec', 'time'])
const CONTAINER_TOOLS = new Set(['docker', 'podman', 'kubectl'])

/**
 * The commands of our programs in a line. Each starts with the program's name and ends at the next
 * operator.
 */
function commandsOfLine(words: readonly string[]): string[][] {
  const pipeline: string[][] = [[]]
  for (const word of words) {
    if (/^[|;&<>()]+$/.test(word)) pipeline.push([])
    else pipeline.at(-1)?.push(word)
  }
  return pipeline.flatMap((command) => ourCommand(command) ?? [])
}

/**
 * `SVC_TOKEN=x sudo posture-admin ...` and `docker exec NAME posture-admin ...` run posture-admin.
 */
function ourCommand(words: readonly string[]): string[][] | undefined {
  const [word = '', ...rest] = words
  if (word === '') return undefined
  if (/^\w+=/.test(word)) return ourCommand(rest)
  if (WRAPPERS.has(word)) return ourCommand(rest.slice(rest.findIndex((each) => !each.startsWith('-'))))
  if (CONTAINER_TOOLS.has(word)) return ourCommand(insideContainer(rest))
  const name = SCRIPTS[word] ?? word.replace(/^\.?\/.*\//, '')
  return Object.values(SCRIPTS).includes(name) ? [[name, ...rest]] : undefined
}

/** The command in `exec [OPTION...] CONTAINER COMMAND` or `exec CONTAINER -- COMMAND`. */
function insideContainer(words: readonly string[]): readonly string[] {
  const separator = words.indexOf('--')
  if (separator >= 0) return words.slice(separator + 1)
  const exec = words.indexOf('exec')
  if (exec < 0) return []
  const container = words.findIndex((word, index) => index > exec && !word.startsWith('-'))
  return words.slice(container + 1)
}

/** Commander's error for a command, or undefined. The command is not run. */
async function parseError([name, ...words]: readonly string[]): Promise<string | undefined> {
  const program = (await programs()).find((each) => each.name() === name)
  if (program === undefined) return `no program ${name}`
  const known = commandsOf(program)
  for (const command of known) silence(command)
  try {
    program.parse([...words], { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    return error.exitCode === 0 ? undefined : error.message
  }
  const [unknown] = program.commands.find((each) => each.name() === 'run')?.args ?? []
  return unknown === undefined ? undefined : `no command ${unknown}`
}

function silence(command: Command): void {
  command.action(() => {}).configureOutput({ writeOut: () => {}, writeErr: () => {} })
}

for (const page of pagePaths().filter((each) => !each.endsWith('reference/cli.md'))) {
  const blocks = [...pageText(page).matchAll(/^( *)```sh\n([\s\S]*?)^\1```/gm)].map(([, , block = '']) => block)
  const commands = blocks.flatMap(commandsIn)
  if (commands.length === 0) continue
  t.test(`${page}: all ${commands.length} commands parse`, async (t) => {
    for (const command of commands) t.equal(await parseError(command), undefined, command.join(' '))
  })
}

t.test('unknown commands, flags and missing arguments are reported', async (t) => {
  for (const line of [
    'posture-admin organisation list',
    'posture-admin key list --org Acme --sort',
    'sudo posture-admin key create --org Acme',
    'posture-collector reed file.pcap',
    'posture-collector check --interfaces eth0 | head',
    'node dist/api/main.js --api-prot 1',
  ]) {
    const [command = []] = commandsIn(line)
    t.type(await parseError(command), 'string', line)
  }
  t.same(
    commandsIn('A="b c" posture-admin key list --org "A B" | head; posture-service \\\n  --http-server uws # so'),
    [
      ['posture-admin', 'key', 'list', '--org', 'A B'],
      ['posture-service', '--http-server', 'uws'],
    ],
  )
})
