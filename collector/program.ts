import type { Command } from 'commander'
import { createProgram, withHelpCommand } from '../engine/kernel/process/program.ts'
import { addCheckCommand } from './commands/check.ts'
import { addCountersCommand } from './commands/counters.ts'
import { addOutboxCommand } from './commands/outbox.ts'
import { addReadCommand } from './commands/read.ts'
import { addRunCommand } from './commands/run.ts'
import { addSelftestCommand } from './commands/selftest.ts'

/** The command line of posture-collector. */
export function collectorProgram(): Command {
  const program = withHelpCommand(
    createProgram(
      'posture-collector',
      'Find AI platforms in DNS queries and in the server names of TLS and QUIC, and forward matches to posture-service',
    ),
  )
  addRunCommand(program)
  addCheckCommand(program)
  addReadCommand(program)
  addSelftestCommand(program)
  addCountersCommand(program)
  addOutboxCommand(program)
  return program.addHelpText('after', '\nThe command run may be omitted.\nSee posture-collector run --help.')
}
