import { readFileSync } from 'node:fs'
import type { FrameworkId, FrameworkItem, Templates } from '../store/framework.ts'
import { itemKey } from './rules.ts'

/**
 * The items of other frameworks that are mapped to each item, by its id and their framework. Each
 * pair is in both directions.
 */
export type Mappings = Readonly<
  Record<FrameworkId, Readonly<Record<string, Partial<Readonly<Record<FrameworkId, readonly string[]>>>>>>
>

export interface BuiltFrameworks {
  readonly templates: Templates
  readonly mappings: Mappings
}

/** Written and checked by engine/assess/build.ts, so it is not checked again when read. */
export const FRAMEWORKS_FILE = new URL('./frameworks.json', import.meta.url)

let built: BuiltFrameworks | undefined
const itemsByKey = new Map<FrameworkId, ReadonlyMap<string, FrameworkItem>>()

/** Read at the first call: a megabyte, which few commands need. */
export function loadFrameworks(): BuiltFrameworks {
  built ??= JSON.parse(readFileSync(FRAMEWORKS_FILE, 'utf8')) as BuiltFrameworks
  return built
}

export function loadTemplates(): Templates {
  return loadFrameworks().templates
}

/** The items of a built-in framework, by key. */
export function frameworkItems(frameworkId: FrameworkId): ReadonlyMap<string, FrameworkItem> {
  let items = itemsByKey.get(frameworkId)
  if (items === undefined) {
    const all = loadTemplates()[frameworkId].categories.flatMap((category) => category.items)
    items = new Map(all.map((item) => [itemKey(item.id), item]))
    itemsByKey.set(frameworkId, items)
  }
  return items
}

/**
 * The built-in item whose texts explain an item of an assessment. undefined: the framework has no
 * such item, or asks another question now.
 */
export function guidanceOf(
  frameworkId: FrameworkId,
  { id, question }: { readonly id: string; readonly question?: string },
): FrameworkItem | undefined {
  const item = frameworkItems(frameworkId).get(itemKey(id))
  return item !== undefined && item.question === question ? item : undefined
}
