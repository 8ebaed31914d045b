import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { builtInData } from '../../../registry/built-in.ts'
import { type Catalog, type CatalogOptions, loadCatalogOrBuiltIn } from '../../../registry/catalog.ts'
import { REGISTRY_FILE_BYTES_MAX } from '../../../registry/registry-file.ts'
import type { ReleasedData } from '../../../registry/released-data.ts'
import { rootKeys } from '../../../registry/signed-release.ts'
import { Fault } from './error-codes.ts'
import { CA_BYTES_MAX, readInput } from './input-file.ts'
import type { Logger } from './log.ts'
import { setting } from './settings.ts'

/** The operator's registry file. '': none. */
export const registrySetting = setting(z.string().default(''), {
  flag: '--registry-file <file>',
  env: 'REGISTRY_FILE',
  advanced: 'You have platforms of your own that the console does not manage',
  about: 'Add, override or disable platforms with this YAML or JSON file',
  // Of posture-admin: the platforms of an organization are in the store.
  conflicts: ['org', 'serviceWide'],
})

/** The text of a registry file. @throws Fault REGISTRY_FILE */
export function registryFileText(file: string): string {
  return readInput(file, REGISTRY_FILE_BYTES_MAX, { what: '', code: 'REGISTRY_FILE' }).toString()
}

/** @param file of the setting; '': none */
export function registryFileOptions(file: string): Pick<CatalogOptions, 'file' | 'read'> {
  return file === '' ? {} : { file, read: registryFileText }
}

/**
 * Returns the registry's data with the changes in the operator's file, if any. If the file is
 * faulty, the data without it is used: a sensor that detects most platforms is better than one
 * that does not start.
 */
export function catalogInForce(registryFile: string, log: Logger, data: ReleasedData = builtInData()): Catalog {
  const { catalog, fault } = loadCatalogOrBuiltIn({ data, ...registryFileOptions(registryFile) })
  if (fault !== undefined)
    log.error({ reason: fault.message }, 'REGISTRY_FILE not used, the registry without it stays in force')
  const { version, platforms, rules } = catalog
  log.info({ version, platforms: platforms.length, domains: rules.length }, 'registry loaded')
  return catalog
}

/** The file with the operator's public root keys. '': those of this release of the program. */
export const registryRootSetting = setting(z.string().default(''), {
  flag: '--registry-root <file>',
  env: 'REGISTRY_ROOT',
  advanced: 'You publish updates of the registry yourself',
  about: 'Trust updates of the registry by the public root keys in this PEM file, instead of those of the project',
})

/**
 * The pinned root keys. Empty if neither the operator nor the project has any.
 *
 * @throws Fault USAGE
 */
export function registryRoots(file: string): KeyObject[] {
  if (file === '') return rootKeys('')
  const text = readInput(file, CA_BYTES_MAX, { what: '--registry-root', code: 'USAGE' }).toString()
  const keys = text === '' ? [] : rootKeys(text)
  if (keys.length > 0) return keys
  throw new Fault('USAGE', `--registry-root ${file}: expected public Ed25519 keys (PEM)`)
}
