import { type ChildProcess, type ForkOptions, fork as nodeFork } from 'node:child_process'
import { isSea } from 'node:sea'

/** Stands for node:child_process in a release: the process of a step is the program itself, whose first argument names the step's file. */
export * from 'node:child_process'

export function fork(file: string, args: readonly string[], options: ForkOptions): ChildProcess {
  return isSea() ? nodeFork(file, args, options) : nodeFork(process.argv[1] as string, [file, ...args], options)
}
