import { namesOf, type PlatformUse, platformUse } from '../../engine/admin/client-use.ts'
import { dayOf } from '../../engine/kernel/process/clock.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import type { ClientUse } from '../../engine/store/client-sum.ts'
import { type ClientMode, clientModeOf } from '../../engine/store/organizations.ts'
import type { Platform } from '../../registry/platform.ts'
import type { DayBar } from '../design/chart.tsx'
import { type Paged, paged } from '../design/paged.ts'
import type { Visit } from '../http/visit.ts'

/** A client of a platform, with the names of its address; '' if it has none. */
export interface ClientRow extends ClientUse {
  readonly name: string
  readonly network: string
}

export interface PlatformClientsView {
  readonly platform: string
  readonly mode: ClientMode
  readonly windowDays: number
  readonly use: PlatformUse
  /** Most matches first. */
  readonly rows: Paged<ClientRow>
  readonly search: string
  readonly isApproved: boolean
  /** Used and blocked matches on each day since the first. */
  readonly days: readonly DayBar[]
}

/** @throws Fault NOT_FOUND. */
export function registeredPlatform({ site, organization }: Visit, name: string): Platform {
  const platform = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (platform !== undefined) return platform
  throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the registry`)
}

/** Who uses a platform. The query's `q` filters the clients. */
export function platformClientsView(visit: Visit, name: string): PlatformClientsView {
  const { site, organization, request, nowMs } = visit
  const use = useOf(visit, name)
  const { states } = site.store.decisions.inForce(organization.id, nowMs)
  const isApproved = states.get(registeredPlatform(visit, name).id) === 'approved'
  const search = (request.query.get('q') ?? '').trim().slice(0, 100)
  return {
    platform: name,
    mode: clientModeOf(organization),
    windowDays: organization.evidenceWindowDays,
    use,
    rows: pageOfClients(visit, use, search),
    search,
    isApproved,
    days: daysOf(use, isApproved, dayOf(nowMs)),
  }
}

function daysOf({ days }: PlatformUse, isApproved: boolean, today: number): DayBar[] {
  const byDay = new Map(days.map((each) => [each.day, each]))
  const bars: DayBar[] = []
  for (let day = days[0]?.day ?? today; day <= today; day++) {
    const { used = 0, blocked = 0 } = byDay.get(day) ?? {}
    bars.push({ day, approved: isApproved ? used : 0, notApproved: isApproved ? 0 : used, blocked })
  }
  return bars
}

/**
 * All clients of a platform that the query's `q` finds. Without it, the last row is the sum of
 * those that are not listed.
 */
export function clientsOfPlatform(visit: Visit, name: string): ClientRow[] {
  const { clients, otherMatches } = useOf(visit, name)
  const search = (visit.request.query.get('q') ?? '').trim().slice(0, 100)
  const rows = filtered(clientRows(visit, clients), search)
  return search === '' && otherMatches > 0 ? [...rows, { ...OTHERS, matches: otherMatches }] : rows
}

const OTHERS: ClientRow = {
  ...{ client: 'others', user: '', name: '', network: '', methods: [], access: [], matches: 0 },
  ...{ used: Number.NaN, blocked: Number.NaN, touched: Number.NaN },
  ...{ firstSeenMs: 0, lastSeenMs: 0, bytesSent: 0, bytesReceived: 0, days: 0 },
}

export function useOf(visit: Visit, name: string): PlatformUse {
  const { site, organization, nowMs } = visit
  return platformUse(site.store, organization, registeredPlatform(visit, name).id, nowMs)
}

/** Only a search needs the names of all clients. */
function pageOfClients(visit: Visit, use: PlatformUse, search: string): Paged<ClientRow> {
  const { query } = visit.request
  if (search !== '') return paged(filtered(clientRows(visit, use.clients), search), query)
  const page = paged(use.clients, query)
  return { ...page, rows: clientRows(visit, page.rows) }
}

function clientRows({ site, organization }: Visit, clients: readonly ClientUse[]): ClientRow[] {
  const names = namesOf(site.store, organization.id)
  return clients.map((use) => {
    const { name, network } = names(use.client)
    return { ...use, name: name ?? '', network: network ?? '' }
  })
}

function filtered(rows: readonly ClientRow[], search: string): ClientRow[] {
  const words = search.toLowerCase()
  return rows.filter(({ client, user, name, network }) => {
    return words === '' || `${client} ${user} ${name} ${network}`.toLowerCase().includes(words)
  })
}
