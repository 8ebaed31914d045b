import {
  type ChildProcess,
  type ForkOptions,
  fork as nodeFork,
  spawn as nodeSpawn,
  type SpawnOptions,
} from 'node:child_process'
import { isSea } from 'node:sea'
import { installedPath } from './parts.ts'

/**
 * Replaces node:child_process in a release: the process of a step is the program itself, with the
 * step's file as first argument.
 */
export * from 'node:child_process'

export function fork(file: string, args: readonly string[], options: ForkOptions): ChildProcess {
  return isSea() ? nodeFork(file, args, options) : nodeFork(process.argv[1] as string, [file, ...args], options)
}

/** Paths of the sources in the arguments become those of the installed files. */
export function spawn(file: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  return nodeSpawn(file, args.map(installedArgument), options)
}

/** Also after the name of an option, as in `--allow-fs-read=PATH`. */
function installedArgument(argument: string): string {
  const at = argument.startsWith('-') ? argument.indexOf('=') + 1 : 0
  return argument.slice(0, at) + installedPath(argument.slice(at))
}
