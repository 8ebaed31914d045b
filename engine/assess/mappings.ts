import type { FrameworkId } from '../store/framework.ts'

/*
 * How an item relates to another one, as sets of what they ask for. A published mapping that states
 * no relation only says that the items share a topic: they intersect.
 *
 * A relation reads from left to right, and a mapping has its item on the right: among the mapped
 * items of "MFA for administrators", "MFA for all users" is a `superset`. From the other side, among
 * those of "MFA for all users", "MFA for administrators" is the `inverse`, a `subset`. If "MFA for
 * everybody" is equal to "MFA for all users", it is `composed('equal', 'superset')` of "MFA for
 * administrators", a `superset`.
 */
const INVERSES = { equal: 'equal', superset: 'subset', subset: 'superset', intersects: 'intersects' } as const

export type Relation = keyof typeof INVERSES

/** The closest first. */
const RELATIONS = Object.keys(INVERSES) as Relation[]

export function isRelation(text: string): text is Relation {
  return Object.hasOwn(INVERSES, text)
}

export function inverse(relation: Relation): Relation {
  return INVERSES[relation]
}

/** How A relates to C, if A relates to B like `first` and B to C like `second`. */
export function composed(first: Relation, second: Relation): Relation {
  if (first === 'equal' || first === second) return second
  return second === 'equal' ? first : 'intersects'
}

export function closer(one: Relation | undefined, other: Relation): Relation {
  return one !== undefined && RELATIONS.indexOf(one) < RELATIONS.indexOf(other) ? one : other
}

/** Whether an item that relates to another one like this asks for all that the other one asks for. */
export function contains(relation: Relation): boolean {
  return relation === 'equal' || relation === 'superset'
}

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
