#!/usr/bin/env node
import { programFor } from '../cli/program.ts'
import { runProgram } from '../process/program.ts'

async function runCommand(): Promise<void> {
  await runProgram(await programFor(process.argv.slice(2)))
}

await runCommand()
