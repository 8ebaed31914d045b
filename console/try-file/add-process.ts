import { once } from 'node:events'
import { Administration } from '../../engine/admin/administration.ts'
import { FileIngest } from '../../engine/admin/ingest-file.ts'
import { openLog } from '../../engine/ingest/read-log.ts'
import { KnownToken } from '../../engine/ingest/token-authenticator.ts'
import { systemClock } from '../../engine/kernel/process/clock.ts'
import { Fault, type PlainFault, plainFault } from '../../engine/kernel/process/error-codes.ts'
import { exclusively } from '../../engine/kernel/process/exclusive.ts'
import { confirmChanges } from '../../engine/store/confirm-changes.ts'
import { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import { statusOf } from '../../engine/store/secrets.ts'
import { Store } from '../../engine/store/store.ts'
import { ADD_MS_MAX } from './limits.ts'

/*
 * The process that adds an uploaded log to the buffer of its organization, as posture-admin ingest
 * file does: a process of its own, so that pages stay fast. The reading ends with the service, and at
 * a second message. Everything read before is stored, and reading the file again counts no line twice.
 */

/** What the process that adds a file must know. */
export interface AddOrder {
  readonly dataDirectory: string
  readonly organizationId: string
  readonly tokenId: string
  /** Who adds it, for the audit log. */
  readonly memberName: string
  /** Of the copy. */
  readonly path: string
  /** Of the file as it was sent. */
  readonly name: string
}

/** What became of the lines of a file. */
export interface AddedFile {
  readonly name: string
  readonly matched: number
  /** Matches that were read before. */
  readonly duplicates: number
  /** Of `matched`: before the evidence window, so that no scan shows them. */
  readonly outsideWindow: number
  /** Events of the organization that wait for the next scan. */
  readonly waiting: number
  /** Why reading ended early; '' if the whole file was read. */
  readonly fault: string
}

/** What the process answers. */
export type AddAnswer = AddedFile | { readonly refused: PlainFault }

/** @throws Fault NOT_FOUND, STORE_IN_USE */
async function add(order: AddOrder, store: Store): Promise<AddedFile> {
  const nowMs = systemClock.nowMs()
  const token = store.monitoringTokens.get(order.organizationId, order.tokenId)
  if (token === undefined || statusOf(token, nowMs) !== 'active') {
    throw new Fault('NOT_FOUND', 'the monitoring token is not active any more')
  }
  const stopping = new AbortController()
  for (const event of ['message', 'disconnect']) process.once(event, () => stopping.abort())
  const ingest = new FileIngest(
    { store, registry: new RegistryInForce(store), clock: systemClock },
    new KnownToken(token, '', nowMs),
    { stopped: () => stopping.signal.aborted, stop: once(stopping.signal, 'abort') },
  )
  const { path, name } = order
  const file = { ...openLog(path), path: name, name, isComplete: true }
  return exclusively(store.environment.path, 'ingest file', async () => {
    const reading = await ingest.read(file, { onProblem: () => {}, onProgress: () => {} })
    const actor = { kind: 'member', name: order.memberName } as const
    const waiting = ingest.finish(new Administration(store, systemClock, actor), [name], [reading])
    await confirmChanges(store)
    const { matched, duplicates, outsideWindow } = reading.report
    const ended = stopping.signal.aborted ? `not read to its end within ${ADD_MS_MAX / 1000} s. Add it again` : ''
    return { name, matched, duplicates, outsideWindow, waiting, fault: reading.fault?.message ?? ended }
  })
}

process.once('message', async (order: AddOrder) => {
  const store = new Store(order.dataDirectory, { mustExist: true })
  const answer = await add(order, store).catch((error: unknown): AddAnswer => {
    if (error instanceof Fault) return { refused: plainFault(error) }
    throw error
  })
  await store.close()
  if (process.connected) process.send?.(answer, undefined, undefined, () => process.disconnect())
})
