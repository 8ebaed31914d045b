import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { readYaml } from '../../registry/yaml.ts'
import {
  DISCOVERY_TOPICS,
  FRAMEWORK_IDS,
  type FrameworkId,
  type FrameworkItem,
  type Template,
} from '../store/framework.ts'
import { versionOf, writtenItem } from './framework-file.ts'
import { closer, inverse, type Mappings, type Relation } from './mappings.ts'
import { withWeights } from './profiles.ts'
import { ratingOf } from './rating.ts'
import { categoriesOf, line, type Problem, priority, problemsAcross, problemsOf } from './rules.ts'
import { readIdentifiers, readLaw, readMappings } from './tables.ts'
import { type BuiltFrameworks, FRAMEWORKS_FILE } from './templates.ts'

/**
 * Compiles engine/assess/frameworks/ to frameworks.json in dist/, so that commands need no YAML
 * parser. Run by `npm run build` as `node dist/engine/assess/build.js`. Independent of the working
 * directory.
 */
export const FRAMEWORKS_DIR = new URL('../../../engine/assess/frameworks/', import.meta.url)

const builtInItem = writtenItem
  .extend({
    /** Facts of discovery that show all that the item asks for. */
    decided_by: z.enum(DISCOVERY_TOPICS).optional(),
    /** Facts of discovery that show a part of it. */
    supported_by: z.enum(DISCOVERY_TOPICS).optional(),
    /** Without it, the grade is D at best. */
    must_pass: z.literal(true).optional(),
    /** Of AI Security, by risk. Other frameworks have published baselines (rating.ts). */
    priority: priority.optional(),
  })
  .strict()
const file = z.strictObject({
  categories: categoriesOf(
    z.strictObject({
      name: line,
      /** Of its items that have none of their own. */
      baselines: builtInItem.shape.baselines,
    }),
    builtInItem,
  ),
})

type WrittenItem = z.infer<typeof builtInItem>
export interface WrittenCategory {
  readonly name: string
  readonly baselines?: readonly string[] | undefined
  readonly items: readonly WrittenItem[]
}

/** Parses the YAML of a framework. Throws an error with the place and the problem. */
export function readWritten(name: string, text: string): readonly WrittenCategory[] {
  const document = readYaml(text).value
  const parsed = file.safeParse(document)
  if (!parsed.success) throw faultOf(name, problemsOf(parsed.error, document))
  const problems = problemsAcross(parsed.data.categories)
  if (problems.length > 0) throw faultOf(name, problems)
  return parsed.data.categories
}

/** Reads all frameworks, one file each, and rates their items. */
export function buildFrameworks(): BuiltFrameworks {
  const files = new Set(readdirSync(FRAMEWORKS_DIR).filter((name) => name.endsWith('.yaml')))
  const written = FRAMEWORK_IDS.map((id) => {
    const name = `${id}.yaml`
    if (!files.delete(name)) throw new Error(`${name}: the framework has no file`)
    return [id, readWritten(name, readFileSync(new URL(name, FRAMEWORKS_DIR), 'utf8'))] as const
  })
  for (const name of files) throw new Error(`${name}: no framework has this name`)
  const mappings = mappingsOf(written)
  const templates = written.map(([id, categories]) => [id, templateOf(id, categories, mappings)] as const)
  return { templates: Object.fromEntries(templates) as BuiltFrameworks['templates'], mappings }
}

function templateOf(frameworkId: FrameworkId, written: readonly WrittenCategory[], mappings: Mappings): Template {
  const published = new Map(
    [...readIdentifiers()].map(([id, all]) => [id, new Map(all.map((each) => [each.id, each.baselines]))]),
  )
  const publishedOf = (framework: FrameworkId, id: string) => published.get(framework)?.get(id)
  const duties = readLaw()
  const rated = (item: WrittenItem, ofCategory: readonly string[] | undefined): FrameworkItem => {
    const { id, title, question, yes, partial, no, evidence, references, recommendation } = item
    const topic = item.decided_by ?? item.supported_by
    const baselines = item.baselines ?? ofCategory ?? publishedOf(frameworkId, id)
    const mustPass = item.must_pass ?? false
    const sources = new Set((references ?? []).map(sourceOf))
    const law = (references ?? []).flatMap((reference) => duties.get(reference) ?? [])
    return {
      id,
      title,
      question,
      recommendation,
      guidance: { yes, partial, no, evidence },
      ...(baselines === undefined || baselines.length === 0 ? {} : { baselines }),
      ...(references === undefined ? {} : { references }),
      ...(law.length === 0 ? {} : { law }),
      ...(topic === undefined ? {} : { discovery: { topic, decides: item.decided_by !== undefined } }),
      ...(mustPass ? { mustPass: true as const } : {}),
      ...ratingOf(
        frameworkId,
        { id, baselines, sources, priority: item.priority, mustPass },
        mappings,
        (...named) => publishedOf(...named) ?? [],
      ),
    }
  }
  const categories = withWeights(
    written.map(({ name, baselines, items }) => ({ name, items: items.map((item) => rated(item, baselines)) })),
  )
  return { version: versionOf(categories), categories }
}

/** The document of a reference such as `OWASP LLM01` or `ISO42001 A.2.2`. */
export function sourceOf(reference: string): string {
  return reference.split(' ', 1)[0] ?? ''
}

/**
 * The mapped items of all frameworks, in both directions. A reference stands for the items that have
 * it. Such an item is written in words of its own, so all that is known is that it shares a topic.
 */
function mappingsOf(written: readonly (readonly [FrameworkId, readonly WrittenCategory[]])[]): Mappings {
  const items = new Map<string, string[]>()
  const ownWords = new Set<string>()
  for (const [framework, categories] of written) {
    for (const { id, references } of categories.flatMap((category) => category.items)) {
      if (references !== undefined) ownWords.add(`${framework}\0${id}`)
      for (const name of references ?? [id]) {
        const key = `${framework}\0${name}`
        items.set(key, [...(items.get(key) ?? []), id])
      }
    }
  }
  const mapped = Object.fromEntries(FRAMEWORK_IDS.map((id) => [id, {}])) as Record<
    FrameworkId,
    Record<string, Partial<Record<FrameworkId, Record<string, Relation>>>>
  >
  const add = (from: FrameworkId, id: string, to: FrameworkId, other: string, relation: Relation): void => {
    const known = mapped[from][id]?.[to] ?? {}
    mapped[from][id] = { ...mapped[from][id], [to]: { ...known, [other]: closer(known[other], relation) } }
  }
  for (const { from, id, to, relation: published, ids } of readMappings()) {
    for (const one of items.get(`${from}\0${id}`) ?? []) {
      for (const other of ids.flatMap((each) => items.get(`${to}\0${each}`) ?? [])) {
        const isPublished = !ownWords.has(`${from}\0${one}`) && !ownWords.has(`${to}\0${other}`)
        const relation = isPublished ? published : 'intersects'
        // The row says how `one` relates to `other`; a mapping, how `other` relates to its item.
        add(from, one, to, other, inverse(relation))
        add(to, other, from, one, relation)
      }
    }
  }
  return mapped
}

function faultOf(name: string, [first, ...others]: readonly Problem[]): Error {
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  return new Error(`${name}: ${first?.place}: ${first?.problem}${more}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(FRAMEWORKS_FILE, JSON.stringify(buildFrameworks()))
}
