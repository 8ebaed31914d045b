import type { Command } from 'commander'
import { createProgram } from '../engine/process/program.ts'
import { addBooksCommand } from './commands/books.ts'
import { addCheckCommand } from './commands/check.ts'
import { addOutboxCommand } from './commands/outbox.ts'
import { addReadCommand } from './commands/read.ts'
import { addRunCommand } from './commands/run.ts'
import { addSelftestCommand } from './commands/selftest.ts'

/** posture-collector with all its commands. The documentation is generated from it, too. */
export function collectorProgram(): Command {
  const program = createProgram(
    'posture-collector',
    'Watches DNS queries and the server names of TLS and QUIC for AI platforms and forwards what matches.',
  )
  addRunCommand(program)
  addCheckCommand(program)
  addReadCommand(program)
  addSelftestCommand(program)
  addBooksCommand(program)
  addOutboxCommand(program)
  program.addHelpText('after', '\n`run` need not be written; `posture-collector run --help` lists its options.')
  return program
}
