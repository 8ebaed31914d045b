import { readFileSync } from 'node:fs'
import type { ReleasedData } from './released-data.ts'

/**
 * Written by registry/build.ts next to the compiled files. Validated there, and not again when
 * read.
 */
export const BUILT_IN_FILE = new URL('./catalog.json', import.meta.url)

let version: string | undefined

/** The platforms of this release of the program. */
export function builtInData(): ReleasedData {
  const data = JSON.parse(readFileSync(BUILT_IN_FILE, 'utf8')) as ReleasedData
  version = data.version
  return data
}

/** Their version. The file is read at most once. */
export function builtInVersion(): string {
  return version ?? builtInData().version
}
