import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { Command } from 'commander'
import { Fault } from './error-codes.ts'

/** The parsed option. */
export interface SettingsFileOption {
  readonly settingsFile?: string
}

export function addSettingsFileOption(command: Command): Command {
  return command.option(
    '--settings-file <file>',
    'Read NAME=value lines from this file, which override the environment',
  )
}

/**
 * Returns the environment, overridden by the settings file.
 *
 * @throws Fault USAGE if the file cannot be read.
 */
export function environmentWith({ settingsFile }: SettingsFileOption): NodeJS.ProcessEnv {
  if (settingsFile === undefined) return process.env
  try {
    return { ...process.env, ...parseEnv(readFileSync(settingsFile, 'utf8')) }
  } catch (error) {
    throw new Fault('USAGE', `--settings-file ${settingsFile}: ${(error as Error).message}`, { cause: error })
  }
}
