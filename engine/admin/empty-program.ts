import type { Command } from 'commander'
import { createProgram, withHelpCommand } from '../process/program.ts'

/** posture-admin without its commands. */
export function emptyProgram(): Command {
  const program = withHelpCommand(
    createProgram('posture-admin', "Administer the service's data directory, also while the service runs"),
  )
  // blocklist has options and commands: the options after a command are those of the command.
  return program.enablePositionalOptions()
}
