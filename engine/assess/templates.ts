import { readFileSync } from 'node:fs'
import {
  type AnyFrameworkId,
  type FrameworkId,
  type FrameworkItem,
  isBuiltIn,
  type Template,
  type Templates,
} from '../store/framework.ts'
import type { Store } from '../store/store.ts'
import type { Mappings } from './mappings.ts'
import { itemKey } from './rules.ts'

export interface BuiltFrameworks {
  readonly templates: Templates
  readonly mappings: Mappings
}

/** Written and checked by engine/assess/build.ts, so it is not checked again when read. */
export const FRAMEWORKS_FILE = new URL('./frameworks.json', import.meta.url)

let built: BuiltFrameworks | undefined
const itemsByKey = new WeakMap<Template, ReadonlyMap<string, FrameworkItem>>()

/** Read at the first call: a megabyte, which few commands need. */
export function loadFrameworks(): BuiltFrameworks {
  built ??= JSON.parse(readFileSync(FRAMEWORKS_FILE, 'utf8')) as BuiltFrameworks
  return built
}

export function loadTemplates(): Templates {
  return loadFrameworks().templates
}

/** The built-in template of a framework; undefined for an organization's own one. */
export function builtInTemplate(frameworkId: AnyFrameworkId): Template | undefined {
  return isBuiltIn(frameworkId) ? loadTemplates()[frameworkId] : undefined
}

/** The current items of a framework. undefined: the organization has no such framework any more. */
export function templateOf(store: Store, organizationId: string, frameworkId: AnyFrameworkId): Template | undefined {
  return builtInTemplate(frameworkId) ?? store.ownFrameworks.template(organizationId, frameworkId)
}

/** The items of a built-in framework, by key. */
export function frameworkItems(frameworkId: FrameworkId): ReadonlyMap<string, FrameworkItem> {
  return templateItems(loadTemplates()[frameworkId])
}

export function templateItems(template: Template): ReadonlyMap<string, FrameworkItem> {
  let items = itemsByKey.get(template)
  if (items === undefined) {
    const all = template.categories.flatMap((category) => category.items)
    items = new Map(all.map((item) => [itemKey(item.id), item]))
    itemsByKey.set(template, items)
  }
  return items
}

/**
 * The item of a framework whose texts explain an item of an assessment. undefined: the framework
 * has no such item, or asks another question now.
 */
export function guidanceOf(
  frameworkId: AnyFrameworkId,
  { id, question }: { readonly id: string; readonly question?: string },
  template = builtInTemplate(frameworkId),
): FrameworkItem | undefined {
  const item = template && templateItems(template).get(itemKey(id))
  return item !== undefined && item.question === question ? item : undefined
}
