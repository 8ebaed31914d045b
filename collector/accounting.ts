import type { CollectorStatus } from './status.ts'

/**
 * A counter and its outcomes, which must add up: every packet, name, match and event has exactly
 * one outcome. Packets, names and matches are those of this run. Events are those that waited when
 * the run began, and those created by it.
 */
export interface Balance {
  readonly counter: 'packets' | 'names' | 'matches' | 'events'
  readonly total: number
  /** Count by outcome, in the order of the data flow, without zeros. */
  readonly outcomes: Readonly<Record<string, number>>
  /** total - outcomes. Not 0 if something was lost or counted twice. */
  readonly difference: number
}

export function balancesOf(status: CollectorStatus): Balance[] {
  return [packetBalance(status), nameBalance(status), matchBalance(status), eventBalance(status)]
}

export function allBalanced(balances: readonly Balance[]): boolean {
  return balances.every(({ difference }) => difference === 0)
}

/** Packets that passed the kernel's filter = classes + drops by cause + packets not yet decoded. */
function packetBalance({ observed, live, ended }: CollectorStatus): Balance {
  if (live === undefined) return balance('packets', observed.frames, observed.classes)
  // The capture reports once a second, and packets were decoded since.
  const taken = Math.max(live.taken, observed.frames)
  const { kernel, pool, unread } = live.dropped
  return balance('packets', live.received + (taken - live.taken), {
    ...observed.classes,
    'dropped: ring full': kernel,
    'dropped: no free batch': pool,
    'dropped: left in a ring': unread,
    'seen by two captures': live.seenByBoth,
    'sent on loopback': live.skipped,
    'in the ring': live.waiting,
    'in batches': ended ? 0 : taken - observed.frames,
  })
}

function nameBalance({ observed }: CollectorStatus): Balance {
  const { matched, unmatched } = observed
  return balance('names', observed.names, { matched, unmatched })
}

/** Matched names = counted in events + from packets that an earlier run read + in batches. */
function matchBalance({ observed, matches, ended }: CollectorStatus): Balance {
  const inBatches = ended ? 0 : Math.max(0, observed.matched - matches - observed.repeated)
  return balance('matches', observed.matched, {
    'counted in events': matches,
    'read by an earlier run': observed.repeated,
    'in batches': inBatches,
  })
}

/** Events = acknowledged + refused + dropped at limits + waiting. */
function eventBalance({ events, transports, deciding }: CollectorStatus): Balance {
  const { acknowledged, refused } = (deciding && transports[deciding]) ?? { acknowledged: 0, refused: 0 }
  return balance('events', events.found + events.made, {
    [deciding === 'syslog' ? 'sent by syslog' : 'acknowledged']: acknowledged,
    refused,
    'dropped: outbox full': events.dropped.full,
    'dropped: too old': events.dropped.tooOld,
    'dropped: damaged on disk': events.dropped.damaged,
    'waiting in the outbox': events.waiting,
    'not yet in the outbox': events.unwritten,
  })
}

function balance(counter: Balance['counter'], total: number, all: Readonly<Record<string, number>>): Balance {
  const outcomes = Object.fromEntries(Object.entries(all).filter(([, count]) => count !== 0))
  const sum = Object.values(outcomes).reduce((before, count) => before + count, 0)
  return { counter, total, outcomes, difference: total - sum }
}
