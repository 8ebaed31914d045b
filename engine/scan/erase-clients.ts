import { createHash, randomBytes } from 'node:crypto'
import { NO_CLIENT } from '../event/client.ts'
import { type Slices, slicesOf } from '../lmdb/queue-chunk.ts'
import type { ClientErasure } from '../store/client-erasures.ts'
import { replaceClients } from '../store/replace-clients.ts'
import type { Store } from '../store/store.ts'
import { HashReplacement } from './distinct-clients.ts'

/** Events and records of one transaction, so that none is long. */
const EVENTS_PER_STEP = 2048
const EVIDENCE_PER_STEP = 200
const CLIENT_RECORDS_PER_STEP = 200
const NAMES_PER_STEP = 2000

/** After every day. */
const DAYS_END = 0xffff_ffff

const NO_ONE = { ofClient: () => NO_CLIENT, ofUser: () => '' }

/**
 * Begins to erase the clients of an organization that were stored so far. A scan that is being
 * prepared is prepared again, and every scan first finishes the erasure. Requires the transaction
 * that changes the setting.
 */
export function beginErasure(store: Store, organizationId: string): void {
  const { buffer, unmatched, clientErasures, scanStates } = store
  const bufferNext = buffer.first(organizationId)
  const unmatchedNext = unmatched.first(organizationId)
  clientErasures.put(organizationId, {
    sketchKey: randomBytes(16).toString('hex'),
    bufferEnd: buffer.next(organizationId),
    unmatchedEnd: unmatched.next(organizationId),
    bufferNext,
    unmatchedNext,
    evidenceNext: '',
  })
  const state = scanStates.get(organizationId)
  scanStates.put(organizationId, { ...state, generation: state.generation + 1 })
}

/**
 * Erases addresses, pseudonyms and user names of an organization: in buffered and waiting events,
 * in the records of clients, their names, and in the counts of distinct clients, whose numbers stay
 * the same. One bounded transaction per step; continues after a kill. Several processes may run it
 * at once.
 *
 * @throws Fault STORE_FULL
 */
export function* finishErasure(store: Store, organizationId: string): Generator<void> {
  const sketches = new Sketches()
  for (;;) {
    const isFinished = store.environment.shrink(() => {
      const erasure = store.clientErasures.get(organizationId)
      if (erasure === undefined) return true
      const next = eraseStep(store, organizationId, erasure, sketches)
      if (next === undefined) store.clientErasures.remove(organizationId)
      else store.clientErasures.put(organizationId, next)
      return next === undefined
    })
    if (isFinished) return
    yield
  }
}

/** Returns the progress after the step, or undefined if nothing is left. */
function eraseStep(
  store: Store,
  organizationId: string,
  erasure: ClientErasure,
  sketches: Sketches,
): ClientErasure | undefined {
  const { buffer, unmatched, clientDays } = store
  const { bufferNext, bufferEnd, unmatchedNext, unmatchedEnd } = erasure
  if (bufferNext < bufferEnd) {
    return { ...erasure, bufferNext: eraseEvents(buffer, organizationId, bufferNext, bufferEnd) }
  }
  if (unmatchedNext < unmatchedEnd) {
    return { ...erasure, unmatchedNext: eraseEvents(unmatched, organizationId, unmatchedNext, unmatchedEnd) }
  }
  if (clientDays.removeBefore(organizationId, DAYS_END, CLIENT_RECORDS_PER_STEP) > 0) return erasure
  if (store.clientNames.removeHosts(organizationId, NAMES_PER_STEP) > 0) return erasure
  const evidenceNext = eraseEvidence(store, organizationId, erasure, sketches)
  return evidenceNext === undefined ? undefined : { ...erasure, evidenceNext }
}

type EventQueue = Pick<Store['buffer'], 'packed' | 'replace' | 'first'>

/** Returns the sequence after the last erased event. */
function eraseEvents(queue: EventQueue, organizationId: string, from: number, end: number): number {
  const first = Math.max(from, queue.first(organizationId))
  const entries = queue.packed(organizationId, first, Math.min(EVENTS_PER_STEP, end - first))
  const last = entries.at(-1)
  // Only damaged events are left. A scan counts them and does not read them either.
  if (last === undefined) return end
  const erased: Slices = replaceClients(slicesOf(entries.map(({ bytes }) => bytes)), NO_ONE)
  queue.replace(
    organizationId,
    entries.map(({ sequence }) => sequence),
    erased,
  )
  return last.sequence + 1
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
    const clients = sketches.of(sketchKey).apply(evidence.clients)
    store.evidence.putDay(organizationId, day, platformId, { ...evidence, clients })
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
