import { readFileSync } from 'node:fs'
import type { Templates } from '../store/framework.ts'

/** Written and checked by engine/assess/build.ts, so it is not checked again when read. */
export const TEMPLATES_FILE = new URL('./frameworks.json', import.meta.url)

export function loadTemplates(): Templates {
  return JSON.parse(readFileSync(TEMPLATES_FILE, 'utf8')) as Templates
}
