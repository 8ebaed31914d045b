import { join } from 'node:path'
import { readOwnFile } from '../engine/admin/own-platforms.ts'
import { makeWritableDirectory } from '../engine/kernel/lmdb/file-access.ts'
import { deferredFailure } from '../engine/kernel/process/deferred.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { type Release, tryHold } from '../engine/kernel/process/exclusive.ts'
import type { Logger } from '../engine/kernel/process/log.ts'
import { SCANS } from '../engine/scan/scan-now.ts'
import { Store } from '../engine/store/store.ts'
import { Cluster } from './cluster.ts'
import type { ServiceSettings } from './config.ts'

/**
 * How long the service waits for a scan of another process, and the poll interval, in milliseconds.
 */
const OTHER_SCAN_MS = 10_000
const POLL_EVERY_MS = 100

/** The store of a service that nobody else may scan. */
export interface OpenedStore {
  readonly store: Store
  /** undefined: the service is alone. */
  readonly cluster: Cluster | undefined
  readonly releaseScans: Release
  /** Rejects when an essential part of the service ends. */
  readonly failure: ReturnType<typeof deferredFailure>
}

/**
 * Opens the store of a service. As a node of a cluster, first makes it the one of the cluster.
 *
 * @throws Fault REGISTRY_FILE; Faults of the store, see Store; of the brokers, see Cluster.join;
 *   STORE_IN_USE if another service uses the data directory
 */
export async function openStore(settings: ServiceSettings, log: Logger, signal: AbortSignal): Promise<OpenedStore> {
  if (settings.registry !== '') readOwnFile(settings.registry)
  const failure = deferredFailure()
  const place = join(settings.dataDir, 'store')
  makeWritableDirectory(place, '--data-dir')
  const releaseScans = await lockScans(place, settings.dataDir, log)
  try {
    const onFailure = failure.reject
    const cluster = settings.brokers.length > 0 ? await Cluster.join({ settings, log, signal, onFailure }) : undefined
    return { store: cluster?.store ?? openOwn(settings.dataDir), cluster, releaseScans, failure }
  } catch (error) {
    await releaseScans()
    throw error
  }
}

/** @throws Fault USAGE if the store is one of a cluster */
function openOwn(dataDir: string): Store {
  const store = new Store(dataDir)
  if (store.environment.read(() => store.environment.replication.state) === undefined) return store
  void store.close()
  throw new Fault(
    'USAGE',
    `--data-dir ${dataDir}: the store is one of a cluster; name its brokers with --brokers, or run posture-admin cluster leave`,
  )
}

/**
 * Waits for another process's scan: a command ends soon, another service does not.
 *
 * @throws Fault STORE_IN_USE
 */
async function lockScans(place: string, dataDir: string, log: Logger): Promise<Release> {
  for (let waitedMs = 0; waitedMs < OTHER_SCAN_MS; waitedMs += POLL_EVERY_MS) {
    const release = await tryHold(place, SCANS)
    if (release !== undefined) return release
    if (waitedMs === 0) log.info({ path: place }, 'waits for a scan of another process')
    await new Promise((resolve) => setTimeout(resolve, POLL_EVERY_MS))
  }
  throw new Fault('STORE_IN_USE', `--data-dir ${dataDir}: another service, or a long scan, runs on it`)
}
