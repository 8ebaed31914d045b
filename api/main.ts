#!/usr/bin/env node
import { runProgram } from '../engine/kernel/process/program.ts'
import { serviceProgram } from './program.ts'

await runProgram(serviceProgram())
