#!/usr/bin/env node
import { runProgram } from '../process/program.ts'
import { programFor } from './program.ts'

await runProgram(await programFor(process.argv.slice(2)))
