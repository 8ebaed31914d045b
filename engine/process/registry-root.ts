import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { rootKeys } from '../../registry/root-keys.ts'
import { Fault } from './error-codes.ts'
import { setting } from './settings.ts'

/** The file with the operator's public root keys. '': those of this release of the program. */
export const registryRootSetting = setting(z.string().default(''), {
  flag: '--registry-root <file>',
  env: 'REGISTRY_ROOT',
  about: 'Trust updates of the registry by the public root keys in this PEM file, instead of those of the project',
})

/**
 * The pinned root keys. Empty if neither the operator nor the project has any.
 *
 * @throws Fault USAGE
 */
export function registryRoots(file: string): KeyObject[] {
  if (file === '') return rootKeys('')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new Fault('USAGE', `--registry-root ${file}: ${(error as NodeJS.ErrnoException).code}`, { cause: error })
  }
  const keys = text === '' ? [] : rootKeys(text)
  if (keys.length > 0) return keys
  throw new Fault('USAGE', `--registry-root ${file}: expected public Ed25519 keys (PEM)`)
}
