#!/usr/bin/env node
import { runProgram } from '../engine/process/program.ts'
import { collectorProgram } from './program.ts'

await runProgram(collectorProgram())
