import { readFileSync } from 'node:fs'
import type { Templates } from '../store/framework.ts'

/** What engine/assess/build.ts writes beside the compiled files; checked there, so it is read here without a second check. */
export const TEMPLATES_FILE = new URL('./frameworks.json', import.meta.url)

export function loadTemplates(): Templates {
  return JSON.parse(readFileSync(TEMPLATES_FILE, 'utf8')) as Templates
}
