import { readFileSync } from 'node:fs'

/** The version in package.json, which is above this file in the source tree and in dist/. */
export function programVersion(): string {
  for (const up of ['../../../package.json', '../../../../package.json']) {
    try {
      const parsed = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as {
        name?: string
        version?: string
      }
      if (parsed.name === 'security-posture-service' && parsed.version !== undefined) return parsed.version
    } catch {
      // Not in this directory: try its parent.
    }
  }
  return 'unknown'
}
