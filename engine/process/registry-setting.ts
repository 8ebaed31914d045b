import { z } from 'zod'
import { builtInData } from '../../registry/built-in.ts'
import { type Catalog, loadCatalogOrBuiltIn } from '../../registry/catalog.ts'
import type { ReleasedData } from '../../registry/released-data.ts'
import type { Logger } from './log.ts'
import { setting } from './settings.ts'

/** The operator's registry file. '': none. */
export const registrySetting = setting(z.string().default(''), {
  flag: '--registry <file>',
  env: 'REGISTRY_FILE',
  about: 'Add, override or disable platforms with this YAML or JSON file',
})

/**
 * Returns the registry's data with the changes in the operator's file, if any. If the file is
 * faulty, the data without it is used: a sensor that detects most platforms is better than one
 * that does not start.
 */
export function catalogInForce(registryFile: string, log: Logger, data: ReleasedData = builtInData()): Catalog {
  const { catalog, fault } = loadCatalogOrBuiltIn(registryFile === '' ? { data } : { data, file: registryFile })
  if (fault !== undefined)
    log.error({ reason: fault.message }, 'REGISTRY_FILE not used, the registry without it stays in force')
  const { version, platforms, rules } = catalog
  log.info({ version, platforms: platforms.length, domains: rules.length }, 'registry loaded')
  return catalog
}
