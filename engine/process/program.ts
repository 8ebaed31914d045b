import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { ExitStatus, Fault } from './error-codes.ts'
import { printable } from './table.ts'

/** The version in package.json, found upwards from this file both in the source tree and in dist/. */
export function programVersion(): string {
  for (const up of ['../../package.json', '../../../package.json']) {
    try {
      const parsed = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as {
        name?: string
        version?: string
      }
      if (parsed.name === 'security-posture-service' && parsed.version !== undefined) return parsed.version
    } catch {
      // Not here: look one folder higher.
    }
  }
  return 'unknown'
}

/** A command with the manners that the three programs share: one line on misuse, exit status 2, help on request. */
export function createProgram(name: string, about: string): Command {
  return withManners(
    new Command(name).description(about).version(programVersion(), '-V, --version', 'print the version'),
  )
}

/** Gives a command and all that are added to it later the same manners. */
function withManners(command: Command): Command {
  return command
    .exitOverride()
    .helpOption('-h, --help', 'print this help')
    .showSuggestionAfterError(true)
    .configureOutput({
      outputError: () => {
        // Said once, by runProgram.
      },
    })
}

/**
 * Runs a program to its end and sets the exit status; never throws.
 * A Fault and a misuse become one line on standard error; anything else is a fault of ours and keeps its stack.
 */
export async function runProgram(program: Command, argv: readonly string[] = process.argv): Promise<void> {
  endQuietlyWhenPipeCloses(program.name())
  try {
    await program.parseAsync([...argv])
  } catch (error) {
    const { status, text } = failureOf(program.name(), error)
    process.stderr.write(text)
    process.exitCode = status
  }
}

/** The exit status of a program that failed, and what it writes to standard error. */
export function failureOf(name: string, error: unknown): { readonly status: number; readonly text: string } {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { status: ExitStatus.success, text: '' }
    if (error.code === 'commander.help') return { status: ExitStatus.usage, text: '' }
    const line = error.message
      .replace(/^error: /, '')
      .replace(/\s*\n\s*/g, ' ')
      .replace(/\.$/, '')
    return { status: ExitStatus.usage, text: `${name}: USAGE ${line}; see ${name} --help\n` }
  }
  if (error instanceof Fault)
    return { status: error.exitStatus, text: `${name}: ${error.code} ${printableLines(error.message)}\n` }
  const text = `${name}: INTERNAL ${error instanceof Error ? error.stack : String(error)}\n`
  return { status: ExitStatus.internal, text }
}

/** What a user or a file said may be part of a line. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

/** `posture-... | head` closes the pipe: that is the reader's choice and no fault. */
function endQuietlyWhenPipeCloses(name: string): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(ExitStatus.success)
    process.stderr.write(`${name}: standard output: ${error.message}\n`)
    process.exit(ExitStatus.internal)
  })
}
