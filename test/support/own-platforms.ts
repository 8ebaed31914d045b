import { writeFileSync } from 'node:fs'
import type { ChangedEntry } from '../../registry/registry-file.ts'

/** A platform whose domains are these names and everything below them. */
export function platform(id: string, ...names: readonly string[]): ChangedEntry {
  return {
    id,
    name: `Own ${id}`,
    vendor: 'Example Corporation',
    platform_type: 'llm_chat',
    url: 'https://llm.corp.example/',
    risk: { score: 5, why: 'Runs in our own data center' },
    source: ['architecture board, May 2026'],
    domains: names.map((domain) => {
      return { domain, match: 'suffix', role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' }
    }),
  }
}

/** Writes a registry file in JSON. */
export function writeRegistryFile(
  path: string,
  platforms: readonly ChangedEntry[],
  disable: readonly string[] = [],
): string {
  writeFileSync(path, JSON.stringify({ platforms, disable }))
  return path
}
