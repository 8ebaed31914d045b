import { isClientKnown, namesOf, storedClient, type UseOfClient, useOfClient } from '../../engine/admin/client-use.ts'
import { isPseudonym } from '../../engine/kernel/event/client.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { firstDayOfWindow } from '../../engine/scan/prepare.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import type { DecisionState } from '../../engine/store/decisions.ts'
import type { DayBar } from '../design/chart.tsx'
import type { Visit } from '../http/visit.ts'

/** The use of one platform by the client. */
export interface UseRow extends ClientUse {
  readonly platform: string
  readonly state: DecisionState
  /** The platform is in the registry, so it has a page. */
  readonly isRegistered: boolean
}

export interface ClientView {
  /** An address, a pseudonym or a user name, as it is stored. */
  readonly client: string
  readonly isPseudonym: boolean
  /** '' if the address has none. */
  readonly name: string
  readonly network: string
  readonly windowDays: number
  /** Most matches first. */
  readonly rows: readonly UseRow[]
  /** Platforms that the client used, on each day of the evidence window. */
  readonly days: readonly DayBar[]
  readonly firstSeenMs: number
  readonly lastSeenMs: number
}

/**
 * The client as it is stored: an address is one in its canonical form, or its pseudonym.
 *
 * @throws Fault NOT_FOUND if there is no use by it
 */
export function knownClient(visit: Visit, text: string): string {
  const client = storedClient(visit.site.store, visit.organization, text)
  if (isKnownClient(visit, client)) return client
  throw new Fault('NOT_FOUND', `No use by ${JSON.stringify(text)} in the evidence window`)
}

/** Whether the evidence has use by this client or user, as it is stored. */
export function isKnownClient({ site, organization, nowMs }: Visit, client: string): boolean {
  return isClientKnown(site.store, organization, client, nowMs)
}

function clientUse({ site, organization, nowMs }: Visit, client: string): UseOfClient {
  return useOfClient(site.store, organization, client, nowMs)
}

/** What a client uses. `client` is the text that is stored. */
export function clientView(visit: Visit, client: string): ClientView {
  const { site, organization, nowMs } = visit
  const { store, registry } = site
  const use = clientUse(visit, client)
  const platforms = new Map(registry.catalogOf(organization.id).platforms.map(({ id, name }) => [id, name]))
  const { states } = store.decisions.inForce(organization.id, nowMs)
  const stateOf = (id: string): DecisionState => states.get(id) ?? 'waiting'
  const { name, network } = namesOf(store, organization.id)(client)
  return {
    client,
    isPseudonym: isPseudonym(client),
    name: name ?? '',
    network: network ?? '',
    windowDays: organization.evidenceWindowDays,
    rows: use.platforms.map(({ platformId, ...row }) => ({
      ...row,
      platform: platforms.get(platformId) ?? platformId,
      state: stateOf(platformId),
      isRegistered: platforms.has(platformId),
    })),
    days: daysOf(visit, use, (id) => stateOf(id) === 'approved'),
    firstSeenMs: Math.min(...use.platforms.map(({ firstSeenMs }) => firstSeenMs)),
    lastSeenMs: Math.max(...use.platforms.map(({ lastSeenMs }) => lastSeenMs)),
  }
}

/** One bar for each day since the first use. */
function daysOf(
  { organization, nowMs }: Visit,
  { days }: UseOfClient,
  isApproved: (platformId: string) => boolean,
): readonly DayBar[] {
  const used = new Map(days.map((each) => [each.day, each.platformIds]))
  const bars: DayBar[] = []
  const first = Math.max(firstDayOfWindow(organization, nowMs), days[0]?.day ?? 0)
  for (let day = first; day <= dayOf(nowMs); day++) {
    const ids = used.get(day) ?? []
    const approved = ids.filter(isApproved).length
    bars.push({ day, approved, notApproved: ids.length - approved })
  }
  return bars
}
