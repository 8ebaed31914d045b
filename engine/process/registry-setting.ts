import { z } from 'zod'
import { type Catalog, loadCatalogOrBuiltIn } from '../../registry/catalog.ts'
import type { Logger } from './log.ts'
import { setting } from './settings.ts'

/** The operator's registry file. '': none. */
export const registrySetting = setting(z.string().default(''), {
  flag: '--registry <file>',
  env: 'REGISTRY_FILE',
  about: 'Add, override or disable platforms with this YAML or JSON file',
})

/**
 * Returns the built-in registry with the changes in the operator's file, if any. If the file is
 * faulty, the built-in registry is used: a sensor that detects most platforms is better than one
 * that does not start.
 */
export function catalogInForce(registryFile: string, log: Logger): Catalog {
  const { catalog, fault } = loadCatalogOrBuiltIn(registryFile === '' ? {} : { file: registryFile })
  if (fault !== undefined)
    log.error({ reason: fault.message }, 'REGISTRY_FILE not used, the built-in registry stays in force')
  log.info({ platforms: catalog.platforms.length, domains: catalog.rules.length }, 'registry loaded')
  return catalog
}
