import type { Organization } from '../store/organizations.ts'
import type { OutcomeName } from '../store/outcomes.ts'
import { type MonitoringToken, statusOf } from '../store/secrets.ts'
import { NO_ORGANIZATION, type SourceHead, type StoredSource } from '../store/sources.ts'
import type { Store } from '../store/store.ts'
import { type Arrival, arrivalsSince } from './verify.ts'

/** Something that arrived in place of an event, and what to do about it. Texts for people. */
export interface Instead {
  readonly found: string
  /** One or more sentences without the last full stop. */
  readonly next: string
  /** A message that was not understood, redacted; '' if none. */
  readonly sample: string
}

/** Unauthenticated senders that are listed. */
const SENDERS_MAX = 5
/** Other tokens that are listed. */
const TOKENS_MAX = 3

/** What a message that is not an event means, in the order in which they are listed. */
const OUTCOMES_EXPLAINED: readonly {
  readonly outcome: OutcomeName
  readonly found: (messages: string) => string
  readonly next: string
}[] = [
  {
    outcome: 'unmatched',
    found: (messages) => `${messages} from known formats, and none names an AI platform`,
    next: 'The connection works. Open an AI platform, such as chatgpt.com, from a machine whose traffic passes the device',
  },
  {
    outcome: 'noDomain',
    found: (messages) => `${messages} without a host name`,
    next: 'The device logs connections between addresses. Turn on its log of URLs, of TLS server names or of DNS queries',
  },
  {
    outcome: 'unknown',
    found: (messages) => `${messages} in an unknown format`,
    next: 'Set the device to one of the formats in docs/reference/log-formats.md',
  },
  {
    outcome: 'rejected',
    found: (messages) => `${messages} of a known format with an invalid field`,
    next: 'Correct the format of the device. The sample shows the last message',
  },
  {
    outcome: 'ambiguous',
    found: (messages) => `${messages} that name a host, without proof that a client requested it`,
    next: 'Log the requests of clients: DNS queries instead of answers, and outgoing instead of incoming traffic',
  },
  {
    outcome: 'outsideDedupWindow',
    found: (messages) => `${messages} that are older than what the service remembers of the sender`,
    next: 'Check the clock of the sender',
  },
  {
    outcome: 'skipped',
    found: (messages) => `${messages} with the state of the device, and no request of a client`,
    next: 'The connection works. Turn on the log of client requests',
  },
]

/**
 * Explains why no event of these tokens has arrived since `sinceMs`: what their senders sent
 * instead, what other tokens of the organization received, and which senders had no valid token.
 *
 * Senders without a valid token belong to no organization, so their addresses are shown only if the
 * address is known as a sender of this one, or if the service has no other organization. Messages
 * with the token of another organization are never shown.
 *
 * @param tokenIds of the organization; empty: any of its tokens.
 */
export function insteadOf(
  store: Store,
  organization: Organization,
  tokenIds: ReadonlySet<string>,
  sinceMs: number,
  nowMs: number,
): readonly Instead[] {
  const all = arrivalsSince(store, organization.id, new Set(), sinceMs)
  const isWanted = ({ tokenId }: Arrival): boolean => tokenIds.size === 0 || tokenIds.has(tokenId)
  const found = [
    ...explained(all.filter(isWanted)),
    ...ofOtherTokens(
      store,
      organization,
      all.filter((arrival) => !isWanted(arrival)),
    ),
    ...ofUnauthenticated(store, organization, sinceMs, nowMs),
  ]
  return found.length > 0 ? found : [NOTHING]
}

const NOTHING: Instead = {
  found: 'Nothing arrived',
  next: 'Check the address and port that the sender uses, and firewalls on the path. A collector tests its own settings: posture-collector check',
  sample: '',
}

/** What senders with the right token sent. */
function explained(arrivals: readonly Arrival[]): Instead[] {
  const [silent] = arrivals.filter(({ messages, events }) => messages === 0 && events === 0)
  const findings = OUTCOMES_EXPLAINED.flatMap(({ outcome, found, next }): Instead[] => {
    const from = arrivals.filter(({ otherwise }) => (otherwise[outcome] ?? 0) > 0)
    if (from.length === 0) return []
    const messages = from.reduce((sum, { otherwise }) => sum + (otherwise[outcome] ?? 0), 0)
    const sample = from.find((arrival) => arrival.sample !== '')?.sample ?? ''
    const showsSample = outcome === 'unknown' || outcome === 'rejected' || outcome === 'ambiguous'
    return [{ found: found(countOf(messages)), next, sample: showsSample ? sample : '' }]
  })
  if (findings.length > 0 || silent === undefined) return findings
  return [
    {
      found: `The collector at ${silent.address} is connected, and has sent no event`,
      next: 'Open an AI platform, such as chatgpt.com, from a machine whose traffic passes the interface of the collector. posture-collector counters shows what it sees',
      sample: '',
    },
  ]
}

function ofOtherTokens(store: Store, organization: Organization, arrivals: readonly Arrival[]): Instead[] {
  const sums = new Map<string, number>()
  for (const { tokenId, events } of arrivals) {
    if (events > 0) sums.set(tokenId, (sums.get(tokenId) ?? 0) + events)
  }
  return [...sums].slice(0, TOKENS_MAX).map(([tokenId, events]) => {
    const label = store.monitoringTokens.get(organization.id, tokenId)?.label ?? 'removed'
    return {
      found: `${events === 1 ? '1 event' : `${events} events`} arrived with the token “${label}” of this organization`,
      next: 'If the sender should use this token, set it in the configuration of the sender',
      sample: '',
    }
  })
}

function ofUnauthenticated(store: Store, organization: Organization, sinceMs: number, nowMs: number): Instead[] {
  const own = store.sources.heads(organization.id)
  const ownAddresses = new Set(own.map(({ address }) => address))
  const isOnly = store.organizations.isOnly(organization.id)
  const shown = store.sources
    .heads(NO_ORGANIZATION)
    .filter(({ lastSeenMs, address }) => lastSeenMs >= sinceMs && (isOnly || ownAddresses.has(address)))
    .sort((a, b) => b.lastSeenMs - a.lastSeenMs)
    .slice(0, SENDERS_MAX)
  return store.sources
    .ofHeads(shown)
    .map((sender) => unauthenticated(sender, endedTokenOf(store, organization, own, sender, nowMs)))
}

/** A revoked or expired token that this sender used before; undefined if there is none. */
function endedTokenOf(
  store: Store,
  { id }: Organization,
  own: readonly SourceHead[],
  { address }: StoredSource,
  nowMs: number,
): { readonly token: MonitoringToken; readonly status: string } | undefined {
  for (const { tokenId } of own.filter((source) => source.address === address)) {
    const token = store.monitoringTokens.get(id, tokenId)
    if (token === undefined) continue
    const status = statusOf(token, nowMs)
    if (status !== 'active') return { token, status }
  }
  return undefined
}

function unauthenticated(
  { listener, address, hasUnknownToken }: StoredSource,
  ended: ReturnType<typeof endedTokenOf>,
): Instead {
  const from = `from ${address} over ${listener.toUpperCase()}`
  if (!hasUnknownToken) {
    const next =
      listener === 'https'
        ? 'Set the token in the sender'
        : `Let the sender add the token, or bind its address: posture-admin token bind TOKEN --address ${address}`
    return { found: `Messages without a token ${from}`, next, sample: '' }
  }
  const before =
    ended === undefined ? '' : `. This sender used the token “${ended.token.label}” before, which is ${ended.status}`
  return {
    found: `Messages with an unknown, revoked or expired token ${from}${before}`,
    next: 'Copy the whole token again into the sender, or generate a new one',
    sample: '',
  }
}

function countOf(messages: number): string {
  return messages === 1 ? '1 message' : `${messages} messages`
}
