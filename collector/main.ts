#!/usr/bin/env node
import { createProgram, runProgram } from '../engine/process/program.ts'
import { addReadCommand } from './commands/read.ts'
import { addRunCommand } from './commands/run.ts'

const program = createProgram(
  'posture-collector',
  'Watches DNS queries and TLS server names for AI platforms and forwards what matches.',
)
addRunCommand(program)
addReadCommand(program)
program.addHelpText('after', '\n`run` need not be written; `posture-collector run --help` lists its options.')
await runProgram(program)
