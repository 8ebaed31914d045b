#!/usr/bin/env node
import { runProgram } from '../process/program.ts'
import { programWith } from './one-command.ts'

async function runCommand(): Promise<void> {
  const program = await programWith(process.argv[2] ?? '')
  // Help and mistakes need all commands.
  await runProgram(program ?? (await import('./program.ts')).adminProgram())
}

await runCommand()
