import type { FrameworkId } from '../store/framework.ts'
import type { MappedItems, Mappings } from './templates.ts'

/*
 * The weight and the priority of an item are computed when the program is built, from the published
 * baselines and mappings in frameworks/tables/:
 *
 *   level     1 basic, 2 extended, 3 advanced
 *   weight    4 - level
 *   priority  2 x level - 1; one lower (a higher number, at most 5) if no other framework has a
 *             mapped item
 *
 *   The level of an item is
 *     NIST 800-53   its lowest baseline: low 1, moderate 2, high 3
 *     CIS           its lowest implementation group: IG1 1, IG2 2, IG3 3
 *     HIPAA         required 1, addressable 2
 *     AI Security   1 if the law asks for it (EU AI Act); else by the number of its sources: three
 *                   or more 1, two 2, one 3
 *     all others    by the share of its mapped NIST 800-53 controls that are in the low baseline:
 *                   from two thirds 1, from one third 2, below 3; without such a control 2. An item
 *                   without a mapped control has those of its mapped items in other frameworks.
 */
const LEVEL_OF_BASELINE: Readonly<Record<string, number>> = {
  low: 1,
  moderate: 2,
  high: 3,
  ig1: 1,
  ig2: 2,
  ig3: 3,
  required: 1,
  addressable: 2,
}
const LEVEL_WITHOUT_FACTS = 2
/** The document whose duties are law. */
const LAW = 'AIACT'

export interface RatedItem {
  readonly id: string
  readonly baselines?: readonly string[] | undefined
  /** The documents that the item's references are from. */
  readonly sources: ReadonlySet<string>
}

export interface Rating {
  readonly weight: number
  readonly priority: number
}

/** @param lowControls by the ids of NIST 800-53: whether the low baseline has the control */
export function ratingOf(
  frameworkId: FrameworkId,
  item: RatedItem,
  mappings: Mappings,
  lowControls: ReadonlyMap<string, boolean>,
): Rating {
  const level = levelOf(frameworkId, item, mappings, lowControls)
  const isShared = mappings[frameworkId][item.id] !== undefined
  return { weight: 4 - level, priority: Math.min(5, 2 * level - (isShared ? 1 : 0)) }
}

function levelOf(
  frameworkId: FrameworkId,
  { id, baselines = [], sources }: RatedItem,
  mappings: Mappings,
  lowControls: ReadonlyMap<string, boolean>,
): number {
  if (frameworkId === 'ai-security') return sources.has(LAW) ? 1 : Math.max(1, 4 - sources.size)
  const levels = baselines.flatMap((name) => LEVEL_OF_BASELINE[name] ?? [])
  if (levels.length > 0) return Math.min(...levels)
  const controls = controlsOf(frameworkId, id, mappings).filter((control) => lowControls.has(control))
  if (controls.length === 0) return LEVEL_WITHOUT_FACTS
  const low = controls.filter((control) => lowControls.get(control)).length
  return 3 * low >= 2 * controls.length ? 1 : 3 * low >= controls.length ? 2 : 3
}

/** The mapped controls of NIST 800-53, or else those of the mapped items in other frameworks. */
function controlsOf(frameworkId: FrameworkId, id: string, mappings: Mappings): readonly string[] {
  const mapped = mappings[frameworkId][id] ?? {}
  const direct = mapped['nist-800-53']
  if (direct !== undefined) return Object.keys(direct)
  const others = Object.entries(mapped) as [FrameworkId, MappedItems][]
  const found = others.flatMap(([other, items]) =>
    Object.keys(items).flatMap((each) => Object.keys(mappings[other][each]?.['nist-800-53'] ?? {})),
  )
  return [...new Set(found)]
}
