import type { Command } from 'commander'
import { z } from 'zod'
import { registrySetting } from '../../process/registry-setting.ts'
import { addSettingOptions, readSettings } from '../../process/settings.ts'

const settings = z.object({ registry: registrySetting })

/**
 * Adds the option of commands that look up platforms, so that a file can be tested before it is
 * added.
 */
export function registryOption(command: Command): Command {
  addSettingOptions(command, settings)
  for (const option of command.options) if (option.long === '--registry') option.conflicts(['org', 'serviceWide'])
  return command
}

/** The file that the command line or the environment names; '' if none. */
export function registryFileOf(command: Command): string {
  return readSettings(settings, { command, environment: process.env }).registry
}
