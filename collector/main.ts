#!/usr/bin/env node
import { runProgram } from '../engine/kernel/process/program.ts'
import { collectorProgram } from './program.ts'

await runProgram(collectorProgram())
