import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import {
  DATA_FILE,
  environmentExists,
  makeWritableDirectory,
  replaceEnvironment,
} from '../../kernel/lmdb/file-access.ts'
import type { ReplicationState } from '../../kernel/lmdb/replication.ts'
import { SECOND_MS } from '../../kernel/process/clock.ts'
import { Fault, isFault } from '../../kernel/process/error-codes.ts'
import type { Logger } from '../../kernel/process/log.ts'
import { Store } from '../../store/store.ts'
import { patiently } from '../log/brokers.ts'
import type { ChangeStream } from '../log/change-stream.ts'
import type { Snapshot, SnapshotStore } from '../log/snapshot-store.ts'
import { readMessage } from './messages.ts'

const KEPT_PREFIX = 'store.before-snapshot-'

export interface JoinOptions {
  readonly dataDirectory: string
  readonly stream: ChangeStream
  readonly snapshots: SnapshotStore
  readonly log: Logger
  readonly signal: AbortSignal
}

/** What a store on disk is. */
interface Found {
  readonly state: ReplicationState | undefined
  readonly hasData: boolean
}

/**
 * Prepares the data directory of a node, which no process may have open. An empty store becomes the
 * last snapshot. A store with data of its own becomes the first one of a cluster that has none.
 *
 * @throws Fault CONFLICT if the cluster has a store, and this one has data of its own; BROKERS_LOST
 *   if the store is one of another cluster
 */
export async function joinCluster(options: JoinOptions): Promise<void> {
  const { dataDirectory, stream, log } = options
  const { state, hasData } = await found(dataDirectory, stream.created)
  if (state !== undefined && state.created !== stream.created) {
    const fix = 'use other brokers, or run posture-admin cluster leave'
    const created = `the stream of changes was created at ${stream.created}, and the store has one of ${state.created}`
    throw new Fault('BROKERS_LOST', `${created}; ${fix}`)
  }
  if (state?.generation !== undefined && state.generation > 0) return
  // The first node of a cluster, if no other one was faster.
  const first = await patiently(() => stream.message(1))
  const founder = first && readMessage(first)
  if (founder === undefined) {
    if ((await patiently(() => stream.lastSequence())) === 0) return
  } else if ('sender' in founder && founder.sender.node === state?.node) return
  if (hasData) {
    await asBefore(dataDirectory)
    throw new Fault(
      'CONFLICT',
      `--data-dir ${dataDirectory}: has organizations of its own, and the brokers have the store of a cluster; join it with an empty directory`,
    )
  }
  log.info('joins the cluster with the last snapshot')
  await beginWithSnapshot(options, false)
}

/**
 * Replaces the store by the last snapshot, because it has changes that the cluster lacks, or lacks
 * changes that the brokers no longer have.
 *
 * @param keep whether the replaced store may have changes of its own, and stays next to it
 */
export async function beginWithSnapshot(options: JoinOptions, keep: boolean): Promise<void> {
  const { dataDirectory, stream, log } = options
  const place = join(dataDirectory, 'store')
  const beside = join(dataDirectory, 'store.joining')
  const kept = keep ? keptStore(dataDirectory) : undefined
  let snapshot: Snapshot
  // Left by a process that was killed.
  rmSync(beside, { recursive: true, force: true })
  try {
    makeWritableDirectory(place, '--data-dir')
    mkdirSync(join(beside, 'store'), { recursive: true, mode: 0o700 })
    const data = join(beside, 'store', DATA_FILE)
    snapshot = await download(options, data)
    await makeReplica(beside, snapshot, stream.created)
    if (replaceEnvironment(data, place, kept) && kept !== undefined) {
      log.warn({ kept }, 'the store may have changes that the cluster lacks; it was kept and replaced')
    }
  } finally {
    rmSync(beside, { recursive: true, force: true })
  }
  log.info({ snapshot: snapshot.name, bytes: snapshot.bytes }, 'the store is the last snapshot')
}

/** Where the replaced store stays. Removes the one before, because each is a whole store. */
function keptStore(dataDirectory: string): string {
  for (const name of readdirSync(dataDirectory)) {
    if (name.startsWith(KEPT_PREFIX)) rmSync(join(dataDirectory, name), { recursive: true })
  }
  return join(dataDirectory, `${KEPT_PREFIX}${new Date().toISOString().replace(/[:.]/g, '-')}`)
}

/** Returns what was downloaded: the last snapshot that is whole. */
async function download(options: JoinOptions, path: string): Promise<Snapshot> {
  const { snapshots, log } = options
  const found = await foundSnapshots(options)
  for (const [index, snapshot] of found.entries()) {
    try {
      await snapshots.download(snapshot, path)
      return snapshot
    } catch (error) {
      if (!isFault(error, 'BROKERS_LOST') || index === found.length - 1) throw error
      log.warn({ reason: error.message }, 'the snapshot before it is downloaded')
      rmSync(path, { force: true })
    }
  }
  throw new Error('internal error: there is no snapshot')
}

/** The last one first. Waits for the first one of a new cluster. */
async function foundSnapshots({ snapshots, stream, log, signal }: JoinOptions): Promise<Snapshot[]> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    const found = (await snapshots.list()).filter(({ created }) => created === stream.created)
    if (found.length > 0) return found
    if (attempt === 0) log.info('waits for the first snapshot of the primary')
    await later(SECOND_MS, undefined, { signal }).catch(() => {})
  }
  throw new Fault('BROKERS_UNREACHABLE', 'stopped before the first snapshot was made')
}

/** The copy of the primary's store becomes the store of a replica. */
async function makeReplica(
  directory: string,
  { generation, change, sequence }: Snapshot,
  created: string,
): Promise<void> {
  const { environment, close } = opened(directory)
  try {
    environment.writeUnrecorded(() => {
      // They were published before the snapshot was uploaded.
      environment.replication.removeTo(change, undefined)
      const state = {
        mode: 'replica',
        primary: '',
        generation,
        change,
        unpublishedBytes: 0,
        sequence,
        created,
      } as const
      environment.replication.putState({ ...state, node: randomUUID() })
    })
  } finally {
    await close()
  }
}

async function found(dataDirectory: string, created: string): Promise<Found> {
  const isNew = !environmentExists(join(dataDirectory, 'store'))
  const { store, environment, close } = opened(dataDirectory)
  try {
    const hasData = !isNew && environment.read(() => store.organizations.ids().length > 0)
    let state = environment.read(() => environment.replication.state)
    const start = { primary: '', generation: 0, change: 0, unpublishedBytes: 0, sequence: 0, created }
    // Nothing is written before the node knows who is the primary.
    environment.writeUnrecorded(() => {
      state = { ...(state ?? { ...start, node: randomUUID() }), mode: 'replica' }
      environment.replication.putState(state)
    })
    return { state, hasData }
  } finally {
    await close()
  }
}

/** The store stays a store of its own. */
async function asBefore(dataDirectory: string): Promise<void> {
  const { environment, close } = opened(dataDirectory)
  try {
    environment.writeUnrecorded(() => environment.replication.forget())
  } finally {
    await close()
  }
}

function opened(dataDirectory: string) {
  const store = new Store(dataDirectory)
  return { store, environment: store.environment, close: () => store.close() }
}
