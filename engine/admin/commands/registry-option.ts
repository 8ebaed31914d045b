import type { Command } from 'commander'
import type { Catalog } from '../../../registry/catalog.ts'
import { createLogger } from '../../process/log.ts'
import { catalogInForce } from '../../process/registry-setting.ts'

/** Commands that know platforms must know those that the service knows. */
export function registryOption(command: Command): Command {
  return command.option('--registry <file>', "the service's registry file", process.env['REGISTRY_FILE'] ?? '')
}

export function catalogOf(registryFile: string): Catalog {
  return catalogInForce(registryFile, createLogger('posture-admin', 'WARNING'))
}
