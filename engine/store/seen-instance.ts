import { SEEN_PAGES_PER_INSTANCE_MAX } from '../limits.ts'
import type { Family } from './family.ts'
import { u64Bytes } from './keys.ts'

/** A set of integers, as ascending ranges that neither touch nor overlap. */
export class SequenceSet {
  /** first, last, first, last, ... */
  readonly #bounds: number[]

  constructor(ranges: readonly number[] = []) {
    this.#bounds = [...ranges]
  }

  get ranges(): readonly number[] {
    return this.#bounds
  }

  get rangeCount(): number {
    return this.#bounds.length / 2
  }

  /** Adds a number. Returns false if the set contains it. */
  add(sequence: number): boolean {
    return this.addRange(sequence, sequence)
  }

  /**
   * Adds first..last if the set contains none of them. Otherwise returns false, and the caller adds
   * them one by one.
   */
  addRange(first: number, last: number): boolean {
    const bounds = this.#bounds
    const end = bounds.length - 1
    // Fast path: the next sequences.
    if (end > 0 && first === (bounds[end] ?? 0) + 1) {
      bounds[end] = last
      return true
    }
    const range = this.#firstRangeEndingAtOrAfter(first)
    const next = bounds[range * 2]
    if (next !== undefined && next <= last) return false
    const joinsLeft = range > 0 && bounds[range * 2 - 1] === first - 1
    const joinsRight = next === last + 1
    if (joinsLeft && joinsRight) bounds.splice(range * 2 - 1, 2)
    else if (joinsLeft) bounds[range * 2 - 1] = last
    else if (joinsRight) bounds[range * 2] = first
    else bounds.splice(range * 2, 0, first, last)
    return true
  }

  /** Removes the lowest ranges from the set, and returns them. */
  takeLowest(rangeCount: number): number[] {
    return this.#bounds.splice(0, rangeCount * 2)
  }

  #firstRangeEndingAtOrAfter(sequence: number): number {
    let low = 0
    let high = this.#bounds.length / 2
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#bounds[middle * 2 + 1] ?? 0) < sequence) low = middle + 1
      else high = middle
    }
    return low
  }
}

/*
 * The counted sequences of one collector instance, as ranges in pages:
 *
 *   head    the newest ranges, up to PAGE_RANGES_MAX; each batch of the instance rewrites it
 *   page    older ranges: all counted sequences after the previous page's last, up to its own last
 *   late    sequences up to lateThrough, of removed pages: whether they were counted is unknown
 *
 *   0 ......... lateThrough ......... last ......... last = pagesThrough ......... newest
 *        late                 page           page                        head
 *
 * A collector's sequences arrive almost in order, so a page is read again only for a late event. A
 * head or page with too many ranges moves half a page of them into a new page. A page with too few
 * ranges is merged with the next.
 */
export const PAGE_RANGES_MAX = 1024
const PAGE_RANGES_NEW = PAGE_RANGES_MAX / 2
const PAGE_RANGES_MIN = PAGE_RANGES_MAX / 4

/** The head of one instance, as stored. Ranges are pairs of first and last, ascending. */
export interface StoredSeen {
  readonly ranges: readonly number[]
  /** When the instance last sent a new event, in milliseconds since 1970. */
  readonly usedMs: number
  /** Absent if the instance never had pages. */
  readonly pages?: number
  readonly pagesThrough?: number
  readonly lateThrough?: number
}

/** A page as stored. Its last sequence is in its key. */
export interface StoredSeenPage {
  readonly ranges: readonly number[]
}

/** Whether a sequence was counted before. `late`: the sequence is older than the stored ranges. */
export type Seen = 'new' | 'duplicate' | 'late'

interface Page {
  readonly last: number
  readonly set: SequenceSet
  changed: boolean
}

/**
 * The sequences of one instance while a batch is stored. Requires a transaction of the caller, from
 * construction to write().
 */
export class SeenInstance {
  readonly isNew: boolean
  /** Number of pages that write() removed because of a limit. */
  pagesForgotten = 0
  readonly #key: Buffer
  readonly #pageFamily: Family<StoredSeenPage>
  readonly #head: Page
  readonly #pages = new Map<number, Page>()
  #pagesAdded = 0
  #pageCount: number
  #pagesThrough: number
  #lateThrough: number
  /** The page of the last lookup, and the lowest sequence that is known to belong to it. */
  #current: Page | undefined
  #currentFrom = 0

  /** @param key organization and instance */
  constructor(key: Buffer, stored: StoredSeen | undefined, pageFamily: Family<StoredSeenPage>) {
    this.isNew = stored === undefined
    this.#key = key
    this.#pageFamily = pageFamily
    this.#head = { last: Number.POSITIVE_INFINITY, set: new SequenceSet(stored?.ranges), changed: false }
    this.#pageCount = stored?.pages ?? 0
    this.#pagesThrough = stored?.pagesThrough ?? 0
    this.#lateThrough = stored?.lateThrough ?? 0
  }

  /**
   * Adds the sequences first..last. Reports consecutive sequences with the same result together, in
   * order.
   */
  add(first: number, last: number, report: (seen: Seen, count: number) => void): void {
    let at = first
    while (at <= last) {
      if (at <= this.#lateThrough) {
        const end = Math.min(last, this.#lateThrough)
        report('late', end - at + 1)
        at = end + 1
        continue
      }
      const page = this.#pageOf(at)
      const end = Math.min(last, page.last)
      if (page.set.addRange(at, end)) {
        page.changed = true
        report('new', end - at + 1)
      } else {
        for (let each = at; each <= end; each++) {
          const isNew = page.set.add(each)
          page.changed ||= isNew
          report(isNew ? 'new' : 'duplicate', 1)
        }
      }
      at = end + 1
    }
  }

  /**
   * Writes the changed pages. Returns the head to store, or undefined if nothing changed.
   * `excessOf` returns how many pages to remove after a number of pages was added.
   */
  write(nowMs: number, excessOf: (pagesAdded: number) => number): StoredSeen | undefined {
    const changed = [...this.#pages.values()].filter((page) => page.changed).sort((a, b) => a.last - b.last)
    if (changed.length === 0 && !this.#head.changed) return undefined
    for (let page = changed.shift(); page !== undefined; page = changed.shift()) {
      if (page.set.rangeCount < PAGE_RANGES_MIN) {
        // The loop writes the next page later, and the head last.
        const next = this.#joinNext(page)
        if (next !== this.#head && changed[0] !== next) changed.unshift(next)
      } else {
        this.#split(page.set)
        this.#put(page.last, page.set.ranges)
      }
    }
    this.#split(this.#head.set)
    const excess = Math.max(this.#pageCount - SEEN_PAGES_PER_INSTANCE_MAX, excessOf(this.#pagesAdded))
    for (let left = Math.min(excess, this.#pageCount); left > 0; left--) this.#forgetOldest()
    const head = { ranges: this.#head.set.ranges, usedMs: nowMs }
    if (this.#pageCount === 0 && this.#lateThrough === 0) return head
    const newest = this.#pageFamily.lastKey(this.#key)
    const pagesThrough = newest === undefined ? this.#lateThrough : lastOf(newest)
    return { ...head, pages: this.#pageCount, pagesThrough, lateThrough: this.#lateThrough }
  }

  #pageOf(sequence: number): Page {
    if (sequence > this.#pagesThrough) return this.#head
    const current = this.#current
    if (current !== undefined && sequence >= this.#currentFrom && sequence <= current.last) return current
    const page = this.#pageFrom(sequence)
    this.#current = page
    this.#currentFrom = sequence
    return page
  }

  /** The first page whose last sequence is at least `sequence`; the head if there is none. */
  #pageFrom(sequence: number): Page {
    const key = this.#pageFamily.firstKey(this.#key, this.#keyOf(sequence))
    if (key === undefined) return this.#head
    const last = lastOf(key)
    let page = this.#pages.get(last)
    if (page === undefined) {
      page = { last, set: new SequenceSet(this.#pageFamily.get(key)?.ranges), changed: false }
      this.#pages.set(last, page)
    }
    return page
  }

  #joinNext(page: Page): Page {
    const next = this.#pageFrom(page.last + 1)
    const { ranges } = page.set
    for (let at = 0; at < ranges.length; at += 2) next.set.addRange(ranges[at] ?? 0, ranges[at + 1] ?? 0)
    next.changed = true
    this.#pageFamily.remove(this.#keyOf(page.last))
    this.#pageCount--
    return next
  }

  /** Moves the lowest ranges into new pages, until the remaining ranges fit one page. */
  #split(set: SequenceSet): void {
    while (set.rangeCount > PAGE_RANGES_MAX) {
      const ranges = set.takeLowest(PAGE_RANGES_NEW)
      this.#put(ranges.at(-1) ?? 0, ranges)
      this.#pageCount++
      this.#pagesAdded++
    }
  }

  #forgetOldest(): void {
    const oldest = this.#pageFamily.firstKey(this.#key)
    if (oldest === undefined) return
    this.#pageFamily.remove(oldest)
    this.#lateThrough = lastOf(oldest)
    this.#pageCount--
    this.pagesForgotten++
  }

  #put(last: number, ranges: readonly number[]): void {
    this.#pageFamily.put(this.#keyOf(last), { ranges })
  }

  #keyOf(last: number): Buffer {
    return Buffer.concat([this.#key, u64Bytes(last)])
  }
}

/** The last sequence of the page with this key. */
export function lastOf(key: Buffer): number {
  return Number(key.readBigUInt64BE(key.length - 8))
}
