import { type ChildProcess, type ForkOptions, fork as nodeFork } from 'node:child_process'
import { isSea } from 'node:sea'

/**
 * Replaces node:child_process in a release: the process of a step is the program itself, with the
 * step's file as first argument.
 */
export * from 'node:child_process'

export function fork(file: string, args: readonly string[], options: ForkOptions): ChildProcess {
  return isSea() ? nodeFork(file, args, options) : nodeFork(process.argv[1] as string, [file, ...args], options)
}
