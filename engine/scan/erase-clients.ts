import { createHash, randomBytes } from 'node:crypto'
import { NO_CLIENT } from '../kernel/event/client.ts'
import { unpackEvent } from '../kernel/event/event.ts'
import { type Slices, slicesOf } from '../kernel/lmdb/queue-chunk.ts'
import { clientKeyFile } from '../kernel/process/client-key.ts'
import type { AuditEntry } from '../store/audit-log.ts'
import type { ClientErasure } from '../store/client-erasures.ts'
import { isSingleAddress } from '../store/client-names.ts'
import type { ClientUse } from '../store/client-sum.ts'
import type { EventQueue } from '../store/event-queues.ts'
import { PublishedList } from '../store/published.ts'
import { replaceClients } from '../store/replace-clients.ts'
import type { Store } from '../store/store.ts'
import { HashReplacement } from './distinct-clients.ts'

/** Events and records of one transaction, so that none is long. */
const EVENTS_PER_STEP = 2048
const EVIDENCE_PER_STEP = 200
const CLIENT_RECORDS_PER_STEP = 200
const NAMES_PER_STEP = 2000
const AUDIT_ENTRIES_PER_STEP = 1000
const ALERTS_PER_STEP = 1000

/** After every day. */
const DAYS_END = 0xffff_ffff

/** The subject of audit entries about a client that was erased. */
export const ERASED_SUBJECT = 'an erased client'

const NO_ONE = { ofClient: () => NO_CLIENT, ofUser: () => '' }

/**
 * Begins to erase the clients of an organization that were stored so far, or one person. A scan
 * that is being prepared is prepared again, and every scan first finishes the erasure. Requires the
 * transaction that changes the setting.
 *
 * @param person the user names and addresses of the person, as they are stored
 */
export function beginErasure(store: Store, organizationId: string, person?: readonly string[]): void {
  const { alerts, auditLog, buffer, unmatched, candidates, clientErasures, dailyUse, scanStates } = store
  alerts.eraseReportedClients(organizationId, person && new Set(person))
  if (person === undefined) {
    candidates.eraseClients(organizationId)
    dailyUse.removeSketches(organizationId)
  } else erasePerson(store, organizationId, new Set(person))
  const bufferNext = buffer.first(organizationId)
  const unmatchedNext = unmatched.first(organizationId)
  clientErasures.put(organizationId, {
    sketchKey: person === undefined ? randomBytes(16).toString('hex') : '',
    ...(person && { person, clientsNext: '' }),
    alertsNext: 0,
    bufferEnd: buffer.next(organizationId),
    unmatchedEnd: unmatched.next(organizationId),
    bufferNext,
    unmatchedNext,
    evidenceNext: '',
    auditNext: 1,
    auditEnd: auditLog.lastSequence(organizationId) + 1,
  })
  const state = scanStates.get(organizationId)
  scanStates.put(organizationId, { ...state, generation: state.generation + 1 })
}

/** Erases the names and groups of a person, also as the manager of a group. */
function erasePerson({ clientGroups, clientNames }: Store, organizationId: string, person: ReadonlySet<string>): void {
  for (const client of person) clientNames.removeHost(organizationId, client)
  const groups = clientGroups.ofOrganization(organizationId)
  clientGroups.removeAll(organizationId)
  for (const { name, members, people = members.length, manager } of groups) {
    const left = members.filter((member) => !person.has(member))
    if (left.length === 0) continue
    // At most: the spellings of a name that are left may be those of the erased ones.
    const peopleLeft = Math.max(1, people - (members.length - left.length))
    const isKept = manager !== undefined && !person.has(manager)
    clientGroups.put(organizationId, { name, members: left, people: peopleLeft, ...(isKept && { manager }) })
  }
}

/**
 * Whether use is by a person. An address may have been that of other people, so it selects only use
 * without a user.
 */
export function isUseOf(person: ReadonlySet<string>, { client, user }: Pick<ClientUse, 'client' | 'user'>): boolean {
  return person.has(user === '' ? client : user)
}

/**
 * Erases addresses, pseudonyms and user names of an organization: in buffered and waiting events,
 * in the records and summaries of clients, their names, alerts, the published answers of the API, in audit entries
 * about who read them, and in the counts of distinct clients, whose numbers stay the same; finally the
 * key of pseudonyms, unless the organization keeps clients. One bounded transaction per step;
 * continues after a kill. Several processes may run it at once.
 *
 * Waiting messages about alerts name no client until they are sent, and reports and exports are not
 * stored.
 *
 * @throws Fault STORE_FULL
 */
export function* finishErasure(store: Store, organizationId: string): Generator<void> {
  const { environment, clientErasures } = store
  const sketches = new Sketches()
  // Without an erasure, which is nearly always, other writers need not wait.
  while (environment.read(() => clientErasures.isErasing(organizationId))) {
    const isFinished = store.environment.shrink(() => {
      const erasure = store.clientErasures.get(organizationId)
      if (erasure === undefined) return true
      const next = eraseStep(store, organizationId, erasure, sketches)
      if (next === undefined) store.clientErasures.remove(organizationId)
      else store.clientErasures.put(organizationId, next)
      return next === undefined
    })
    if (isFinished) break
    yield
  }
  // Without pseudonyms, nobody needs their key.
  const isOff = store.organizations.clientSettings(organizationId).mode === 'off'
  if (isOff) clientKeyFile(store.dataDirectory, organizationId).remove()
}

/** Returns the progress after the step, or undefined if nothing is left. */
function eraseStep(
  store: Store,
  organizationId: string,
  erasure: ClientErasure,
  sketches: Sketches,
): ClientErasure | undefined {
  const { buffer, unmatched, clientDays, clientSummaries, clientNames } = store
  const { bufferNext, bufferEnd, unmatchedNext, unmatchedEnd, auditNext, auditEnd, clientsNext } = erasure
  const person = erasure.person && new Set(erasure.person)
  if (bufferNext < bufferEnd) {
    return { ...erasure, bufferNext: eraseEvents(buffer, organizationId, bufferNext, bufferEnd, person) }
  }
  if (unmatchedNext < unmatchedEnd) {
    return { ...erasure, unmatchedNext: eraseEvents(unmatched, organizationId, unmatchedNext, unmatchedEnd, person) }
  }
  if (person !== undefined && clientsNext !== undefined) {
    const { clientsNext: _, ...rest } = erasure
    const next = clientDays.erase(organizationId, clientsNext, CLIENT_RECORDS_PER_STEP, (use) => isUseOf(person, use))
    return next === undefined ? rest : { ...rest, clientsNext: next }
  }
  if (person === undefined && clientDays.removeBefore(organizationId, DAYS_END, CLIENT_RECORDS_PER_STEP) > 0)
    return erasure
  if (erasure.alertsNext !== undefined) {
    const { alertsNext, ...rest } = erasure
    const isErased = (each: string): boolean => person?.has(each) ?? true
    const next = store.alerts.erasePeople(organizationId, alertsNext, ALERTS_PER_STEP, isErased)
    return next === undefined ? rest : { ...rest, alertsNext: next }
  }
  // The next scan makes those of the others again.
  if (clientSummaries.removeAll(organizationId, NAMES_PER_STEP) > 0) return erasure
  if (person === undefined && clientNames.removeHosts(organizationId, NAMES_PER_STEP) > 0) return erasure
  if (auditNext < auditEnd)
    return { ...erasure, auditNext: eraseReads(store, organizationId, auditNext, auditEnd, person) }
  if (person !== undefined) {
    erasePublished(store, organizationId)
    return undefined
  }
  if (erasure.evidenceNext === '') {
    clientNames.removeSingleAddresses(organizationId)
    erasePublished(store, organizationId)
  }
  const evidenceNext = eraseEvidence(store, organizationId, erasure, sketches)
  return evidenceNext === undefined ? undefined : { ...erasure, evidenceNext }
}

/** Returns the sequence after the last erased event. */
function eraseEvents(
  queue: EventQueue,
  organizationId: string,
  from: number,
  end: number,
  person: ReadonlySet<string> | undefined,
): number {
  const first = Math.max(from, queue.first(organizationId))
  const entries = queue.packed(organizationId, first, Math.min(EVENTS_PER_STEP, end - first))
  const last = entries.at(-1)
  // Only damaged events are left. A scan counts them and does not read them either.
  if (last === undefined) return end
  const named = person === undefined ? entries : entries.filter(({ bytes }) => isEventOf(bytes, person))
  const erased: Slices = replaceClients(slicesOf(named.map(({ bytes }) => bytes)), NO_ONE)
  queue.replace(
    organizationId,
    named.map(({ sequence }) => sequence),
    erased,
  )
  return last.sequence + 1
}

function isEventOf(bytes: Uint8Array, person: ReadonlySet<string>): boolean {
  const event = unpackEvent(bytes, true)
  return typeof event !== 'string' && isUseOf(person, { client: event.client, user: event.user ?? '' })
}

/**
 * Erases who was looked up: the entry says who read and when. Returns the sequence after the last
 * erased entry.
 */
function eraseReads(
  { auditLog }: Store,
  organizationId: string,
  from: number,
  end: number,
  person: ReadonlySet<string> | undefined,
): number {
  const entries = auditLog.from(organizationId, from, AUDIT_ENTRIES_PER_STEP).filter(({ sequence }) => sequence < end)
  for (const entry of entries) {
    if (namesClient(entry, person)) auditLog.replace({ ...entry, subject: ERASED_SUBJECT, details: {} })
  }
  return (entries.at(-1)?.sequence ?? end - 1) + 1
}

/** Whether an entry names clients: anyone, or this person. */
export function namesClient({ action, subject, details }: AuditEntry, person?: ReadonlySet<string>): boolean {
  // A network with one address is `10.2.0.7/32`.
  const isOfPerson = (text: string): boolean => person?.has(text.replace(/\/(?:32|128)$/, '')) ?? true
  // A name can have a comma.
  if (![subject, ...subject.split(', ')].some(isOfPerson)) return false
  if (action === 'client.name') return isSingleAddress(subject)
  if (action === 'client.reveal' || action === 'client.export') return true
  return action === 'client.read' && details['kind'] === 'client'
}

/** Removes the clients of an API response. The next scan publishes others, if it may. */
function erasePublished({ published }: Store, organizationId: string): void {
  const head = published.head(organizationId, PublishedList.discovery)
  if (head === undefined) return
  const runs = published.elements(organizationId, PublishedList.discovery, head.count, 0, head.count)
  const json = Buffer.concat(runs).toString()
  if (!json.includes('"top_clients"')) return
  const platforms = JSON.parse(`[${json}]`) as { readonly metadata: Readonly<Record<string, unknown>> }[]
  const erased = platforms.map(({ metadata: { top_clients: _, ...metadata }, ...rest }) => {
    return JSON.stringify({ ...rest, metadata })
  })
  published.replace(organizationId, PublishedList.discovery, head.text.toString(), erased)
}

/** Returns the key of the first evidence that is left, or undefined. */
function eraseEvidence(
  store: Store,
  organizationId: string,
  { sketchKey, evidenceNext }: ClientErasure,
  sketches: Sketches,
): string | undefined {
  const { records, next } = store.evidence.step(organizationId, evidenceNext, EVIDENCE_PER_STEP)
  for (const { day, platformId, evidence } of records) {
    const replacement = sketches.of(sketchKey)
    const { clients, interactiveClients, apiClients } = evidence
    store.evidence.putDay(organizationId, day, platformId, {
      ...evidence,
      clients: replacement.apply(clients),
      ...(interactiveClients === undefined ? {} : { interactiveClients: replacement.apply(interactiveClients) }),
      ...(apiClients === undefined ? {} : { apiClients: replacement.apply(apiClients) }),
    })
  }
  return next
}

/** The replacement of the last key. */
class Sketches {
  #key = ''
  #replacement: HashReplacement | undefined

  of(key: string): HashReplacement {
    if (this.#replacement === undefined || this.#key !== key) {
      this.#key = key
      this.#replacement = new HashReplacement((number) =>
        createHash('sha256').update(`${key} ${number}`).digest().readUInt32LE(),
      )
    }
    return this.#replacement
  }
}
