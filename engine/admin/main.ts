#!/usr/bin/env node
import { programFor } from '../cli/program.ts'
import { runProgram } from '../process/program.ts'

await runProgram(await programFor(process.argv.slice(2)))
