import { USE_SPECIFICITY_MIN } from '../../registry/platform-type.ts'
import { countsOf, type DayUse, type DayUseSketches } from '../store/daily-use.ts'
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
 * would double the time of a scan, so only days whose evidence changed are counted again. The
 * clients of a platform on a day only grow, so those of the last day are added to its sketches.
 */
export class UseCount {
  readonly #known: ReadonlyMap<number, DayUse>
  readonly #approved: ReadonlySet<string>
  readonly #counted = new Map<number, DayClients>()
  readonly #recounted: ReadonlySet<number>

  /**
   * @param known the days of the last scan, if its decisions and registry still apply
   * @param changed evidence that the scan writes
   */
  constructor(known: readonly DayUse[], changed: readonly { readonly day: number }[], approved: ReadonlySet<string>) {
    const changedDays = new Set(changed.map(({ day }) => day))
    this.#known = new Map(known.filter(({ day }) => !changedDays.has(day)).map((use) => [use.day, use]))
    this.#approved = approved
    for (const { day, sketches } of known) {
      if (sketches !== undefined && changedDays.has(day)) this.#counted.set(day, clientsOf(sketches))
    }
    this.#recounted = new Set([...changedDays].filter((day) => !this.#counted.has(day)))
  }

  /** Days with changed evidence that need the evidence of all platforms. */
  get recounted(): ReadonlySet<number> {
    return this.#recounted
  }

  /** Adds the clients of a platform on a day, if they used AI. */
  add(day: number, platformId: string, { specificity, clients }: Pick<DayEvidence, 'specificity' | 'clients'>): void {
    if (this.#known.has(day) || specificity < USE_SPECIFICITY_MIN) return
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
    const counted = Array.from(this.#counted, ([day, { all, notApproved }]): DayUse => {
      const sketches = { all: all.toBytes(), notApproved: notApproved.toBytes() }
      return { day, ...countsIn({ all, notApproved }), sketches }
    })
    const days = [...this.#known.values(), ...counted].filter(({ day }) => day >= firstDay)
    days.sort((a, b) => a.day - b.day)
    return days.map((use, index) => (index === days.length - 1 ? use : countsOf(use)))
  }
}

/** Whether the counts of a day are those of its sketches. */
export function isCountOf(sketches: DayUseSketches, { approved, notApproved }: DayUse): boolean {
  const counts = countsIn(clientsOf(sketches))
  return counts.approved === approved && counts.notApproved === notApproved
}

function countsIn({ all, notApproved }: DayClients): Pick<DayUse, 'approved' | 'notApproved'> {
  // An estimate of a part can exceed the estimate of the whole.
  return { approved: Math.max(0, all.estimate - notApproved.estimate), notApproved: notApproved.estimate }
}

function clientsOf({ all, notApproved }: DayUseSketches): DayClients {
  return { all: DistinctClients.fromBytes(all), notApproved: DistinctClients.fromBytes(notApproved) }
}
