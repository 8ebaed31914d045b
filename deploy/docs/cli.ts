import type { Command } from 'commander'
import { serviceProgram } from '../../api/program.ts'
import { collectorProgram } from '../../collector/program.ts'
import { adminProgram } from '../../engine/cli/program.ts'
import { code, markdownTable } from './markdown.ts'

/** The three programs. Each call builds them again, since parsing changes a command. */
export async function programs(): Promise<Command[]> {
  return [collectorProgram(), serviceProgram(), await adminProgram()]
}

/** docs/reference/cli.md: a line for each command. `man` and `--help` have the rest. */
export async function cliPage(): Promise<string> {
  return [INTRODUCTION, ...(await programs()).map(section)].join('\n')
}

const INTRODUCTION = `# Command line

Every command accepts \`--help\`, which shows its options. The packages have the same as manual pages: \`man posture-admin\`, and
completion for bash, zsh and fish.

[configuration.md](configuration.md) lists the settings of posture-collector and posture-service with their environment
variables. [errors.md](errors.md) lists exit statuses and error codes. \`npm run docs\` generates this page.
`

/** A command and all its subcommands, in the order of the help. */
export function commandsOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}

/** \`posture-admin token bind\` */
export function commandName(command: Command): string {
  return command.parent === null ? command.name() : `${commandName(command.parent)} ${command.name()}`
}

function section(program: Command): string {
  const rows = commandsOf(program)
    .filter((command) => command.commands.length === 0)
    .map((command) => [code(commandName(command)), command.summary() || command.description()])
  return `## ${program.name()}\n\n${program.description()}.\n\n${markdownTable(['Command', 'Does'], rows)}\n`
}
