import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { z } from 'zod'
import { FRAMEWORK_IDS, type TemplateCategory, type Templates } from '../store/framework.ts'
import { categories, type Problem, problemsAcross, problemsOf, templateItem } from './rules.ts'
import { TEMPLATES_FILE } from './templates.ts'

/**
 * Compiles engine/assess/frameworks/*.yaml to frameworks.json in dist/, so that commands need no
 * YAML parser. Run by `npm run build` as `node dist/engine/assess/build.js`. Independent of the
 * working directory.
 */
export const FRAMEWORKS_DIR = new URL('../../../engine/assess/frameworks/', import.meta.url)

const templateFile = z.strictObject({ categories: categories(templateItem) })

/** Parses a YAML template. Throws an error with the place and the problem. */
export function readTemplate(name: string, text: string): readonly TemplateCategory[] {
  const document: unknown = parse(text)
  const parsed = templateFile.safeParse(document)
  if (!parsed.success) throw faultOf(name, problemsOf(parsed.error, document))
  const problems = problemsAcross(parsed.data.categories)
  if (problems.length > 0) throw faultOf(name, problems)
  return parsed.data.categories
}

/** Reads the templates of all frameworks, one file each. */
export function readTemplates(): Templates {
  const files = new Set(readdirSync(FRAMEWORKS_DIR))
  const templates = FRAMEWORK_IDS.map((id) => {
    const name = `${id}.yaml`
    if (!files.delete(name)) throw new Error(`${name}: the framework has no file`)
    return [id, readTemplate(name, readFileSync(new URL(name, FRAMEWORKS_DIR), 'utf8'))] as const
  })
  for (const name of files) throw new Error(`${name}: no framework has this name`)
  return Object.fromEntries(templates) as Templates
}

function faultOf(name: string, [first, ...others]: readonly Problem[]): Error {
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return new Error(`${name}: ${first?.place}: ${first?.problem}${more}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(TEMPLATES_FILE, JSON.stringify(readTemplates()))
}
