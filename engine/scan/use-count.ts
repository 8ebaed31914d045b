import { useOf } from '../../registry/use.ts'
import type { DayUse } from '../store/daily-use.ts'
import type { DayEvidence } from '../store/evidence.ts'
import { DistinctClients } from './distinct-clients.ts'

/** The clients of a day: of all AI platforms, and of those that are not approved. */
interface DayClients {
  readonly all: DistinctClients
  readonly notApproved: DistinctClients
}

/**
 * Counts the clients of all AI platforms by day, from the evidence that a scan reads. Clients per
 * platform do not add up, because one client uses several. Merging the sketches of a whole window
 * would double the time of a scan, so only days whose evidence changed are counted again.
 */
export class UseCount {
  readonly #known: ReadonlyMap<number, DayUse>
  readonly #approved: ReadonlySet<string>
  readonly #counted = new Map<number, DayClients>()

  /**
   * @param known the days of the last scan, if its decisions and registry still apply
   * @param changed evidence that the scan writes
   */
  constructor(known: readonly DayUse[], changed: readonly { readonly day: number }[], approved: ReadonlySet<string>) {
    const isChanged = new Set(changed.map(({ day }) => day))
    this.#known = new Map(known.filter(({ day }) => !isChanged.has(day)).map((use) => [use.day, use]))
    this.#approved = approved
  }

  /** Adds the clients of a platform on a day, if they used AI. */
  add(day: number, platformId: string, { specificity, clients }: Pick<DayEvidence, 'specificity' | 'clients'>): void {
    if (this.#known.has(day) || useOf(specificity) !== 'ai') return
    let counted = this.#counted.get(day)
    if (counted === undefined) {
      counted = { all: new DistinctClients(), notApproved: new DistinctClients() }
      this.#counted.set(day, counted)
    }
    counted.all.mergeBytes(clients)
    if (!this.#approved.has(platformId)) counted.notApproved.mergeBytes(clients)
  }

  /** The days with evidence, from `firstDay` on, in order. */
  days(firstDay: number): DayUse[] {
    const counted = Array.from(this.#counted, ([day, { all, notApproved }]) => {
      // An estimate of a part can exceed the estimate of the whole.
      return { day, approved: Math.max(0, all.estimate - notApproved.estimate), notApproved: notApproved.estimate }
    })
    const days = [...this.#known.values(), ...counted].filter(({ day }) => day >= firstDay)
    return days.sort((a, b) => a.day - b.day)
  }
}
