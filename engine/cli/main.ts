#!/usr/bin/env node
import { runProgram } from '../process/program.ts'
import { programFor } from './program.ts'

async function runCommand(): Promise<void> {
  await runProgram(await programFor(process.argv.slice(2)))
}

await runCommand()
