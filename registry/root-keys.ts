import type { KeyObject } from 'node:crypto'
import { publicKeysOf } from './signed-release.ts'

/**
 * The project's root keys (PEM), which sign release keys. Each release of the program pins the ones
 * that it has here. While a root key is replaced, both are here
 * (CONTRIBUTING.md).
 *
 * The project has published none yet: operators pin their own with REGISTRY_ROOT.
 */
const PINNED = ''

/** The pinned root keys: those of the operator's text if there is one, else the project's. */
export function rootKeys(operatorsPem: string): KeyObject[] {
  return publicKeysOf(operatorsPem === '' ? PINNED : operatorsPem)
}
