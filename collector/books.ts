import type { CollectorStatus } from './status.ts'

/**
 * The sums that must balance: whatever came in is in exactly one place. Packets and names are of this run; events are those that waited when it
 * began and those that it made.
 */
export interface Book {
  readonly book: 'packets' | 'names' | 'matches' | 'events'
  readonly total: number
  /** Places, in the order of the flow; those without anything are left out. */
  readonly places: Readonly<Record<string, number>>
  /** total - places: 0, or something was lost or counted twice. */
  readonly difference: number
}

export function booksOf(status: CollectorStatus): Book[] {
  return [packetBook(status), nameBook(status), matchBook(status), eventBook(status)]
}

export function balanced(books: readonly Book[]): boolean {
  return books.every(({ difference }) => difference === 0)
}

/** Packets seen by the kernel, behind the filter = classes + drops by place + those on the way. */
function packetBook({ observed, live, ended }: CollectorStatus): Book {
  if (live === undefined) return book('packets', observed.frames, observed.classes)
  // The capture's figures are of a second ago at most, and some packets were decoded since.
  const taken = Math.max(live.taken, observed.frames)
  const { kernel, pool, unread } = live.dropped
  return book('packets', live.received + (taken - live.taken), {
    ...observed.classes,
    'dropped: ring full': kernel,
    'dropped: no free batch': pool,
    'dropped: left in a ring': unread,
    'seen by two captures': live.handedOver,
    'sent on loopback': live.passedOver,
    'in the ring': live.waiting,
    'in batches': ended ? 0 : taken - observed.frames,
  })
}

function nameBook({ observed }: CollectorStatus): Book {
  const { matched, unmatched } = observed
  return book('names', observed.names, { matched, unmatched })
}

/** Names that matched = those that are counted in events + those of packets that a run before had read + those in batches. */
function matchBook({ observed, matches, ended }: CollectorStatus): Book {
  const onTheWay = ended ? 0 : Math.max(0, observed.matched - matches - observed.repeated)
  return book('matches', observed.matched, {
    'counted in events': matches,
    'read by an earlier run': observed.repeated,
    'in batches': onTheWay,
  })
}

/** Events = acknowledged + refused + dropped by policy + waiting. */
function eventBook({ events, ways, deciding }: CollectorStatus): Book {
  const { acknowledged, refused } = (deciding && ways[deciding]) ?? { acknowledged: 0, refused: 0 }
  return book('events', events.found + events.made, {
    [deciding === 'syslog' ? 'sent by syslog' : 'acknowledged']: acknowledged,
    refused,
    'dropped: outbox full': events.dropped.full,
    'dropped: too old': events.dropped.tooOld,
    'dropped: damaged on disk': events.dropped.damaged,
    'waiting in the outbox': events.waiting,
    'not yet in the outbox': events.unwritten,
  })
}

function book(name: Book['book'], total: number, all: Readonly<Record<string, number>>): Book {
  const places = Object.fromEntries(Object.entries(all).filter(([, count]) => count !== 0))
  const sum = Object.values(places).reduce((before, count) => before + count, 0)
  return { book: name, total, places, difference: total - sum }
}
