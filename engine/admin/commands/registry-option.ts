import type { Command } from 'commander'
import { z } from 'zod'
import type { Catalog } from '../../../registry/catalog.ts'
import { createLogger } from '../../process/log.ts'
import { catalogInForce, registrySetting } from '../../process/registry-setting.ts'
import { addSettingOptions, readSettings } from '../../process/settings.ts'

const settings = z.object({ registry: registrySetting })

/** Adds the option of commands that look up platforms. */
export function registryOption(command: Command): Command {
  return addSettingOptions(command, settings)
}

/** The file that the command line or the environment names; '' if none. */
export function registryFileOf(command: Command): string {
  return readSettings(settings, { command, environment: process.env }).registry
}

export function catalogOf(command: Command): Catalog {
  return catalogInForce(registryFileOf(command), createLogger('posture-admin', 'WARNING'))
}
