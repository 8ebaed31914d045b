#!/usr/bin/env node
import { runProgram } from '../process/program.ts'
import { adminProgram } from './program.ts'

await runProgram(adminProgram())
