#!/usr/bin/env node
import { programFor } from '../cli/program.ts'
import { runProgram } from '../kernel/process/program.ts'

async function runCommand(): Promise<void> {
  await runProgram(await programFor(process.argv.slice(2)))
}

// One `await`: the release makes CommonJS of this file and leaves it out.
await runCommand()
