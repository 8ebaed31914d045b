import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { z } from 'zod'
import { FRAMEWORK_IDS, type TemplateCategory, type Templates } from '../store/framework.ts'
import { categories, type Problem, problemsAcross, problemsOf, templateItem } from './rules.ts'
import { TEMPLATES_FILE } from './templates.ts'

/**
 * engine/assess/frameworks/*.yaml -> frameworks.json beside the compiled files, so that a command reads JSON and not YAML.
 * Run by `npm run build` as `node dist/engine/assess/build.js`, from wherever: paths are taken from this file's own place.
 */
export const FRAMEWORKS_DIR = new URL('../../../engine/assess/frameworks/', import.meta.url)

const templateFile = z.strictObject({ categories: categories(templateItem) })

/** The template that a text in YAML says. Throws an error that names the place and what is wrong there. */
export function readTemplate(name: string, text: string): readonly TemplateCategory[] {
  const document: unknown = parse(text)
  const parsed = templateFile.safeParse(document)
  if (!parsed.success) throw faultOf(name, problemsOf(parsed.error, document))
  const problems = problemsAcross(parsed.data.categories)
  if (problems.length > 0) throw faultOf(name, problems)
  return parsed.data.categories
}

/** The templates of all frameworks, which each have one file. */
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
