import type { OwnFormat } from '../formats/own-format.ts'
import { EventAcceptor } from '../ingest/accept.ts'
import { addRows } from '../ingest/ingest-accounting.ts'
import { MessagePipeline } from '../ingest/message-pipeline.ts'
import { LogReader, type LogReading, type OpenedLog, READ_WORK_BYTES, type ReadLogOptions } from '../ingest/read-log.ts'
import { LogStore } from '../ingest/store-log.ts'
import { type KnownToken, TokenAuthenticator } from '../ingest/token-authenticator.ts'
import { type Clock, DAY_MS } from '../kernel/process/clock.ts'
import { createLogger } from '../kernel/process/log.ts'
import { firstDayOfWindow } from '../scan/prepare.ts'
import { scanNow } from '../scan/scan-now.ts'
import { requestScan } from '../scan/scan-runner.ts'
import { EVENTS_FOR_IMMEDIATE_SCAN } from '../scan/schedule.ts'
import type { Organization } from '../store/organizations.ts'
import type { RegistryInForce } from '../store/registry-in-force.ts'
import type { Scan } from '../store/scans.ts'
import type { Store } from '../store/store.ts'
import type { Administration } from './administration.ts'

export interface FileIngestOptions extends Pick<ReadLogOptions, 'stopped' | 'stop'> {
  /** Stores nothing. */
  readonly dryRun?: boolean
  /** Replaces the custom format of the token. */
  readonly own?: OwnFormat | undefined
}

/** Reads log files into the buffer of an organization, outside the process of the service. */
export class FileIngest {
  readonly organization: Organization | undefined
  readonly #store: Store
  readonly #registry: RegistryInForce
  readonly #clock: Clock
  readonly #token: KnownToken
  readonly #options: FileIngestOptions
  readonly #acceptor: EventAcceptor

  constructor(
    { store, registry, clock }: { store: Store; registry: RegistryInForce; clock: Clock },
    token: KnownToken,
    options: FileIngestOptions,
  ) {
    this.#store = store
    this.#registry = registry
    this.#clock = clock
    this.#token = token
    this.#options = options
    this.organization = store.organizations.get(token.organizationId)
    this.#acceptor = new EventAcceptor(store, clock, createLogger('posture-admin', 'WARNING'), () => {})
  }

  /**
   * @returns what was read, and why the reading ended early
   * @throws Fault LOG_UNREADABLE
   */
  async read(
    file: OpenedLog,
    on: Pick<ReadLogOptions, 'onMatch' | 'onLine' | 'onProblem' | 'onProgress'>,
  ): Promise<LogReading> {
    const { own, stopped, stop, dryRun = false } = this.#options
    const store = this.#store
    const authenticator = new TokenAuthenticator(store, this.#clock)
    const pipeline = new MessagePipeline(new Uint8Array(READ_WORK_BYTES), this.#registry, authenticator, {
      tokenRate: undefined,
      noteUnauthorized: () => {},
      own,
    })
    const freeSpace = (): Promise<void> => this.#scanToFreeSpace()
    const storage = dryRun ? undefined : new LogStore(store, this.#acceptor, pipeline, { stopped, stop, freeSpace })
    const windowStartMs =
      this.organization === undefined ? 0 : firstDayOfWindow(this.organization, this.#clock.nowMs()) * DAY_MS
    const reader = new LogReader(store.readLines, storage, pipeline, this.#token, {
      ...{ windowStartMs, stopped, stop, ...on },
    })
    const reading = await reader.read(file)
    if (!dryRun) writeSources(store, pipeline)
    return reading
  }

  /**
   * Adds the files that were read to the audit log, and asks for a scan if many events wait: the
   * service has the buffer open and does not notice events that another process adds. Without the
   * organization, the fault of its file says so.
   *
   * @returns the number of events that wait for a scan
   */
  finish(administration: Administration, names: readonly string[], readings: readonly LogReading[]): number {
    const { organizationId } = this.#token
    const sum = (count: 'messages' | 'matched'): number =>
      readings.reduce((total, { report }) => total + report[count], 0)
    if (this.#options.dryRun !== true && readings.length > 0 && this.isPresent)
      administration.noteIngested(organizationId, names, sum('messages'), sum('matched'))
    const waiting = this.#store.buffer.count(organizationId)
    if (waiting >= EVENTS_FOR_IMMEDIATE_SCAN) this.#askForScan()
    return waiting
  }

  /** Whether the organization was not removed meanwhile. */
  get isPresent(): boolean {
    return this.#store.organizations.exists(this.#token.organizationId)
  }

  /** Scans the organization to empty a full buffer. */
  async #scanToFreeSpace(): Promise<void> {
    const pending = this.#askForScan()
    if (pending === undefined) return
    const over = new AbortController()
    this.#options.stop.then(() => over.abort())
    await scanNow(this.#store, this.#registry, pending, this.#clock, over.signal)
  }

  #askForScan(): Scan | undefined {
    const store = this.#store
    return store.environment.shrink(() => {
      const organization = store.organizations.get(this.#token.organizationId)
      return organization && requestScan(store, organization, this.#clock, 'buffer')
    })
  }
}

/** A few rows, so they may use the space that is reserved for removals. */
export function writeSources(store: Store, pipeline: MessagePipeline): void {
  const counters = {
    sources: pipeline.sources.takeDeltas(0),
    rejects: pipeline.takeRejects(),
    candidates: pipeline.candidates.take(),
  }
  store.environment.shrink(() => addRows(store, counters))
}
