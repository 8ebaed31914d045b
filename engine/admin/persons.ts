import { unpackEvent } from '../kernel/event/event.ts'
import { dayText, isoSeconds } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { ALERTS_MAX, PERSON_ROWS_MAX } from '../limits.ts'
import { beginErasure, ERASED_SUBJECT, isUseOf, namesClient } from '../scan/erase-clients.ts'
import { personKey } from '../scan/group-use.ts'
import { requestScan } from '../scan/scan-runner.ts'
import { ClientReader } from '../store/client-records.ts'
import type { EventQueue } from '../store/event-queues.ts'
import { spanText } from '../store/name-spans.ts'
import type { Organization } from '../store/organizations.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges, listText } from './audited-changes.ts'
import { storedClients } from './client-use.ts'

/** Something that is stored about a person. */
export interface PersonRow {
  readonly kind: 'use' | 'event that waits' | 'group' | 'name of an address' | 'alert' | 'audit entry' | 'more'
  /** A day (UTC) or a time; '' if it has none. */
  readonly at: string
  /** The id of the platform, or the requested name of an event that waits. */
  readonly platform: string
  readonly client: string
  readonly user: string
  readonly matches: number
  readonly bytesSent: number
  readonly bytesReceived: number
  /** The name, group or entry; of `more`, how many rows there are here. */
  readonly text: string
}

const NONE = { at: '', platform: '', client: '', user: '', matches: 0, bytesSent: 0, bytesReceived: 0, text: '' }

/**
 * User names, addresses and pseudonyms as they are stored.
 *
 * @param withAddresses also the addresses that these users used last
 * @throws Fault SECRETS_KEY, CONFLICT while clients are being erased, or without a list of addresses
 */
export function personOf(
  store: Store,
  organization: Organization,
  texts: readonly string[],
  withAddresses: boolean,
): string[] {
  const { id } = organization
  refuseWhileErasing(store, id)
  const wanted = new Set(texts.map(personKey))
  // The address of a manager is never a pseudonym.
  const managers = store.clientGroups
    .ofOrganization(id)
    .flatMap(({ manager }) => (manager !== undefined && wanted.has(personKey(manager)) ? [manager] : []))
  const given = [...texts.map(storedClients(store, organization)), ...managers]
  if (!withAddresses) return [...new Set(given)]
  if (store.clientSummaries.totals(id) === undefined)
    throw new Fault('CONFLICT', 'the next scan makes the list of addresses; try again after it')
  const used = given.flatMap((text) => store.clientSummaries.get(id, text, true)?.addresses ?? [])
  return [...new Set([...given, ...used])]
}

/** @throws Fault CONFLICT */
function refuseWhileErasing({ clientErasures }: Store, organizationId: string): void {
  if (clientErasures.isErasing(organizationId))
    throw new Fault('CONFLICT', 'clients are being erased; try again after the next scan')
}

/** Exports and erases of what is stored about one person. */
export class PersonChanges extends AuditedChanges {
  /** Records an export. The rows are personRows. @throws Fault NOT_ALLOWED. */
  noteExport({ id }: Organization, person: readonly string[]): void {
    this.audited('client.export', id, () => {
      return { organizationId: id, subject: listText(person), details: { kind: 'client' }, result: undefined }
    })
  }

  /**
   * Begins to erase a person. The scan that this requests finishes it, and so does
   * OrganizationChanges.eraseClients.
   *
   * @throws Fault CONFLICT while clients are being erased, NOT_ALLOWED
   */
  erase(organization: Organization, person: readonly string[]): { readonly scan: Scan } {
    const { store, clock } = this
    const { id } = organization
    return this.audited('client.erase', id, () => {
      refuseWhileErasing(store, id)
      beginErasure(store, id, person)
      const scan = requestScan(store, organization, clock)
      return { organizationId: id, subject: ERASED_SUBJECT, details: { names: person.length }, result: { scan } }
    })
  }
}

/**
 * All that is stored about a person. After PERSON_ROWS_MAX rows, a last row says that there is more.
 * Call it inside Environment.read.
 */
export function personRows(store: Store, organization: Organization, person: readonly string[]): PersonRow[] {
  const rows: PersonRow[] = []
  for (const row of rowsOf(store, organization, new Set(person))) {
    if (rows.length === PERSON_ROWS_MAX) {
      rows.push({ ...NONE, kind: 'more', text: `only the first ${PERSON_ROWS_MAX} rows are here` })
      break
    }
    rows.push(row)
  }
  return rows
}

function* rowsOf(store: Store, { id }: Organization, person: ReadonlySet<string>): Generator<PersonRow> {
  if (store.clientErasures.isErasing(id)) return
  for (const { name, members, manager = '' } of store.clientGroups.ofOrganization(id)) {
    for (const member of members) if (person.has(member)) yield { ...NONE, kind: 'group', client: member, text: name }
    if (person.has(manager)) yield { ...NONE, kind: 'group', client: manager, text: `manager of ${name}` }
  }
  for (const client of person) {
    for (const span of store.clientNames.spansOf(id, client))
      yield { ...NONE, kind: 'name of an address', client, text: spanText(span) }
  }
  for (const queue of [store.buffer, store.unmatched]) yield* waiting(queue, id, person)
  for (const { day, platformId, bytes } of store.clientDays.since(id, 0)) {
    const reader = new ClientReader(bytes, day)
    while (reader.next()) {
      const { client, user, matches, bytesSent, bytesReceived } = reader
      if (!isUseOf(person, reader)) continue
      const use = { platform: platformId, client, user, matches, bytesSent, bytesReceived }
      yield { ...NONE, kind: 'use', at: dayText(day), ...use }
    }
  }
  for (const { createdAtMs, title, people = [] } of store.alerts.newest(id, ALERTS_MAX)) {
    for (const each of people)
      if (person.has(each)) yield { ...NONE, kind: 'alert', at: isoSeconds(createdAtMs), client: each, text: title }
  }
  for (const entry of store.auditLog.ofOrganization(id)) {
    if (!namesClient(entry, person)) continue
    const text = `${entry.action} by ${entry.actor}`
    yield { ...NONE, kind: 'audit entry', at: isoSeconds(entry.timeMs), client: entry.subject, text }
  }
}

const EVENTS_PER_READ = 2048

function* waiting(queue: EventQueue, organizationId: string, person: ReadonlySet<string>): Generator<PersonRow> {
  const end = queue.next(organizationId)
  for (let from = queue.first(organizationId); from < end; ) {
    const entries = queue.packed(organizationId, from, EVENTS_PER_READ)
    for (const { bytes } of entries) {
      const event = unpackEvent(bytes, true)
      if (typeof event === 'string') continue
      const { name, client, user = '', count, firstSeenMs, bytesSent = 0, bytesReceived = 0 } = event
      if (!isUseOf(person, { client, user })) continue
      const use = { platform: name, client, user, matches: count, bytesSent, bytesReceived }
      yield { ...NONE, kind: 'event that waits', at: isoSeconds(firstSeenMs), ...use }
    }
    from = (entries.at(-1)?.sequence ?? end) + 1
  }
}
