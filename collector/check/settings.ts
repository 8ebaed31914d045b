import { X509Certificate } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { notReadable } from '../../engine/kernel/process/ownership.ts'
import { registryFileOptions } from '../../engine/kernel/process/registry-setting.ts'
import { loadCatalogOrBuiltIn } from '../../registry/catalog.ts'
import type { CollectorSettings } from '../config.ts'
import { readCaCertificate } from '../forward/connection.ts'
import { userToBecome } from '../privileges.ts'
import type { StepOutcome } from './step.ts'

/**
 * Checks the files in the settings that no other step reads.
 *
 * @throws Fault USAGE for the user, and for the CA certificate, without which nothing can be
 *   forwarded. An invalid registry is not such a failure: `run` continues with the built-in one.
 */
export function checkSettings(settings: CollectorSettings): StepOutcome {
  if (settings.ca !== '') assertCertificate(settings.ca)
  userToBecome(settings)
  return checkRegistry(settings)
}

/**
 * Checks the registry file as the current user: after dropping root, the collector reads the file
 * again at each SIGHUP.
 */
export function checkRegistry({ registry, endpoint, httpsPort, interface: name }: CollectorSettings): StepOutcome {
  const denied = registry === '' ? undefined : readingDenied(registry)
  if (denied !== undefined) {
    return { result: 'failed', code: 'REGISTRY_FILE', found: `--registry-file: ${denied.found}`, fix: denied.remedy }
  }
  const { catalog, fault } = loadCatalogOrBuiltIn(registryFileOptions(registry))
  if (fault !== undefined) {
    const fix = 'correct the file; until then the built-in registry is used'
    return { result: 'failed', code: 'REGISTRY_FILE', found: fault.message, fix }
  }
  const known = `${catalog.platforms.length} platforms, ${catalog.rules.length} domains`
  return { result: 'ok', found: `from ${name} to ${endpoint} port ${httpsPort}; registry: ${known}` }
}

function readingDenied(file: string): ReturnType<typeof notReadable> {
  try {
    accessSync(file, constants.R_OK)
    return undefined
  } catch (error) {
    return notReadable(error)
  }
}

/** Node accepts any file as a CA certificate, and then trusts no peer. */
function assertCertificate(file: string): void {
  const bytes = readCaCertificate(file)
  try {
    new X509Certificate(bytes)
    if (bytes.includes('-----BEGIN ')) return
  } catch {
    // The error below also says what is expected.
  }
  throw new Fault(
    'USAGE',
    `--service-ca-file: ${file} holds no certificate; expected a PEM file with -----BEGIN CERTIFICATE-----`,
  )
}
