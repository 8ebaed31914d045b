import { isoDay } from '../kernel/process/clock.ts'
import { type AnyFrameworkId, type FrameworkItem, isBuiltIn } from '../store/framework.ts'
import { itemKey } from './rules.ts'
import { frameworkItems } from './templates.ts'

/*
 * Legal duties apply from different days. An item is marked until the first of its duties applies:
 * what it asks for is good practice until then.
 */

/** The day from which the law asks for an item, if it is later. undefined: it does now, or never. */
export function lawFrom(frameworkId: AnyFrameworkId, itemId: string, nowMs: number): string | undefined {
  const { law = [] } = (isBuiltIn(frameworkId) && frameworkItems(frameworkId).get(itemKey(itemId))) || {}
  const [first] = law.map(({ appliesFrom }) => appliesFrom).sort()
  return first !== undefined && first > isoDay(nowMs) ? first : undefined
}

/** The duties of an item: `AIACT Art. 26(9) from 2027-12-02`. */
export function lawText(law: FrameworkItem['law'] = []): string {
  return law.map(({ reference, appliesFrom }) => `${reference} from ${appliesFrom}`).join(', ')
}
