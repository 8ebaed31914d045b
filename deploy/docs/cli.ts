import type { Command } from 'commander'
import { serviceProgram } from '../../api/program.ts'
import { collectorProgram } from '../../collector/program.ts'
import { adminProgram } from '../../engine/admin/program.ts'
import { codeBlock } from './markdown.ts'

/** Width of the help in the documentation, in columns. */
const HELP_COLUMNS = 80

/** The three programs. Each call builds them again, since parsing changes a command. */
export async function programs(): Promise<Command[]> {
  return [collectorProgram(), serviceProgram(), await adminProgram()]
}

/** docs/reference/cli.md: the help of every command. */
export async function cliPage(): Promise<string> {
  return [INTRODUCTION, ...(await programs()).flatMap((program) => commandsOf(program).map(section))].join('\n')
}

const INTRODUCTION = `# Command line

\`npm run docs\` generates this page from the command definitions. A test fails when the two differ.

Every command accepts \`--help\`. [configuration.md](configuration.md) lists the settings of posture-collector and
posture-service with their environment variables. [errors.md](errors.md) lists exit statuses and error codes.
`

/** A command and all its subcommands, in the order of the help. */
export function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}

/** \`posture-admin token bind\` */
export function commandName(command: Command): string {
  return command.parent === null ? command.name() : `${commandName(command.parent)} ${command.name()}`
}

/** The output of \`--help\` on a terminal of HELP_COLUMNS. */
export function helpText(command: Command): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
    getOutHelpWidth: () => HELP_COLUMNS,
    getOutHasColors: () => false,
  })
  command.outputHelp()
  return text.trimEnd()
}

function section(command: Command): string {
  const level = command.parent === null ? '##' : '###'
  return `${level} ${commandName(command)}\n\n${codeBlock('text', helpText(command))}\n`
}
