import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dataText } from '../../deploy/release/registry-package.ts'
import { publicKeyText, signReleaseKey, updateFile } from '../../deploy/release/registry-signing.ts'
import { builtInData } from '../../registry/built-in.ts'
import { type Platform, platformOf } from '../../registry/platform.ts'
import type { ReleasedData } from '../../registry/released-data.ts'

export const newKey = (): KeyObject => generateKeyPairSync('ed25519').privateKey

/** The keys of a project that signs updates. */
export const ROOT = newKey()
export const FIRST_KEY = { key: newKey(), number: 1, until: '2099-12-31' }
export const SECOND_KEY = { key: newKey(), number: 2, until: '2099-12-31' }

/** A platform of a host that the built-in registry lacks. */
export function newPlatform(id: string, domain: string): Platform {
  return platformOf({
    ...{ id, name: id, vendor: 'Example', platform_type: 'llm_chat', url: `https://${domain}/` },
    risk: { score: 40, why: 'General chatbot' },
    source: [`https://${domain}/ 2026-11-23`],
    domains: [{ domain, match: 'exact', role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' }],
  })
}

export interface UpdateOptions {
  readonly signer?: typeof FIRST_KEY
  readonly root?: KeyObject
  readonly platforms?: readonly Platform[]
  readonly validDays?: number
  /** Replaces the text of registry.json. */
  readonly json?: string
}

/** An update file: the built-in registry with more platforms. */
export function makeUpdate(version: string, options: UpdateOptions = {}): Buffer {
  const { signer = FIRST_KEY, root = ROOT, platforms = [], validDays = 180, json } = options
  const data: ReleasedData = { version, platforms: [...builtInData().platforms, ...platforms] }
  const text = json ?? dataText(data, { version, commit: 'c'.repeat(40), epochSeconds: 1_795_000_000 })
  const signed = signReleaseKey(root, signer.key, signer.number, signer.until)
  return updateFile(text, version, signer.key, signed, validDays)
}

/** Writes the public root key to a file, for REGISTRY_ROOT. */
export function writeRoot(folder: string, root: KeyObject = ROOT): string {
  const file = join(folder, 'root.pem')
  writeFileSync(file, publicKeyText(root))
  return file
}

/** The version of the built-in registry, and later ones of the same day. */
export const BUILT_IN_VERSION = builtInData().version
export const laterVersion = (by: number): string => {
  return `${BUILT_IN_VERSION.slice(0, 10)}.${Number(BUILT_IN_VERSION.split('.')[3] ?? 1) + by}`
}
