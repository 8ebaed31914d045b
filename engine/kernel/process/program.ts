import { fstatSync } from 'node:fs'
import { Command, CommanderError, type ErrorOptions, type Help } from 'commander'
import { ExitStatus, Fault } from './error-codes.ts'
import { systemErrorText } from './failure.ts'
import { writeAll } from './new-file.ts'
import { Canceled } from './questions.ts'
import { withNameAsGiven } from './settings.ts'
import { printable, terminalWidth } from './table.ts'
import { programVersion } from './version.ts'

/**
 * Creates a program. All programs share these rules: a usage error is one line, with the nearest
 * name for a typo, and exit status 2; help fits the terminal.
 *
 * @param about imperative, capitalized, without a period, like all help texts
 */
export function createProgram(name: string, about: string): Command {
  const program = new ProgramCommand(name)
    .description(about)
    .version(programVersion(), '-V, --version', 'Print the version')
  return program
    .exitOverride()
    .helpOption('-h, --help', 'Print this help')
    .showSuggestionAfterError(true)
    .configureHelp({ formatItem, styleUsage, minWidthToWrap: HELP_WIDTH_MIN })
    .configureOutput({
      getOutHelpWidth: () => terminalWidth(process.stdout),
      getErrHelpWidth: () => terminalWidth(process.stderr),
      outputError: () => {
        // runProgram prints the error once.
      },
    })
}

/** The command that a usage error is about: the error itself does not have it. */
const COMMAND_OF = new WeakMap<CommanderError, string>()

/** A private method of commander. */
const { unknownOption: UNKNOWN_OPTION } = Command.prototype as unknown as {
  readonly unknownOption: (flag: string) => void
}

/** A command that remembers which of its commands a usage error is about. */
class ProgramCommand extends Command {
  override createCommand(name?: string): ProgramCommand {
    return new ProgramCommand(name)
  }

  override error(message: string, options?: ErrorOptions): never {
    try {
      return super.error(message, options)
    } catch (error) {
      if (error instanceof CommanderError) COMMAND_OF.set(error, pathOf(this))
      throw error
    }
  }

  /** commander calls this method for each option that the command does not have. */
  unknownOption(flag: string): void {
    const { rawArgs } = this as unknown as { readonly rawArgs: readonly string[] }
    const command = this.commands.map((each) => each.name()).find((name) => rawArgs.includes(name))
    const where = command === undefined ? '' : `; options go after the command: ${pathOf(this)} ${command} ... ${flag}`
    if (where !== '') this.error(`unknown option '${flag}'${where}`, { code: 'commander.unknownOption' })
    UNKNOWN_OPTION.call(this, flag)
  }
}

/** `posture-admin token bind` */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}

/** For programs with commands. Call before adding any. */
export function withHelpCommand(program: Command): Command {
  return program.helpCommand('help [command]', 'Print the help of a command')
}

/** Adds `--json` with the same help for every command. */
export function jsonOption(command: Command): Command {
  return command.option('--json', 'Print one JSON object per line, as in a pipe')
}

/** Minimum line length of descriptions in help. */
const HELP_WIDTH_MIN = 20
const USAGE_INDENT = 'Usage: '.length
const ITEM_INDENT = 2
const BELOW_INDENT = 6

/**
 * commander does not wrap a description with little space beside its term. This function puts it
 * below the term.
 */
function formatItem(this: Help, term: string, termWidth: number, description: string, helper: Help): string {
  const helpWidth = this.helpWidth ?? terminalWidth()
  const indented = (text: string, indent: number): string => {
    return helper.boxWrap(text, helpWidth - indent).replaceAll('\n', `\n${' '.repeat(indent)}`)
  }
  const first = ' '.repeat(ITEM_INDENT) + term
  if (description === '') return first
  const column = ITEM_INDENT + termWidth + 2
  // Descriptions get at least half of the line. Otherwise they would become columns of single
  // words.
  if (column * 2 <= helpWidth) return first.padEnd(column) + indented(description, column)
  return `${first}\n${' '.repeat(BELOW_INDENT)}${indented(description, BELOW_INDENT)}`
}

function styleUsage(this: Help, usage: string): string {
  const width = (this.helpWidth ?? terminalWidth()) - USAGE_INDENT
  return this.boxWrap(usage, width).replaceAll('\n', `\n${' '.repeat(USAGE_INDENT)}`)
}

/**
 * Runs a program to its end and sets the exit status. Never throws. A Fault or usage error becomes
 * one line on standard error. Any other error is internal and keeps its stack.
 */
export async function runProgram(program: Command): Promise<void> {
  endQuietlyWhenPipeCloses(program.name())
  writeAllOfStandardOutput()
  try {
    await program.parseAsync(process.argv)
  } catch (error) {
    const { status, text } = failureOf(program.name(), error)
    process.stderr.write(text)
    process.exitCode = status
    // Something may still be open: a library's connection that it cannot close.
    setTimeout(() => process.exit(), EXIT_MS).unref()
  }
}

/** Time to write what is left, and to end in order. */
const EXIT_MS = 5000

/** The exit status of a failed program, and its text for standard error. */
export function failureOf(name: string, error: unknown): { readonly status: number; readonly text: string } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { status: ExitStatus.success, text: '' }
    if (error.code === 'commander.help') return { status: ExitStatus.usage, text: '' }
    const line = error.message
      .replace(/^error: /, '')
      .replace(/\s*\n\s*/g, ' ')
      .replace(/\.$/, '')
    return { status: ExitStatus.usage, text: `${name}: USAGE ${line}; see ${COMMAND_OF.get(error) ?? name} --help\n` }
  }
  if (error instanceof Canceled) return { status: CANCELED_STATUS, text: `\n${name}: canceled\n` }
  if (error instanceof Fault)
    return {
      status: error.exitStatus,
      text: `${name}: ${error.code} ${printableLines(withNameAsGiven(error.message))}\n`,
    }
  const text = `${name}: INTERNAL ${error instanceof Error ? error.stack : String(error)}\n`
  return { status: ExitStatus.internal, text }
}

/** 128 + SIGINT, as a shell reports a program that Ctrl-C ended. */
const CANCELED_STATUS = 130

/** A line may quote untrusted input. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

/** `posture-... | head` closes the pipe, which is not an error. */
function endQuietlyWhenPipeCloses(name: string): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(ExitStatus.success)
    process.stderr.write(`${name}: standard output: ${systemErrorText(error)}\n`)
    process.exit(ExitStatus.internal)
  })
}

/**
 * Node ignores how many bytes a write to a file wrote, so that a list on a full disk would be
 * truncated without an error. Pipes and terminals are not affected.
 */
function writeAllOfStandardOutput(): void {
  if (!fstatSync(STANDARD_OUTPUT).isFile()) return
  process.stdout._write = (chunk: Buffer, _encoding, done) => {
    try {
      writeAll(STANDARD_OUTPUT, chunk)
      done()
    } catch (error) {
      done(error as Error)
    }
  }
}

const STANDARD_OUTPUT = 1
