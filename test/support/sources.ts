import { newCounts, Outcome, type OutcomeName } from '../../engine/store/outcomes.ts'
import { NO_ORGANIZATION, type SourceDelta } from '../../engine/store/sources.ts'
import { NOON } from './store.ts'

export type GivenDelta = Omit<Partial<SourceDelta>, 'counts'> & {
  readonly counts?: Readonly<Partial<Record<OutcomeName, number>>>
}

/** The counters of a sender. Without an organization, of a sender without a known token. */
export function delta({ counts = {}, ...given }: GivenDelta): SourceDelta {
  const all = newCounts()
  for (const [outcome, count] of Object.entries(counts)) all[Outcome[outcome as OutcomeName]] = count
  return {
    ...{ organizationId: NO_ORGANIZATION, tokenId: NO_ORGANIZATION },
    ...{ listener: 'tls', address: '192.0.2.1', host: '', lastSeenMs: NOON, formats: {}, sample: '' },
    ...{ zoneMinutes: 0, timesUnread: 0, hasUnknownToken: false },
    received: all.reduce((sum, count) => sum + count, 0),
    ...given,
    counts: [...all],
  }
}
