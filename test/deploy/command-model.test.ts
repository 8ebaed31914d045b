import type { Command } from 'commander'
import t from 'tap'
import { serviceProgram } from '../../api/program.ts'
import { collectorProgram } from '../../collector/program.ts'
import { type CommandModel, commandModel, everyCommand, usageOf } from '../../deploy/command-model.ts'
import { adminProgram, programFor } from '../../engine/cli/program.ts'

const PROGRAMS = [collectorProgram, serviceProgram, adminProgram] as const
const MODELS = await Promise.all(PROGRAMS.map(async (program) => commandModel(await program())))
const COMMANDS: readonly CommandModel[] = MODELS.flatMap(everyCommand)

/** Verbs that texts of commands and options start with. Add a word only if it is a verb. */
const VERBS = new Set(
  `Accept Acknowledge Add Administer Allow Answer Approve Assess Assign Attribute Authenticate Back Bind Block Buffer Capture
  Carry Change Check Close Combine Compare Complete Confirm Connect Count Create Decode Decrypt Delete Drop Encrypt Expect
  Expire Export Find Forget Forward Generate Give Grant Import Include Ingest Inspect Install Keep Limit List Listen Log
  Look Make Manage Name Parse Print Read Receive Record Reject Remove Rename Replace Request Restore Revoke Run Scan Search Select Send Serve Set
  Shift Show Sign Store Test Track Trust Turn Use Verify Wait Withdraw Write`.split(/\s+/),
)
/** Figurative or outdated words that have a standard term. */
const FIGURATIVE =
  /\b(books?|door|stranger|stands?|anew|besides|for ever|parted|told|tells?|lend|lent|roomless|packed|halves|mended|shall|trouble)\b/i

t.test('texts of commands and options are imperative, capitalized, without a period', async (t) => {
  t.ok(COMMANDS.length > 60)
  for (const { path, about, options } of COMMANDS) {
    const texts = [{ name: '', about }, ...options.map((option) => ({ name: option.long, about: option.about }))]
    for (const { name, about: text } of texts) {
      const where = `${path.join(' ')} ${name}: ${text}`
      t.ok(VERBS.has(text.split(/[ ,]/)[0] ?? ''), `${where}: begins with a verb`)
      t.notMatch(text, /[.;,:]$|\. /, `${where}: one sentence without a period`)
      t.notMatch(text, FIGURATIVE, where)
    }
  }
})

t.test('every argument is described, as a noun', async (t) => {
  for (const { path, arguments: args } of COMMANDS) {
    for (const { name, about } of args) t.match(about, /^[A-Z0-9].*[^.]$/, `${path.join(' ')} ${name}`)
  }
})

t.test('no public text has a figurative word', async (t) => {
  for (const { path, options } of COMMANDS) {
    for (const word of [...path, ...options.map(({ long }) => long)]) t.notMatch(word, FIGURATIVE, word)
  }
})

t.test('the model has everything that help shows: usage, variable, default, choices, value types', async (t) => {
  const find = (words: string): CommandModel => {
    const found = COMMANDS.find(({ path }) => path.join(' ') === words)
    if (found === undefined) throw new Error(words)
    return found
  }
  t.equal(usageOf(find('posture-admin')), 'posture-admin [options] <command>')
  t.equal(usageOf(find('posture-admin key create')), 'posture-admin key create [options] <label>')
  const option = (words: string, flag: string) => find(words).options.find(({ long }) => long === flag)
  t.match(option('posture-admin key create', '--org'), { env: 'POSTURE_ORG', value: '<name>', kind: 'other' })
  t.match(option('posture-admin key create', '--scope'), { variadic: true, choices: ['scores:read'] })
  t.match(option('posture-admin key create', '--data-dir'), {
    env: 'DATA_DIR',
    byDefault: '/var/lib/posture-service',
    kind: 'directory',
  })
  t.match(option('posture-collector run', '--syslog-protocol'), { choices: ['tls', 'tcp', 'udp'], byDefault: 'tls' })
  t.match(option('posture-collector run', '--registry-file'), {
    kind: 'file',
    about: /^Add, override/,
    byDefault: undefined,
  })
  t.match(find('posture-admin ingest file').arguments, [{ term: '<file...>', kind: 'file', variadic: true }])
  t.match(option('posture-service', '--help'), { short: '-h', value: undefined })
})

for (const width of [40, 80, 200]) {
  t.test(`help fits ${width} columns`, async (t) => {
    t.intercept(process, 'env', { value: { ...process.env, COLUMNS: String(width) } })
    const check = (command: Command): void => {
      for (const line of command.helpInformation().split('\n')) t.ok(line.length <= width, line)
      for (const each of command.commands) check(each)
    }
    for (const program of PROGRAMS) check(await program())
  })
}

t.test('a typo in any command or subcommand is answered with the right name', async (t) => {
  /** Replaces the last character. */
  const typo = (word: string): string => `${word.slice(0, -1)}_`
  for (const { path } of COMMANDS.filter(({ path }) => path.length > 1)) {
    const programs = await Promise.all(PROGRAMS.map((make) => make()))
    const program = programs.find((each) => each.name() === path[0])
    const words = [...path.slice(1, -1), typo(path.at(-1) ?? '')]
    await t.rejects(
      async () => program?.parseAsync(words, { from: 'user' }),
      { message: new RegExp(`unknown command '${words.at(-1)}'\\s+\\(Did you mean (one of )?.*${path.at(-1)}`) },
      words.join(' '),
    )
  }
})

t.test('a program for one command has that command, and the help of the whole program', async (t) => {
  const all = await adminProgram()
  for (const command of commandModel(all).commands) {
    const name = command.path.at(-1) ?? ''
    for (const words of [
      [name, 'list', '--json'],
      ['help', name],
      ['--', name],
    ]) {
      const program = await programFor(words)
      t.equal(program.helpInformation(), all.helpInformation(), name)
      t.same(
        commandModel(program).commands.find(({ path }) => path.at(-1) === name),
        command,
        words.join(' '),
      )
    }
  }
  for (const words of [[], ['--help'], ['toString'], ['help']]) {
    t.equal((await programFor(words)).helpInformation(), all.helpInformation())
  }
})
