import type { FrameworkId } from '../store/framework.ts'
import { closer, composed, type Relation } from './relation.ts'

/** The mapped items of one framework, and how each relates to the item that has the mapping. */
export type MappedItems = Readonly<Record<string, Relation>>

/**
 * The items of other frameworks that are mapped to each item, by its id and their framework. Each
 * pair is in both directions.
 */
export type Mappings = Readonly<
  Record<FrameworkId, Readonly<Record<string, Partial<Readonly<Record<FrameworkId, MappedItems>>>>>>
>

/**
 * The items of a framework that are mapped to an item, directly or through a third framework, and
 * how each relates to it.
 */
export function mappedItems(mappings: Mappings, frameworkId: FrameworkId, id: string, to: FrameworkId): MappedItems {
  const mapped = mappings[frameworkId][id] ?? {}
  if (isMapped(mappings, frameworkId, to)) return mapped[to] ?? {}
  const found: Record<string, Relation> = {}
  for (const [other, between] of Object.entries(mapped) as [FrameworkId, MappedItems][]) {
    for (const [each, toItem] of Object.entries(between)) {
      for (const [far, toEach] of Object.entries(mappings[other][each]?.[to] ?? {})) {
        found[far] = closer(found[far], composed(toEach, toItem))
      }
    }
  }
  return found
}

/** Whether there is a published mapping between two frameworks. */
export function isMapped(mappings: Mappings, from: FrameworkId, to: FrameworkId): boolean {
  return Object.values(mappings[from]).some((mapped) => mapped[to] !== undefined)
}
