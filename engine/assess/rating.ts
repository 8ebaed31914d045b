import type { FrameworkId } from '../store/framework.ts'
import { type Mappings, mappedItems } from './mappings.ts'

/*
 * The weight and the priority of an item are computed when the program is built, from the published
 * baselines and mappings in frameworks/tables/. The level of an item is
 *
 *   NIST 800-53   its lowest baseline: low 1, moderate 2, high 3
 *   CIS           its lowest implementation group: IG1 1, IG2 2, IG3 3
 *   HIPAA         required 1, addressable 2
 *   all others    by the share of its mapped NIST 800-53 controls that are in the low baseline: from
 *                 two thirds 1, from one third 2, below 3; without such a control 2
 *
 *   weight    4 - level
 *   priority  frameworks with baselines: 2 x level - 1, their official order
 *             others: 1 if a mapped CIS safeguard is in IG1, essential hygiene; else 1 + level
 *             PCI DSS: at least 3, because all of it is required
 *             must-pass items: 1
 *
 * The file of AI Security has its priorities, by risk. There, a weight is 3 for priorities 1 and 2
 * and for duties by law, 2 for priority 3, and 1 below.
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
  /** Of AI Security. */
  readonly priority?: number | undefined
  readonly mustPass: boolean
}

export interface Rating {
  readonly weight: number
  readonly priority: number
}

/** @param baselines of the items of NIST 800-53 and CIS, by framework and id */
export function ratingOf(
  frameworkId: FrameworkId,
  { id, baselines: own = [], sources, priority, mustPass }: RatedItem,
  mappings: Mappings,
  baselines: (frameworkId: 'nist-800-53' | 'cis-v8', id: string) => readonly string[],
): Rating {
  if (priority !== undefined) {
    const weight = priority <= 2 || sources.has(LAW) ? 3 : priority === 3 ? 2 : 1
    return { weight, priority }
  }
  const levels = own.flatMap((name) => LEVEL_OF_BASELINE[name] ?? [])
  if (levels.length > 0) {
    const level = Math.min(...levels)
    return { weight: 4 - level, priority: mustPass ? 1 : 2 * level - 1 }
  }
  const controls = Object.keys(mappedItems(mappings, frameworkId, id, 'nist-800-53'))
  const low = controls.filter((control) => baselines('nist-800-53', control).includes('low')).length
  const level =
    controls.length === 0
      ? LEVEL_WITHOUT_FACTS
      : 3 * low >= 2 * controls.length
        ? 1
        : 3 * low >= controls.length
          ? 2
          : 3
  const safeguards = Object.keys(mappedItems(mappings, frameworkId, id, 'cis-v8'))
  const isEssential = mustPass || safeguards.some((each) => baselines('cis-v8', each).includes('ig1'))
  const lowest = frameworkId === 'pci-dss' ? 3 : 4
  return { weight: 4 - level, priority: isEssential ? 1 : Math.min(1 + level, lowest) }
}
