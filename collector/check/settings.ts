import { X509Certificate } from 'node:crypto'
import { Fault } from '../../engine/process/error-codes.ts'
import { loadCatalogOrBuiltIn } from '../../registry/catalog.ts'
import type { CollectorSettings } from '../config.ts'
import { readAuthority } from '../forward/authority.ts'
import { userToBecome } from '../privileges.ts'
import type { StepOutcome } from './step.ts'

/**
 * The files that the settings name, where no other step tries them.
 *
 * @throws Fault USAGE for the user, and for the authority, without which nothing can be forwarded. A faulty registry is no such fault: `run`
 * goes on with the built-in one.
 */
export function checkSettings({
  ca,
  registry,
  endpoint,
  httpsPort,
  interface: name,
  user,
}: CollectorSettings): StepOutcome {
  if (ca !== '') assertCertificate(ca)
  userToBecome(user)
  const { catalog, fault } = loadCatalogOrBuiltIn(registry === '' ? {} : { file: registry })
  if (fault !== undefined) {
    const remedy = 'correct the file; until then the built-in registry is in force'
    return { result: 'failed', code: 'REGISTRY_FILE', found: fault.message, remedy }
  }
  const known = `${catalog.platforms.length} platforms, ${catalog.rules.length} domains`
  return { result: 'ok', found: `from ${name} to ${endpoint} port ${httpsPort}; registry: ${known}` }
}

/** Node takes any file for an authority, and trusts nobody then. */
function assertCertificate(file: string): void {
  const bytes = readAuthority(file)
  try {
    new X509Certificate(bytes)
    if (bytes.includes('-----BEGIN ')) return
  } catch {
    // Said below, with what is right.
  }
  throw new Fault('USAGE', `--ca: ${file} holds no certificate; expected a PEM file with -----BEGIN CERTIFICATE-----`)
}
